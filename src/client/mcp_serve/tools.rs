//! The tools: start, send, status, wait, read and list sessions.

use api::methods;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::environment::EnvironmentArgs;
use crate::connection::paths;
use crate::connection::remote::Machine;
use crate::failure::Failure;
use base::sync::lock;

/// Longest wait of one call in milliseconds. Clients usually end a call after some minutes.
const MAX_WAIT_MS: u64 = 600_000;
/// Default wait in milliseconds.
const DEFAULT_WAIT_MS: u64 = 60_000;
/// Default number of items that a read returns.
const DEFAULT_ITEMS: u64 = 20;
/// Maximum number of items that a read returns.
const MAX_ITEMS: u64 = 100;

/// The definitions of the tools.
pub(super) fn list() -> Value {
    let id = || json!({"type": "string", "description": "The session's id"});
    let tool = |name: &str, description: &str, properties: Value, required: &[&str], read_only: bool| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
            "annotations": {"readOnlyHint": read_only},
        })
    };
    let prompt = json!({"type": "string", "description": "The task"});
    json!([
        tool(
            "session_start",
            "Starts a coding session with a task and returns at once. The user's permissions apply, and the limits of unattended sessions.",
            json!({
                "prompt": prompt,
                "cwd": {"type": "string", "description": "The folder to work in, absolute; by default that of this server"},
                "title": {"type": "string"},
            }),
            &["prompt"],
            false,
        ),
        tool(
            "session_send",
            "Sends a further task to a session. It waits in the session's queue while a turn runs.",
            json!({"session_id": id(), "prompt": prompt}),
            &["session_id", "prompt"],
            false,
        ),
        tool(
            "session_status",
            "Shows the state of a session.",
            json!({"session_id": id()}),
            &["session_id"],
            true
        ),
        tool(
            "session_wait",
            "Waits until a session is idle, needs a decision of the user, or has ended. Returns the result of its last turn.",
            json!({"session_id": id(), "timeout_ms": {"type": "integer", "minimum": 0, "maximum": MAX_WAIT_MS}}),
            &["session_id"],
            true,
        ),
        tool(
            "session_read",
            "Reads the newest items of a session: messages, tool calls and their results.",
            json!({"session_id": id(), "limit": {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS}}),
            &["session_id"],
            true,
        ),
        tool("session_list", "Lists the newest sessions that this server reaches.", json!({}), &[], true),
    ])
}

/// Whether there is a tool with this name.
pub(super) fn exists(name: &str) -> bool {
    list().as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
}

/// The sessions that the tools reach.
pub(super) struct SessionScope {
    /// Whether the tools reach all sessions of the user, not only those that this server started.
    pub all: bool,
    /// Ids of the sessions that this server started, the oldest first.
    pub started: Mutex<Vec<String>>,
}

impl SessionScope {
    fn session<'a>(&self, arguments: &'a Value) -> Result<&'a str, Failure> {
        let id = text(arguments, "session_id")?;
        if self.all || lock(&self.started).iter().any(|started| started == id) {
            return Ok(id);
        }
        let error = format!("the session {id} was not started by this server");
        Err(Failure::usage(format!("{error}; `agentctl mcp serve --all-sessions` reaches every session")))
    }
}

