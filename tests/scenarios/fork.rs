//! `session.fork`: a new session with the conversation of another one.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use super::export::{exported, imported};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

fn texts(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["text"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn fork_session(session: &Session, params: Value) -> Session {
    let reply = session.call("fork", params).await;
    let id = reply["session"]["session_id"].as_str().expect("an id").to_owned();
    Session { client: session.client.clone(), id }
}

#[tokio::test]
async fn fork_at_item_continues_without_later_turns_after_parent_is_deleted() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"title": "parent"})).await;
    for answer in ["one", "two"] {
        daemon.models.push(Step::text(answer).usage(100, 10));
        session.submit(&format!("say {answer}")).await;
        session.call("wait", json!({})).await;
    }
    let items = session.items().await;
    let params = json!({"item_id": items[1]["item_id"], "idempotency_key": "k"});
    let fork = fork_session(&session, params.clone()).await;
    assert_eq!(fork_session(&session, params).await.id, fork.id, "the same key gives the same session");
    let view = fork.view().await;
    assert_eq!((&view["title"], &view["state"]), (&json!("parent (fork)"), &json!("idle")));
    assert_eq!(view["forked_from"], json!({"session_id": session.id, "item_id": items[1]["item_id"]}));
    assert_eq!((&view["cost_usd_micros"], &view["usage"]["input_tokens"]), (&json!(0), &json!(0)));
    assert_eq!(texts(&fork.items().await), ["say one", "one"]);
    session.call("delete", json!({})).await;
    daemon.kill().await;
    daemon.launch().await;

    let fork = daemon.client("bob").await.join(&fork);
    daemon.models.push(Step::text("three"));
    fork.submit("say three").await;
    assert_eq!(fork.call("wait", json!({})).await["result"]["text"], "three");
    let request = daemon.models.requests().pop().expect("a request");
    let messages = serde_json::to_string(request.messages()).expect("json");
    assert!(messages.contains("say one") && !messages.contains("say two"), "{messages}");
    assert_eq!(texts(&fork.items().await), ["say one", "one", "say three", "three"]);
    let found = fork.client.call("session.list", json!({"search": "say one"})).await;
    assert_eq!(found["sessions"][0]["session_id"], json!(fork.id), "the copied text is searched");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn fork_inside_tool_loop_pairs_calls_with_results() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(echo:*)\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo first"), bash("touch asks")]));
    session.submit("do it").await;
    seen.wait_for("permission.requested").await;
    seen.wait_for("tool.completed").await;
    let items = session.items().await;
    let call = items.iter().find(|item| item["status"] == "completed" && item["kind"] == "tool_call");
    let at = call.expect("the first call is done")["item_id"].clone();
    let running = items.iter().find(|item| item["status"] == "running").expect("a call waits");
    let refusal = session.refused("fork", json!({"item_id": running["item_id"]})).await;
    assert_eq!(refusal.data["path"], "item_id");
    for params in [json!({"item_id": at}), json!({})] {
        let fork = fork_session(&session, params).await;
        assert_eq!(fork.view().await["state"], "idle");
        assert_eq!(fork.pending().await.len(), 0);
        daemon.models.push(Step::text("go on"));
        fork.submit("go on").await;
        assert_eq!(fork.call("wait", json!({})).await["result"]["text"], "go on");
        let request = daemon.models.requests().pop().expect("a request");
        assert_eq!(request.tool_results().len(), 2, "each call has its result");
    }
    assert_eq!(session.view().await["state"], "requires_action", "the parent is unchanged");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn fork_of_missing_item_creates_nothing() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let missing = json!({"item_id": "item_0190f2a4-0000-7000-8000-000000000000"});
    let refusal = session.refused("fork", missing).await;
    assert_eq!(
        (refusal.code, refusal.kind.as_str(), &refusal.data["path"]),
        (-32002, "not_found", &json!("item_id"))
    );
    let other = json!({"session_id": "ses_0190f2a4-0000-7000-8000-000000000000"});
    assert_eq!(session.client.refused("session.fork", other).await.kind, "not_found");
    let listed = session.client.call("session.list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().expect("a list").len(), 1);
}

#[tokio::test]
async fn agentctl_fork_prints_id_of_session_with_title() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("half done").hold_after(1, &gate));
    let mut seen = session.follow().await;
    session.submit("go").await;
    seen.text_of(1).await;
    let id = ctl(&daemon, &["fork", &session.id, "--title", "another way"]).await.stdout().trim().to_owned();
    let fork = Session { client: session.client.clone(), id };
    assert_eq!(fork.view().await["title"], "another way");
    assert_eq!(texts(&fork.items().await), ["go"], "an answer in progress is not copied");
    gate.open();
}

#[tokio::test]
async fn fork_of_session_or_import_at_early_item_revives_no_permissions() {
    let daemon = TestDaemon::start().await;
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("created");
    let wide = json!({"mode": "accept_edits", "additional_dirs": [more]});
    let session = daemon.client("alice").await.create_with(&daemon, wide).await;
    for (rule, kind) in [("Bash(touch:*)", "allow"), ("Bash(false:*)", "deny")] {
        let rule = json!({"rule": rule, "kind": kind, "scope": "session", "session_id": session.id});
        session.client.call("permission.add_rule", rule).await;
    }
    daemon.models.push(Step::text("one"));
    session.submit("say one").await;
    session.call("wait", json!({})).await;
    let at = json!({"item_id": session.items().await[1]["item_id"]});
    let same = fork_session(&session, at.clone()).await;
    assert_eq!(same.view().await["mode"], "accept_edits", "the mode of the session now");
    let copy = imported(&session.client, &exported(&session, "jsonl").await).await;
    session.call("update", json!({"mode": "default", "additional_dirs": []})).await;
    let at_copy = json!({"item_id": copy.items().await[0]["item_id"]});
    for fork in [same, fork_session(&session, at).await, fork_session(&copy, at_copy).await] {
        let details = fork.call("get", json!({})).await["session"].clone();
        let is_same = details["mode"] == "accept_edits";
        assert!(is_same || details["mode"] == "default", "{details}");
        let dirs = details["additional_dirs"].as_array().map_or(0, Vec::len);
        assert_eq!(dirs, usize::from(is_same), "{details}");
        daemon.models.push(Step::calls([bash("false now"), bash("touch x")]));
        fork.submit("touch it").await;
        assert_eq!(fork.call("wait", json!({})).await["session"]["requires"], "permission");
        assert_eq!(fork.pending().await.len(), 1, "the deny rule is copied, the allow rule is not");
    }
    daemon.models.assert_no_breach();
}
