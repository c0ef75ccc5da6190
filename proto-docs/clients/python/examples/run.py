"""Lists the sessions, starts one, submits a prompt, prints the answer, and allows what the turn asks for.

Run: python examples/run.py "say hello"
"""

import asyncio
import os
import sys
import uuid

from agentd_client import Client


async def main() -> None:
    async with Client("example") as client:
        for session in (await client.call("session.list", {"limit": 5}))["sessions"]:
            print(session["session_id"], session["state"], session["title"], file=sys.stderr)

        created = await client.call("session.create", {"cwd": os.getcwd()})
        session_id = created["session"]["session_id"]
        submitted = await client.call(
            "session.submit",
            {
                "session_id": session_id,
                "input": sys.argv[1] if len(sys.argv) > 1 else "Say hello.",
                "idempotency_key": str(uuid.uuid4()),
            },
        )

        async for event in client.events(session_id):
            if event["type"] == "message.text_delta":
                print(event["text"], end="", flush=True)
            elif event["type"] == "permission.requested":
                print(f"\nallowed: {event['summary']}", file=sys.stderr)
                await client.call("session.approve", {"request_id": event["request_id"], "decision": "allow"})
            elif event["type"] == "turn.completed" and event.get("turn_id") == submitted.get("turn_id"):
                print(f"\n{event['result']['subtype']}")
                break


asyncio.run(main())
