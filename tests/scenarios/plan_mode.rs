//! Plan mode: read-only until the user approves a plan, which the model presents with ExitPlanMode.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

fn plan(text: &str) -> (&'static str, Value) {
    ("ExitPlanMode", json!({ "plan": text }))
}

fn write(path: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": path, "content": "new"}))
}

/// A session in plan mode whose model proposes a plan, and the request.
async fn propose_plan(daemon: &TestDaemon) -> (Session, Log, Value) {
    let session = daemon.client("alice").await.create_with(daemon, json!({"mode": "plan"})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([plan("1. Write a.txt")]));
    session.submit("change it").await;
    let request = seen.wait_for("permission.requested").await;
    (session, seen, request)
}

async fn mode(session: &Session) -> Value {
    session.view().await["mode"].clone()
}

#[tokio::test]
async fn approved_plan_ends_plan_mode_and_model_may_edit() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, request) = propose_plan(&daemon).await;
    assert_eq!((&request["kind"], &request["input"]["plan"]), (&json!("plan"), &json!("1. Write a.txt")));
    assert_eq!(mode(&session).await, "plan");
    let sent = daemon.models.requests()[0].body.to_string();
    assert!(sent.contains("Plan mode is on") && sent.contains("present it with ExitPlanMode"), "{sent}");
    daemon.models.push(Step::calls([write("a.txt")]));
    daemon.models.push(Step::text("Done."));
    session.answer(&request, json!({"decision": "allow", "mode": "accept_edits"})).await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("a.txt"), "new");
    assert_eq!(mode(&session).await, "accept_edits");
    assert_eq!(seen.events_of("permission.requested").len(), 1, "edits are accepted now");
    let items = session.items().await;
    let item = items.iter().find(|item| item["kind"] == "plan").expect("a plan item");
    assert_eq!((&item["status"], &item["call"]["status"]), (&json!("completed"), &json!("completed")));
    assert!(item["text"].to_string().contains("The user approved the plan"), "{item}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn plan_request_survives_crash_and_edit_of_plan_reaches_model() {
    let mut daemon = TestDaemon::start().await;
    let (session, seen, request) = propose_plan(&daemon).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::text("Done."));
    let changed = json!({"decision": "allow", "updated_input": {"plan": "1. Write b.txt"}});
    session.answer(&request, changed).await;
    seen.turn_ends("success").await;
    assert_eq!(mode(&session).await, "default");
    let results = daemon.models.requests().last().expect("one").tool_results();
    let text = &results.last().expect("a result").1;
    assert!(text.contains("Follow this version:\n1. Write b.txt"), "{text}");
}

#[tokio::test]
async fn declined_plan_keeps_plan_mode_and_tells_why() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, request) = propose_plan(&daemon).await;
    daemon.models.push(Step::calls([write("a.txt")]));
    daemon.models.push(Step::text("As you wish."));
    session.answer(&request, json!({"decision": "deny", "feedback": "smaller"})).await;
    seen.turn_ends("success").await;
    assert_eq!(mode(&session).await, "plan");
    assert!(!daemon.workspace().join("a.txt").exists(), "plan mode changes no file");
    let results = daemon.models.requests()[1].tool_results();
    assert!(
        results[0].1.contains("says: smaller") && results[0].1.contains("Plan mode stays on"),
        "{results:?}"
    );
    let denied = &seen.events_of("tool.completed")[1];
    assert_eq!((&denied["tool"], &denied["status"]), (&json!("Write"), &json!("denied")));
}

#[tokio::test]
async fn wrong_answers_to_plan_are_refused_and_it_stays_pending() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, request) = propose_plan(&daemon).await;
    let id = request["request_id"].clone();
    let alice = daemon.client("alice").await;
    for (answer, path) in [
        (json!({"decision": "allow", "mode": "plan"}), "mode"),
        (json!({"decision": "allow", "mode": "bypass"}), "mode"),
        (json!({"decision": "deny", "mode": "default"}), "mode"),
        (json!({"decision": "allow", "scope": "session"}), "mode"),
        (json!({"decision": "allow", "updated_input": {"plan": " "}}), "updated_input"),
    ] {
        let mut params = answer.clone();
        params["request_id"] = id.clone();
        let refused = alice.refused("session.approve", params).await;
        assert_eq!(
            (refused.kind.as_str(), &refused.data["path"]),
            ("invalid_params", &json!(path)),
            "{answer}"
        );
    }
    let pending = session.pending().await;
    assert_eq!((&pending[0]["kind"], &pending[0]["request_id"]), (&json!("plan"), &id));
    daemon.models.push(Step::text("Done."));
    session.answer(&request, json!({"decision": "allow"})).await;
    seen.turn_ends("success").await;
    let mut params = json!({"decision": "allow"});
    params["request_id"] = id;
    assert_eq!(alice.refused("session.approve", params).await.kind, "not_pending");
}

#[tokio::test]
async fn mode_of_answer_to_other_request_is_refused() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch x")]));
    session.submit("go").await;
    let request = seen.wait_for("permission.requested").await;
    let params = json!({"request_id": request["request_id"], "decision": "allow", "mode": "accept_edits"});
    let refused = daemon.client("alice").await.refused("session.approve", params).await;
    assert_eq!((refused.kind.as_str(), &refused.data["path"]), ("invalid_params", &json!("mode")));
}

#[tokio::test]
async fn plan_outside_plan_mode_or_without_user_is_an_error() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    for (options, status, code) in [
        (json!({}), "failed", "not_in_plan_mode"),
        (json!({"mode": "plan", "background": true}), "denied", "unattended"),
    ] {
        let session = alice.create_with(&daemon, options).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([plan("1. x")]));
        daemon.models.push(Step::text("Then so."));
        session.submit("go").await;
        seen.turn_ends("success").await;
        let done = &seen.events_of("tool.completed")[0];
        assert_eq!((&done["status"], &done["code"]), (&json!(status), &json!(code)));
        assert!(seen.events_of("permission.requested").is_empty());
    }
}

#[tokio::test]
async fn agentctl_shows_plan_and_approves_it_with_mode() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, request) = propose_plan(&daemon).await;
    let id = request["request_id"].as_str().expect("an id");
    let shown = ctl(&daemon, &["approvals", id]).await.stdout();
    assert!(shown.contains("proposes this plan") && shown.contains("1. Write a.txt"), "{shown}");
    daemon.models.push(Step::text("Done."));
    ctl(&daemon, &["approve", id, "--mode", "accept_edits"]).await.stdout();
    seen.turn_ends("success").await;
    assert_eq!(mode(&session).await, "accept_edits");
}
