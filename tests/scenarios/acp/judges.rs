//! Clients by others: the TypeScript and the Python SDK of the protocol drive the bridge. Both check what they receive
//! against the official schema.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::scenarios::mcp_reference::install;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// A prompt whose edit is allowed, one whose edit is denied, and a load of the session by a second client.
const PYTHON_CLIENT: &str = r#"
import asyncio, json, os, sys
import acp
from acp import schema

class Editor:
    def __init__(self):
        self.updates, self.answers = [], []
    def on_connect(self, conn):
        pass
    async def session_update(self, session_id, update, **rest):
        self.updates.append(update)
    async def request_permission(self, session_id, tool_call, options, **rest):
        wanted = self.answers.pop(0)
        option = next(option for option in options if option.kind == wanted)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=option.option_id))
    def text(self):
        return "".join(u.content.text for u in self.updates if u.session_update == "agent_message_chunk")

async def run(editor, work):
    async with acp.spawn_agent_process(editor, sys.argv[1], "acp", env=dict(os.environ)) as (agent, process):
        started = await agent.initialize(protocol_version=1)
        return started, await work(agent)

async def main():
    editor = Editor()
    async def first(agent):
        session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])
        stops = []
        for answer in ["allow_once", "reject_once"]:
            editor.answers.append(answer)
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("write")])
            stops.append(done.stop_reason)
        return session.session_id, stops, len(session.config_options)
    started, (session, stops, options) = await run(editor, first)
    second = Editor()
    async def load(agent):
        await agent.load_session(cwd=os.getcwd(), session_id=session, mcp_servers=[])
        return len((await agent.list_sessions()).sessions)
    _, listed = await run(second, load)
    print(json.dumps({"version": started.protocol_version, "stops": stops, "options": options, "listed": listed,
        "text": editor.text(), "replayed": second.text(), "kinds": sorted({u.session_update for u in editor.updates})}))

asyncio.run(main())
"#;

/// The same with the TypeScript SDK.
const NODE_CLIENT: &str = r#"
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

function editor() {
  const it = { updates: [], answers: [] };
  it.app = acp.client({ name: "judge" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      const wanted = it.answers.shift();
      const option = params.options.find((option) => option.kind === wanted);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => { it.updates.push(params.update); });
  it.text = () => it.updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");
  return it;
}

async function run(it, work) {
  const child = spawn(process.argv[2], ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const done = await it.app.connectWith(stream, async (agent) => {
    const started = await agent.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION });
    return [started, await work(agent)];
  });
  child.stdin.end();
  return done;
}

const first = editor();
const cwd = process.cwd();
const [started, [session, stops, options]] = await run(first, async (agent) => {
  const made = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  const stops = [];
  for (const answer of ["allow_once", "reject_once"]) {
    first.answers.push(answer);
    const prompt = [{ type: "text", text: "write" }];
    stops.push((await agent.request(acp.methods.agent.session.prompt, { sessionId: made.sessionId, prompt })).stopReason);
  }
  return [made.sessionId, stops, made.configOptions.length];
});
const second = editor();
const [, listed] = await run(second, async (agent) => {
  await agent.request(acp.methods.agent.session.load, { sessionId: session, cwd, mcpServers: [] });
  return (await agent.request(acp.methods.agent.session.list, {})).sessions.length;
});
const kinds = [...new Set(first.updates.map((u) => u.sessionUpdate))].sort();
console.log(JSON.stringify({ version: started.protocolVersion, stops, options, listed, text: first.text(),
  replayed: second.text(), kinds }));
process.exit(0);
"#;

/// The client of the same SDK for version 2, with a second client that resumes the session with its history.
const NODE_CLIENT_V2: &str = r#"
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/experimental/v2";

function editor() {
  const it = { updates: [], answers: [], waiting: [] };
  it.app = acp.client({ name: "judge" })
    .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
      const wanted = it.answers.shift();
      const option = params.options.find((option) => option.kind === wanted);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      it.updates.push(params.update);
      if (params.update.state === "idle") it.waiting.shift()?.(params.update.stopReason);
    });
  it.idle = () => new Promise((resolve) => it.waiting.push(resolve));
  it.text = () => it.updates.filter((u) => u.sessionUpdate === "agent_message_chunk").map((u) => u.content.text).join("");
  return it;
}

async function run(it, work) {
  const child = spawn(process.argv[2], ["acp", "--experimental-v2"], { stdio: ["pipe", "pipe", "inherit"] });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const done = await it.app.connectWith(stream, async (agent) => {
    const started = await agent.request(acp.methods.agent.initialize,
      { protocolVersion: acp.PROTOCOL_VERSION, info: { name: "judge", version: "1" } });
    return [started, await work(agent)];
  });
  child.stdin.end();
  return done;
}

