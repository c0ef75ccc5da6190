// Lists the sessions, starts one, submits a prompt, prints the answer, and asks about its permission requests.
// Run: node dist/examples/run.js "say hello"

import { createInterface } from "node:readline";
import { Client } from "../src/client.js";

const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();

/** Whether a person says yes. Without an answer it is no. */
async function ask(question: string): Promise<boolean> {
  process.stderr.write(question);
  const line = await lines.next();
  return line.done !== true && line.value.trim() === "y";
}

const client = new Client("example");
const { sessions } = await client.call("session.list", { limit: 5 });
for (const session of sessions) console.error(`${session.session_id} ${session.state} ${session.title}`);

const { session } = await client.call("session.create", { cwd: process.cwd() });
const session_id = session.session_id;
const { turn_id } = await client.call("session.submit", {
  session_id,
  input: process.argv[2] ?? "Say hello.",
  idempotency_key: crypto.randomUUID(),
});

for await (const event of client.events(session_id)) {
  switch (event.type) {
    case "message.text_delta":
      process.stdout.write(event.text);
      break;
    case "permission.requested": {
      const isAllowed = await ask(`\n${event.tool} ${JSON.stringify(event.input)}: allow? [y/N] `);
      await client.call("session.approve", {
        request_id: event.request_id,
        decision: isAllowed ? "allow" : "deny",
        // The daemon refuses the answer if the request is no longer the one that was shown.
        ...(event.digest !== undefined && { digest: event.digest }),
      });
      break;
    }
  }
  if (event.type === "turn.completed" && event.turn_id === turn_id) {
    console.log(`\n${event.result.subtype}`);
    break;
  }
}
client.close();
input.close();