/// Runs a tool.
pub(super) async fn call(
    reach: &Connector,
    reachable: &SessionScope,
    tool: &str,
    arguments: Value,
) -> Result<Value, Failure> {
    let client = reach.connect_or_start().await?;
    match tool {
        "session_start" => start(&client, reachable, &arguments, reach.machine()).await,
        "session_send" => {
            let id = reachable.session(&arguments)?;
            let reply: Value =
                client.call_as::<methods::session::Get, _>(&json!({ "session_id": id })).await?;
            if reply["session"]["mode"] == "bypass" {
                let error =
                    "the session is in mode bypass, so no user would be asked about what the task does";
                return Err(Failure::usage(format!("{error}; only its user may send to it")));
            }
            let params = json!({"session_id": id, "input": text(&arguments, "prompt")?, "raw": true});
            let reply: Value = client.call_as::<methods::session::Submit, _>(&params).await?;
            Ok(json!({"turn_id": reply["turn_id"], "state": reply["state"]}))
        }
        "session_status" => {
            let reply: Value = client
                .call_as::<methods::session::Get, _>(&json!({"session_id": reachable.session(&arguments)?}))
                .await?;
            Ok(public_facts(&reply["session"]))
        }
        "session_wait" => {
            let wait = arguments["timeout_ms"].as_u64().unwrap_or(DEFAULT_WAIT_MS).min(MAX_WAIT_MS);
            let params = json!({"session_id": reachable.session(&arguments)?, "timeout_ms": wait});
            let reply: Value = client.call_as::<methods::session::Wait, _>(&params).await?;
            let mut facts = public_facts(&reply["session"]);
            facts["timed_out"] = reply["timed_out"].clone();
            let result = &reply["result"];
            if !result.is_null() {
                facts["result"] = json!({"subtype": result["subtype"], "text": result["text"]});
            }
            Ok(facts)
        }
        "session_read" => {
            let limit = arguments["limit"].as_u64().unwrap_or(DEFAULT_ITEMS).clamp(1, MAX_ITEMS);
            read(&client, reachable.session(&arguments)?, limit).await
        }
        _ if !reachable.all => {
            let newest = usize::try_from(DEFAULT_ITEMS).unwrap_or(usize::MAX);
            let ids: Vec<String> = lock(&reachable.started).iter().rev().take(newest).cloned().collect();
            let mut sessions = Vec::new();
            for id in ids {
                // Leave out a session that a user has deleted.
                let reply: Result<Value, _> =
                    client.call_as::<methods::session::Get, _>(&json!({ "session_id": id })).await;
                sessions.extend(reply.ok().map(|reply| public_facts(&reply["session"])));
            }
            Ok(json!({ "sessions": sessions }))
        }
        _ => {
            let reply: Value =
                client.call_as::<methods::session::List, _>(&json!({"limit": DEFAULT_ITEMS})).await?;
            let sessions: Vec<Value> =
                reply["sessions"].as_array().into_iter().flatten().map(public_facts).collect();
            Ok(json!({ "sessions": sessions }))
        }
    }
}

async fn start(
    client: &Client,
    reachable: &SessionScope,
    arguments: &Value,
    machine: Machine,
) -> Result<Value, Failure> {
    let prompt = text(arguments, "prompt")?;
    let cwd = match arguments["cwd"].as_str() {
        Some(cwd) => cwd.to_owned(),
        None => paths::current_folder()?.to_string_lossy().into_owned(),
    };
    // The caller is a program, so the limits and deadlines of unattended sessions apply.
    let env = EnvironmentArgs::default().collect(machine)?;
    let mut params = json!({ "cwd": cwd, "background": true, "env": env });
    if let Some(title) = arguments["title"].as_str() {
        params["title"] = title.into();
    }
    let created: Value = client.call_as::<methods::session::Create, _>(&params).await?;
    let session_id = created["session"]["session_id"].clone();
    lock(&reachable.started).extend(session_id.as_str().map(str::to_owned));
    let submit = json!({"session_id": session_id, "input": prompt, "raw": true});
    let submitted: Value = client.call_as::<methods::session::Submit, _>(&submit).await?;
    Ok(json!({"session_id": session_id, "turn_id": submitted["turn_id"], "state": submitted["state"]}))
}

/// The newest items, the oldest of them first.
async fn read(client: &Client, session_id: &str, limit: u64) -> Result<Value, Failure> {
    let mut items: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut params = json!({ "session_id": session_id });
        if !cursor.is_null() {
            params["cursor"] = cursor.take();
        }
        let mut page: Value = client.call_as::<methods::session::Items, _>(&params).await?;
        if let Value::Array(more) = page["items"].take() {
            items.extend(more);
        }
        let surplus = items.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        items.drain(..surplus);
        match page["next_cursor"].take() {
            Value::Null => break,
            next => cursor = next,
        }
    }
    Ok(json!({ "items": items }))
}

/// The part of a session that other agents see.
fn public_facts(session: &Value) -> Value {
    let mut facts = json!({});
    for name in ["session_id", "number", "title", "state", "requires", "cwd", "model", "updated_at_ms"] {
        if !session[name].is_null() {
            facts[name] = session[name].clone();
        }
    }
    if facts["state"] == "requires_action" {
        facts["note"] = "a user must decide first: agentctl approvals, or agentctl attach".into();
    }
    facts
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, Failure> {
    let value = arguments[name].as_str().filter(|text| !text.trim().is_empty());
    value.ok_or_else(|| Failure::usage(format!("the argument {name} is missing")))
}