const first = editor();
const cwd = process.cwd();
const [started, [session, stops, options]] = await run(first, async (agent) => {
  const made = await agent.request(acp.methods.agent.session.new, { cwd });
  const stops = [];
  for (const answer of ["allow_once", "reject_once"]) {
    first.answers.push(answer);
    const idle = first.idle();
    const prompt = [{ type: "text", text: "write" }];
    const { messageId } = await agent.request(acp.methods.agent.session.prompt, { sessionId: made.sessionId, prompt });
    stops.push(await idle);
    if (!first.updates.some((u) => u.sessionUpdate === "user_message" && u.messageId === messageId)) stops.push(messageId);
  }
  await agent.request(acp.methods.agent.session.close, { sessionId: made.sessionId });
  return [made.sessionId, stops, made.configOptions.length];
});
const second = editor();
const [, listed] = await run(second, async (agent) => {
  const replayFrom = { type: "start" };
  await agent.request(acp.methods.agent.session.resume, { sessionId: session, cwd, replayFrom });
  return (await agent.request(acp.methods.agent.session.list, {})).sessions.length;
});
const kinds = [...new Set(first.updates.map((u) => u.sessionUpdate))].sort();
console.log(JSON.stringify({ version: started.protocolVersion, stops, options, listed, text: first.text(),
  replayed: second.text(), kinds }));
process.exit(0);
"#;

/// A Python with the SDK: the one that `.ci/run` prepares, or a new environment.
async fn python_with_sdk(folder: &Path) -> Option<PathBuf> {
    if let Some(prepared) = std::env::var_os("AGENTD_TEST_ACP_PYTHON") {
        return Some(prepared.into());
    }
    let python = folder.join("sdk/bin/python");
    let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "agent-client-protocol==0.12.1"];
    let is_ready = install("python3", &["-m", "venv", "sdk"], folder).await
        && install(python.to_str()?, &pip, folder).await;
    is_ready.then_some(python)
}

/// A folder whose `node_modules` has the SDK: the one that `.ci/run` prepares, or a new one.
pub(super) async fn folder_with_node_sdk(folder: &Path) -> Option<PathBuf> {
    if let Some(prepared) = std::env::var_os("AGENTD_TEST_ACP_NODE") {
        return Some(prepared.into());
    }
    let arguments = ["install", "--no-audit", "--no-fund", "--no-save", "@agentclientprotocol/sdk@2.4.0"];
    install("npm", &arguments, folder).await.then(|| folder.to_owned())
}

async fn judged(daemon: &TestDaemon, mut command: Command, version: u32) {
    for done in ["I wrote it.", "I see."] {
        daemon.models.push(Step::calls([("Write", json!({"file_path": "x.txt", "content": done}))]));
        daemon.models.push(Step::text(done));
    }
    command.arg(env!("CARGO_BIN_EXE_agentctl")).current_dir(daemon.workspace());
    command.env("AGENTD_SOCKET", daemon.socket()).env("AGENTD_CONFIG", daemon.path("config.toml"));
    command.env("HOME", daemon.path("home")).env("XDG_DATA_HOME", daemon.path("data"));
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output =
        tokio::time::timeout(Duration::from_secs(60), output).await.expect("in time").expect("started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!((&seen["version"], &seen["listed"]), (&json!(version), &json!(1)), "{seen}");
    assert_eq!(seen["stops"], json!(["end_turn", "end_turn"]), "{seen}");
    assert_eq!((&seen["text"], &seen["replayed"]), (&json!("I wrote it.I see."), &seen["text"]), "{seen}");
    assert!(
        seen["kinds"].as_array().is_some_and(|kinds| kinds.contains(&json!("tool_call_update"))),
        "{seen}"
    );
    assert_eq!(daemon.read("x.txt"), "I wrote it.");
}

#[tokio::test]
async fn python_sdk_drives_the_bridge() {
    let daemon = TestDaemon::start().await;
    let Some(python) = python_with_sdk(&daemon.path("")).await else {
        base::skip_test!("Python cannot install the SDK of the Agent Client Protocol");
        return;
    };
    let program = daemon.path("client.py");
    std::fs::write(&program, PYTHON_CLIENT).expect("written");
    let mut command = Command::new(python);
    command.arg(&program);
    judged(&daemon, command, 1).await;
}

#[tokio::test]
async fn typescript_sdk_drives_the_bridge() {
    typescript_drives("client", NODE_CLIENT, 1).await;
}

#[tokio::test]
async fn typescript_sdk_of_version_2_drives_the_bridge() {
    typescript_drives("client-v2", NODE_CLIENT_V2, 2).await;
}

async fn typescript_drives(name: &str, client: &str, version: u32) {
    let daemon = TestDaemon::start().await;
    let Some(folder) = folder_with_node_sdk(&daemon.path("")).await else {
        base::skip_test!("npm cannot install the SDK of the Agent Client Protocol");
        return;
    };
    // Node resolves the package from the folder of the program.
    let program = folder.join(format!("{name}-{}.mjs", std::process::id()));
    std::fs::write(&program, client).expect("written");
    let mut command = Command::new("node");
    command.arg(&program);
    judged(&daemon, command, version).await;
    let _ = std::fs::remove_file(program);
}
