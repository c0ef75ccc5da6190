//! Revisions and transports of the Model Context Protocol.

use std::time::Duration;

use serde_json::{Value, json};

use super::mcp::{bypass, daemon_with, offered_tools, turn};
use crate::support::daemon::TestDaemon;
use crate::support::mcp_server::{McpScript, tools_with};
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

#[tokio::test]
async fn every_revision_is_negotiated_over_stdio_and_http() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let script = McpScript::new(&daemon, revision);
        script.set(json!({ "revision": revision }));
        let (url, _heads) = script.serve_http();
        for config in [script.entry(), json!({ "url": url })] {
            let tested = client.call("mcp.test", json!({"config": config, "cwd": daemon.workspace()})).await;
            assert_eq!(
                (&tested["state"], &tested["protocol"]),
                (&json!("ready"), &json!(revision)),
                "{tested}"
            );
            assert_eq!(tested["tools"].as_array().map(Vec::len), Some(11), "{tested}");
        }
    }
}

#[tokio::test]
async fn server_that_ends_at_unknown_request_is_reached_by_older_revision() {
    let (daemon, script) = daemon_with(json!({"mode": "strict"}), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert_eq!(done["output"], "x");
    assert_eq!(script.count("start"), 2, "one start for each revision that is tried");
}

#[tokio::test]
async fn stateless_server_reports_changed_tools_through_subscription() {
    let behaviour = |more: &[&str]| json!({"revision": "2026-07-28", "tools": tools_with(more)});
    let (daemon, script) = daemon_with(behaviour(&["announce"]), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    poll_until(
        "the subscription",
        || format!("{:?}", script.lines()),
        || (script.count("listen") == 1).then_some(()),
    )
    .await;
    script.set(behaviour(&["announce", "extra"]));
    turn(&daemon, &session, &mut seen, "mcp__fake__announce", json!({})).await;
    let client = daemon.client("bob").await;
    for _ in 0..100 {
        let tools = client.call("mcp.tools", json!({"name": "fake", "cwd": daemon.workspace()})).await;
        if tools["tools"].to_string().contains("mcp__fake__extra") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    turn(&daemon, &session, &mut seen, "mcp__fake__echo", json!({"text": "x"})).await;
    assert!(offered_tools(&daemon).contains(&"mcp__fake__extra".to_owned()));
    daemon.models.assert_no_breach();
}

fn with_task(question: &str) -> Value {
    json!({"revision": "2026-07-28", "tools": tools_with(&["task"]), "question": question})
}

#[tokio::test]
async fn call_that_server_runs_as_task_is_followed_to_its_result() {
    let (daemon, script) = daemon_with(with_task(""), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    let done = turn(&daemon, &session, &mut seen, "mcp__fake__task", json!({})).await;
    assert_eq!((&done["output"], &done["status"]), (&json!("the task is done"), &json!("completed")));
    assert_eq!(script.count("call task"), 1, "the call is sent once");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_cancels_task_of_server() {
    let (daemon, script) = daemon_with(with_task("never"), "").await;
    let (session, mut seen) = bypass(&daemon).await;
    daemon.models.push(Step::calls([("mcp__fake__task", json!({}))]));
    session.submit("go").await;
    poll_until(
        "a look at the task",
        || format!("{:?}", script.lines()),
        || script.lines().contains(&"task".to_owned()).then_some(()),
    )
    .await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    poll_until(
        "its end",
        || format!("{:?}", script.lines()),
        || (script.count("task cancelled") == 1).then_some(()),
    )
    .await;
}

#[tokio::test]
async fn legacy_event_stream_server_fails_with_clear_error() {
    let daemon = TestDaemon::start().await;
    let old = json!({"mcpServers": {"old": {"type": "sse", "url": "http://localhost:1/sse"}}});
    daemon.write(".mcp.json", &old.to_string());
    daemon.trust().await;
    let client = daemon.client("alice").await;
    let listed = client.call("mcp.list", json!({"cwd": daemon.workspace()})).await["servers"][0].clone();
    assert_eq!(listed["state"], "failed");
    let error = listed["error"].as_str().expect("words");
    assert!(
        error.contains("`sse` of 2024 is not supported") && error.contains("transport = \"http\""),
        "{error}"
    );
    let add = json!({"name": "old", "config": {"transport": "sse", "url": "http://h/sse"}, "scope": "user"});
    assert!(client.refused("mcp.add", add).await.message.contains("not supported"));
}
