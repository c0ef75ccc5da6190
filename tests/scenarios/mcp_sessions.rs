//! MCP servers that are given for one session, and the order of all sources.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::mcp::{daemon_with, offered_tools, turn};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::mcp_server::{McpScript, tools_with};
use crate::support::model_server::Step;

async fn create_session(daemon: &TestDaemon, servers: Value) -> (Session, Log) {
    let client = daemon.client("alice").await;
    let session = client.create_with(daemon, json!({ "mcp_servers": servers })).await;
    for server in ["fake", "own"] {
        let rule = format!("mcp__{server}");
        let rule = json!({"session_id": session.id, "kind": "allow", "rule": rule, "scope": "session"});
        client.call("permission.add_rule", rule).await;
    }
    let seen = session.follow().await;
    (session, seen)
}

#[tokio::test]
async fn server_of_session_comes_before_project_and_user() {
    let (daemon, of_user) = daemon_with(json!({}), "").await;
    let (of_project, of_session) = (McpScript::new(&daemon, "project"), McpScript::new(&daemon, "session"));
    daemon.write(".mcp.json", &json!({"mcpServers": {"fake": of_project.entry()}}).to_string());
    daemon.trust().await;
    let starts = || [&of_user, &of_project, &of_session].map(|script| script.count("start"));
    let (session, mut seen) = create_session(&daemon, json!({"fake": of_session.entry()})).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!((&done["output"], starts()), (&json!("x"), [0, 0, 1]));
    let (other, mut seen_other) = create_session(&daemon, json!({})).await;
    turn(&daemon, &other, &mut seen_other, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(starts(), [0, 1, 1], "another session does not know it");
    let client = daemon.client("bob").await;
    let source = async |place: Value| client.call("mcp.list", place).await["servers"][0]["source"].clone();
    assert_eq!(source(json!({"session_id": session.id})).await, "session");
    assert_eq!(source(json!({"cwd": daemon.workspace()})).await, "project");
    assert_eq!(source(json!({})).await, "user");
    let both = json!({"session_id": session.id, "cwd": daemon.workspace()});
    assert_eq!(client.refused("mcp.list", both).await.kind, "invalid_params");
}

#[tokio::test]
async fn servers_of_session_survive_restart_and_are_in_no_event() {
    let mut daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "own");
    let mut entry = script.entry();
    entry["env"]["OWN_TOKEN"] = json!("canary-of-session");
    let (session, mut seen) = create_session(&daemon, json!({ "own": entry })).await;
    turn(&daemon, &session, &mut seen, "mcp__own__echo", json!({"text": "x"})).await;
    daemon.crash_and_restart().await;
    let client = daemon.client("bob").await;
    let session = client.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__own__echo", json!({"text": "y"})).await;
    assert_eq!(done["output"], "y");
    let exported = client.call("session.export", json!({"session_id": session.id, "format": "jsonl"})).await;
    assert!(!exported.to_string().contains("canary-of-session"));
    let events = client.call("session.events", json!({"session_id": session.id})).await;
    assert!(!events.to_string().contains("canary-of-session"));
    assert!(!daemon.log().contains("canary-of-session"));
    // A fork keeps the servers. After both sessions are deleted, no file contains the secret.
    let fork = client.call("session.fork", json!({"session_id": session.id})).await["session"].clone();
    let listed = client.call("mcp.list", json!({"session_id": fork["session_id"]})).await;
    assert_eq!(listed["servers"][0]["name"], "own");
    client.call("session.delete", json!({"session_id": session.id})).await;
    client.call("session.delete", json!({"session_id": fork["session_id"]})).await;
    let written = daemon.all_written_bytes();
    assert!(!String::from_utf8_lossy(&written).contains("canary-of-session"));
}

#[tokio::test]
async fn wrong_servers_of_session_are_refused() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let refused = async |servers: Value| {
        let params = json!({"cwd": daemon.workspace(), "mcp_servers": servers});
        let refused = client.refused("session.create", params).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("mcp_servers")));
        refused.message
    };
    assert!(refused(json!({"a b": {"command": "x"}})).await.contains("letters, digits"));
    assert!(refused(json!({"a": {"command": "x", "zork": 1}})).await.contains("zork"));
    assert!(refused(json!({"a": {}})).await.contains("`command`"));
    let id = "ses_0192aaaa-aaaa-7aaa-8aaa-aaaaaaaaaaaa";
    let with = |servers: Value| json!({"session_id": id, "cwd": daemon.workspace(), "mcp_servers": servers});
    let servers = json!({"a": {"command": "x"}});
    let first = client.call("session.create", with(servers.clone())).await;
    assert_eq!(client.call("session.create", with(servers)).await, first, "the same request");
    let other = client.refused("session.create", with(json!({"a": {"command": "y"}}))).await;
    assert_eq!(other.kind, "conflict");
}

