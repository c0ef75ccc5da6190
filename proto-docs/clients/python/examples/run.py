"""Lists the sessions, starts one, submits a prompt, prints the answer, and asks about its permission requests.

Run: python examples/run.py "say hello"
"""

import asyncio
import json
import os
import sys
import uuid

from agentd_client import Client
from agentd_client.types import ApproveParams


def ask(question: str) -> bool:
    """Whether a person says yes. Without an answer it is no."""
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() == "y"


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
                is_allowed = ask(f"\n{event['tool']} {json.dumps(event['input'])}: allow? [y/N] ")
                answer: ApproveParams = {"request_id": event["request_id"], "decision": "allow" if is_allowed else "deny"}
                if digest := event.get("digest"):
                    # The daemon refuses the answer if the request is no longer the one that was shown.
                    answer["digest"] = digest
                await client.call("session.approve", answer)
            elif event["type"] == "turn.completed" and event.get("turn_id") == submitted.get("turn_id"):
                print(f"\n{event['result']['subtype']}")
                break


asyncio.run(main())
