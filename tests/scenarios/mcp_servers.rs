//! MCP servers as users manage them: over RPC and with `agentctl mcp`, their prompts, deferred tools, and `mcp serve`.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::agentctl::ctl;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::mcp_server::McpScript;
use crate::support::model_server::Step;
use crate::support::wait::with_deadline;

#[tokio::test]
async fn servers_are_added_tested_listed_and_removed() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    let client = daemon.client("alice").await;
    let cwd = daemon.workspace();
    let add = json!({"name": "fake", "config": script.entry(), "scope": "user", "idempotency_key": "k"});
    client.call("mcp.add", add.clone()).await;
    client.call("mcp.add", add).await;
    let again =
        client.refused("mcp.add", json!({"name": "fake", "config": script.entry(), "scope": "user"})).await;
    assert!(again.message.contains("already"), "{again:?}");
    let wrong = json!({"name": "x", "config": {"command": "a", "zork": 1}, "scope": "user"});
    assert!(client.refused("mcp.add", wrong).await.message.contains("zork"));
    let neither = json!({"name": "x", "config": {}, "scope": "user"});
    assert_eq!(client.refused("mcp.add", neither).await.kind, "invalid_params");
    let tested = client.call("mcp.test", json!({"name": "fake", "cwd": cwd})).await;
    assert_eq!((&tested["state"], &tested["protocol"]), (&json!("ready"), &json!("2025-06-18")));
    let listed = client.call("mcp.list", json!({"cwd": cwd})).await["servers"].clone();
    assert_eq!((&listed[0]["name"], &listed[0]["state"]), (&json!("fake"), &json!("ready")));
    assert_eq!((&listed[0]["source"], &listed[0]["transport"]), (&json!("user"), &json!("stdio")));
    assert!(listed[0]["tools"].to_string().contains("mcp__fake__echo"));
    let tools = client.call("mcp.tools", json!({"name": "fake", "cwd": cwd})).await;
    assert!(tools["tools"][0]["input_schema"].is_object());
    // A configuration can be tried without adding it.
    let tried = client.call("mcp.test", json!({"config": {"command": "/no/such"}, "cwd": cwd})).await;
    assert_eq!(tried["state"], "failed");
    client
        .call("mcp.add", json!({"name": "own", "config": script.entry(), "scope": "project", "cwd": cwd}))
        .await;
    let listed = client.call("mcp.list", json!({"cwd": cwd})).await["servers"].clone();
    assert_eq!((&listed[1]["name"], &listed[1]["state"]), (&json!("own"), &json!("untrusted")));
    assert!(daemon.read(".mcp.json").contains("mcpServers"));
    client.call("mcp.remove", json!({"name": "own", "scope": "project", "cwd": cwd})).await;
    client.call("mcp.remove", json!({"name": "fake", "scope": "user"})).await;
    assert_eq!(client.call("mcp.list", json!({"cwd": cwd})).await["servers"], json!([]));
    assert_eq!(client.refused("mcp.tools", json!({"name": "fake"})).await.kind, "invalid_params");
}

#[tokio::test]
async fn agentctl_manages_servers_of_folder() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    script.set(json!({"mode": "exit"}));
    let entry = script.entry();
    let env = format!("MCP_SCRIPT={}", entry["env"]["MCP_SCRIPT"].as_str().expect("a path"));
    let mut add = vec!["mcp", "add", "fake", "--env", &env, "--", entry["command"].as_str().expect("a path")];
    add.extend(entry["args"].as_array().expect("a list").iter().filter_map(Value::as_str));
    assert!(ctl(&daemon, &add).await.stdout().contains("is added"));
    let failed = ctl(&daemon, &["mcp", "test", "fake"]).await;
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("exited with status 7"), "{failed:?}");
    assert!(ctl(&daemon, &["mcp", "logs", "fake"]).await.stdout().contains("no licence"));
    script.set(json!({}));
    let fine = ctl(&daemon, &["mcp", "test", "fake"]).await.stdout();
    assert!(fine.contains("fake: ready, protocol 2025-06-18, 11 tools"), "{fine}");
    assert!(ctl(&daemon, &["mcp", "list"]).await.stdout().contains("ready"));
    assert!(ctl(&daemon, &["mcp", "tools", "fake"]).await.stdout().contains("mcp__fake__echo"));
    let commands = ctl(&daemon, &["commands"]).await.stdout();
    assert!(commands.contains("/mcp__fake__greet <who>"), "{commands}");
    assert!(ctl(&daemon, &["mcp", "remove", "fake"]).await.stdout().contains("is removed"));
}

