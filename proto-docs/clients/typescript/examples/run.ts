// Lists the sessions, starts one, submits a prompt, prints the answer, and allows what the turn asks for.
// Run: node dist/examples/run.js "say hello"

import { Client } from "../src/client.js";

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
    case "permission.requested":
      console.error(`\nallowed: ${event.summary}`);
      await client.call("session.approve", { request_id: event.request_id, decision: "allow" });
      break;
  }
  if (event.type === "turn.completed" && event.turn_id === turn_id) {
    console.log(`\n${event.result.subtype}`);
    break;
  }
}
client.close();