#[tokio::test]
async fn updated_servers_of_session_hold_from_next_turn_on() {
    let mut daemon = TestDaemon::start().await;
    let (one, two) = (McpScript::new(&daemon, "one"), McpScript::new(&daemon, "two"));
    let (session, mut seen) = create_session(&daemon, json!({"fake": one.entry()})).await;
    turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    session.call("update", json!({"mcp_servers": {"own": two.entry()}, "idempotency_key": "k"})).await;
    assert_eq!((one.count("call"), two.count("start")), (1, 0), "nothing starts before the next turn");
    let done = turn(&daemon, &session, &mut seen, "mcp__own__echo", json!({"text": "y"})).await;
    assert_eq!((&done["output"], two.count("call")), (&json!("y"), 1));
    assert!(!offered_tools(&daemon).contains(&"mcp__fake__echo".to_owned()), "they replace the earlier ones");

    // Other changes keep them, also over a restart; wrong ones are refused and change nothing.
    session.call("update", json!({"title": "t"})).await;
    for wrong in [json!({"own": {"zork": 1}}), json!({"a b": two.entry()}), json!({"own": {}})] {
        let refused = session.refused("update", json!({"mcp_servers": wrong, "title": "wrong"})).await;
        assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("mcp_servers")));
    }
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    assert_eq!(session.view().await["title"], "t");
    let done = turn(&daemon, &session, &mut seen, "mcp__own__echo", json!({"text": "z"})).await;
    assert_eq!(done["output"], "z");

    // An empty map removes all of them.
    session.call("update", json!({"mcp_servers": {}})).await;
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert!(
        offered_tools(&daemon).iter().all(|name| !name.starts_with("mcp__")),
        "{:?}",
        offered_tools(&daemon)
    );
    let listed = session.client.call("mcp.list", json!({"session_id": session.id})).await;
    assert_eq!(listed["servers"], json!([]));
}

#[tokio::test]
async fn servers_with_colliding_names_are_reported_and_never_mixed() {
    let daemon = TestDaemon::start().await;
    let (one, two) = (McpScript::new(&daemon, "one"), McpScript::new(&daemon, "two"));
    two.set(json!({"tools": tools_with(&["extra"])}));
    // Both would be called mcp__own__… for the model.
    let (session, mut seen) = create_session(&daemon, json!({"own": one.entry(), "own_": two.entry()})).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__own__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    let failed =
        seen.events_of("mcp.status").into_iter().find(|event| event["server"] == "own_").expect("a state");
    assert_eq!(failed["state"], "failed");
    assert!(failed["error"].as_str().expect("words").contains("rename one of them"), "{failed}");
    assert_eq!((one.count("call"), two.count("start")), (1, 0));
    assert!(!offered_tools(&daemon).contains(&"mcp__own__extra".to_owned()));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn sub_agent_uses_servers_of_its_session() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "own");
    let (session, mut seen) = create_session(&daemon, json!({ "own": script.entry() })).await;
    let task = json!({"description": "d", "prompt": "echo it", "subagent_type": "general"});
    daemon.models.push(Step::calls([("Task", task)]));
    daemon.models.push(Step::calls([("mcp__own__echo", json!({"text": "deep"}))]));
    daemon.models.push(Step::text("Echoed."));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(script.count("call echo"), 1, "{:?}", script.lines());
    assert_eq!(script.count("start"), 1, "both share one process");
}

#[tokio::test]
async fn agentctl_run_takes_servers_from_file() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "own");
    let file = daemon.path("servers.json");
    std::fs::write(&file, json!({"mcpServers": {"own": script.entry()}}).to_string()).expect("written");
    daemon.models.push(Step::text("Hello."));
    let file = file.to_str().expect("text");
    assert!(ctl(&daemon, &["run", "--mcp-config", file, "hello"]).await.stdout().contains("Hello."));
    assert_eq!(script.count("start"), 1);
    assert!(offered_tools(&daemon).contains(&"mcp__own__echo".to_owned()));
    let missing = ctl(&daemon, &["run", "--mcp-config", "/no/such", "hello"]).await;
    assert_eq!(missing.code, 64, "{missing:?}");
}