#[tokio::test]
async fn prompt_of_server_is_slash_command() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    let client = daemon.client("alice").await;
    client.call("mcp.add", json!({"name": "fake", "config": script.entry(), "scope": "user"})).await;
    let session = client.create(&daemon).await;
    let mut seen = session.follow().await;
    let missing = session.refused("submit", json!({"input": "/mcp__fake__greet"})).await;
    assert!(missing.message.contains("<who>"), "{missing:?}");
    daemon.models.push(Step::text("Hello, Ann."));
    session.submit("/mcp__fake__greet Ann Lee").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests()[0].body.to_string();
    assert!(sent.contains("Greet Ann Lee warmly."), "{sent}");
    let shown = session.call("submit", json!({"input": "/mcp"})).await;
    assert!(shown["text"].as_str().expect("words").contains("fake (user): ready, 11 tools"), "{shown}");
}

#[tokio::test]
async fn many_tools_are_deferred_and_brought_in_by_search() {
    let window = "[model.\"scripted/model\"]\ncontext_window = 60000\n";
    let daemon = TestDaemon::builder().api(Api::Anthropic).config(window).start().await;
    let script = McpScript::new(&daemon, "fake");
    let tool = |number: usize| {
        let about = format!("Does thing{number} for you. {}", "More words. ".repeat(60));
        json!({"name": format!("thing{number}"), "description": about, "inputSchema": {"type": "object"}})
    };
    script.set(json!({"tools": (0..60).map(tool).collect::<Vec<_>>()}));
    let client = daemon.client("alice").await;
    client.call("mcp.add", json!({"name": "fake", "config": script.entry(), "scope": "user"})).await;
    let session = client.create_with(&daemon, json!({"mode": "default"})).await;
    let rule = json!({"session_id": session.id, "kind": "allow", "rule": "mcp__fake", "scope": "session"});
    client.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("ToolSearch", json!({"query": "thing17"}))]));
    daemon.models.push(Step::calls([("mcp__fake__thing17", json!({}))]));
    daemon.models.push(Step::calls([("ToolSearch", json!({"query": "select:mcp__fake__thing5"}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let tools = |at: usize| {
        let tools = daemon.models.requests()[at].body["tools"].clone();
        let names = tools
            .as_array()
            .expect("a list")
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned());
        names.collect::<Vec<_>>()
    };
    let first = tools(0);
    assert!(
        first.contains(&"ToolSearch".into()) && first.iter().all(|name| !name.starts_with("mcp__")),
        "{first:?}"
    );
    assert!(tools(1).starts_with(&first) && tools(1)[first.len()] == "mcp__fake__thing17");
    assert!(
        tools(3).starts_with(&tools(1)) && tools(3).last().is_some_and(|name| name == "mcp__fake__thing5")
    );
    let done = seen.events_of("tool.completed");
    assert_eq!(done[1]["output"], "called thing17");
    assert!(seen.events_of("permission.requested").is_empty());
    let context = session.call("context", json!({})).await;
    assert!(context["parts"].to_string().contains("\"mcp\""), "{context}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn sandboxed_server_writes_only_in_workspace() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "fake");
    let client = daemon.client("alice").await;
    let mut config = script.entry();
    config["sandbox"] = json!(true);
    client.call("mcp.add", json!({"name": "fake", "config": config, "scope": "user"})).await;
    let session = client.create(&daemon).await;
    let rule = json!({"session_id": session.id, "kind": "allow", "rule": "mcp__fake", "scope": "session"});
    client.call("permission.add_rule", rule).await;
    let mut seen = session.follow().await;
    let (inside, outside) = (daemon.workspace().join("inside"), daemon.path("home/outside"));
    for path in [&inside, &outside] {
        daemon.models.push(Step::calls([("mcp__fake__write", json!({"text": path}))]));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        seen.turn_ends("success").await;
    }
    let report = client.call("daemon.status", json!({})).await.to_string();
    let done = seen.events_of("tool.completed");
    if done[1]["output"] == "written" && (report.contains("rlimits") || report.contains("off")) {
        base::skip_test!("no sandbox works here");
        return;
    }
    assert!(inside.exists(), "{done:?}");
    assert!(!outside.exists(), "{done:?}");
}

#[tokio::test]
async fn foreign_client_drives_sessions_through_mcp_serve() {
    let daemon = TestDaemon::start().await;
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_agentctl"));
    program.args(["mcp", "serve"]).current_dir(daemon.workspace()).env("AGENTD_SOCKET", daemon.socket());
    program.env("AGENTD_CONFIG", daemon.path("config.toml")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = program.kill_on_drop(true).spawn().expect("started");
    let (mut input, output) = (program.stdin.take().expect("a pipe"), program.stdout.take().expect("a pipe"));
    let mut lines = BufReader::new(output).lines();
    let mut ask = async |message: Value| -> Value {
        input.write_all(format!("{message}\n").as_bytes()).await.expect("written");
        let line =
            with_deadline("a reply", String::new, lines.next_line()).await.expect("read").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    assert_eq!(ask(hello).await["result"]["serverInfo"]["name"], "agentctl");
    let listed = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(6));
    let mut number = 2;
    let mut call = async |tool: &str, arguments: Value| -> Value {
        number += 1;
        let params = json!({"name": tool, "arguments": arguments});
        let reply =
            ask(json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})).await;
        assert_eq!(reply["id"], number);
        reply["result"].clone()
    };
    daemon.models.push(Step::calls([("Bash", json!({"command": "touch made"}))]));
    let started = call("session_start", json!({"prompt": "make a file"})).await["structuredContent"].clone();
    let id = json!({"session_id": started["session_id"]});
    let mut wait = id.clone();
    wait["timeout_ms"] = json!(20_000);
    let waited = call("session_wait", wait.clone()).await["structuredContent"].clone();
    assert_eq!(waited["state"], "requires_action", "the user decides: {waited}");
    let approve = call("session_approve", json!({})).await;
    assert_eq!(approve, Value::Null, "there is no such tool");
    // The user answers with another client.
    let client = daemon.client("user").await;
    let request = client.call("permission.list", json!({})).await["requests"][0]["request_id"].clone();
    daemon.models.push(Step::text("Made."));
    client.call("session.approve", json!({"request_id": request, "decision": "allow"})).await;
    let waited = call("session_wait", wait).await["structuredContent"].clone();
    assert_eq!((&waited["state"], &waited["result"]["text"]), (&json!("idle"), &json!("Made.")));
    let items = call("session_read", id.clone()).await["structuredContent"]["items"].to_string();
    assert!(items.contains("touch made") && items.contains("Made."), "{items}");
    daemon.models.push(Step::text("Again."));
    let mut send = id;
    send["prompt"] = json!("once more");
    assert!(call("session_send", send).await["structuredContent"]["turn_id"].is_string());
    let other = client.create(&daemon).await;
    let foreign = call("session_send", json!({"session_id": other.id, "prompt": "do it"})).await;
    assert!(foreign.to_string().contains("--all-sessions"), "{foreign}");
    let listed = call("session_list", json!({})).await["structuredContent"]["sessions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    let wrong = call("session_status", json!({"session_id": "ses_none"})).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
}
