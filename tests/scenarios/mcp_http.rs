//! MCP servers over HTTP: failed calls with an unknown outcome, and limits.

use serde_json::{Value, json};

use crate::scenarios::mcp::{bypass, turn};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::mcp_server::{McpScript, tools_with};

/// A daemon with one user's server over HTTP.
async fn http_daemon(tools: &[&str]) -> (TestDaemon, McpScript) {
    let mut daemon = TestDaemon::builder().build().await;
    let script = McpScript::new(&daemon, "fake");
    script.set(json!({"tools": tools_with(tools)}));
    let (url, _) = script.serve_http();
    let config = daemon.path("config.toml");
    let text = std::fs::read_to_string(&config).expect("read") + &format!("[mcp.fake]\nurl = \"{url}\"\n");
    std::fs::write(config, text).expect("written");
    daemon.launch().await;
    (daemon, script)
}

async fn call(daemon: &TestDaemon, session: &Session, seen: &mut Log, tool: &str) -> Value {
    turn(daemon, session, seen, &format!("mcp__fake__{tool}"), json!({})).await
}

#[tokio::test]
async fn http_call_without_reply_has_unknown_outcome() {
    let (daemon, script) = http_daemon(&["drop", "broken"]).await;
    let (session, mut seen) = bypass(&daemon).await;
    for tool in ["broken", "drop"] {
        let done = call(&daemon, &session, &mut seen, tool).await;
        assert_eq!(
            script.count(&format!("call {tool}")),
            1,
            "it reached the server once: {:?}",
            script.lines()
        );
        assert_eq!(done["code"], "outcome_unknown", "{tool}: {done}");
    }
}

#[tokio::test]
async fn flooding_http_server_is_ended() {
    let (daemon, _script) = http_daemon(&[]).await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = call(&daemon, &session, &mut seen, "flood").await;
    assert_eq!(done["code"], "outcome_unknown", "{done}");
    assert!(done["output"].as_str().expect("words").contains("20000 messages"), "{done}");
}

#[tokio::test]
async fn untrusted_project_server_keeps_user_server() {
    let (daemon, _script) = http_daemon(&[]).await;
    daemon.write(".mcp.json", &json!({"mcpServers": {"fake": {"command": "false"}}}).to_string());
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "mine"})).await;
    assert_eq!(done["output"], "mine");
}
