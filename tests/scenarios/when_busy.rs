//! Submitting while a turn runs: queue, steer, interrupt or refuse.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// A session whose first turn stops in the middle of an answer until the gate is opened.
async fn a_running_turn(daemon: &TestDaemon) -> (Session, Log, Gate, String) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let turn = session.submit("first").await;
    seen.text_of(1).await;
    (session, seen, gate, turn)
}

fn last_words(request: &crate::support::model_server::Request) -> String {
    request.messages().last().expect("messages")["content"].to_string()
}

#[tokio::test]
async fn input_during_turn_is_queued_by_default() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turn) = a_running_turn(&daemon).await;
    let reply = session.submit_with(json!({"input": "second"})).await;
    assert_eq!(reply["state"], "queued");
    let queued = seen.wait_for("turn.queued").await;
    assert_eq!(queued["turn_id"], reply["turn_id"]);
    daemon.models.push(Step::text("three"));
    gate.open();
    assert_eq!(seen.wait_for("turn.completed").await["turn_id"], json!(turn));
    assert_eq!(seen.wait_for("turn.started").await["turn_id"], reply["turn_id"]);
    seen.turn_ends("success").await;
    assert!(last_words(&daemon.models.requests()[1]).contains("second"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn steering_input_is_sent_with_next_tool_results() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("true")]).say("I look.").hold_after(1, &gate));
    daemon.models.push(Step::text("As you say."));
    let turn = session.submit("look around").await;
    seen.text_of(1).await;
    let reply = session.submit_with(json!({"input": "but not in vendor", "when_busy": "steer"})).await;
    assert_eq!((reply["state"].as_str(), reply["turn_id"].as_str()), (Some("steered"), Some(turn.as_str())));
    gate.open();
    assert_eq!(seen.turn_ends("success").await["model_calls"], 2);
    let second = &daemon.models.requests()[1];
    assert_eq!(second.tool_results().len(), 1);
    assert!(last_words(second).contains("but not in vendor"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn steering_input_at_turn_end_continues_turn() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turn) = a_running_turn(&daemon).await;
    session.submit_with(json!({"input": "and three?", "when_busy": "steer"})).await;
    daemon.models.push(Step::text("three"));
    gate.open();
    let ended = seen.wait_for("turn.completed").await;
    assert_eq!((&ended["turn_id"], &ended["result"]["text"]), (&json!(turn), &json!("three")));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn interrupting_input_aborts_turn_and_starts_next() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, _gate, _) = a_running_turn(&daemon).await;
    let waiting = session.submit_with(json!({"input": "waits"})).await;
    daemon.models.push(Step::text("at once"));
    daemon.models.push(Step::text("later"));
    let urgent = session.submit_with(json!({"input": "urgent", "when_busy": "interrupt"})).await;
    seen.turn_ends("aborted").await;
    let next: Vec<Value> = vec![
        seen.wait_for("turn.started").await["turn_id"].clone(),
        seen.wait_for("turn.started").await["turn_id"].clone(),
    ];
    assert_eq!(next, [urgent["turn_id"].clone(), waiting["turn_id"].clone()]);
    assert_eq!(seen.turn_ends("success").await["text"], "later");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn submit_with_reject_policy_is_refused_during_turn() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turn) = a_running_turn(&daemon).await;
    let refusal = session.refused("submit", json!({"input": "now", "when_busy": "reject"})).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32012, "busy"));
    assert_eq!((&refusal.data["turn_id"], &refusal.data["retryable"]), (&json!(turn), &json!(true)));
    gate.open();
    seen.turn_ends("success").await;
    daemon.models.push(Step::text("now"));
    session.submit_with(json!({"input": "now", "when_busy": "reject"})).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn input_expecting_other_turn_is_refused_without_event() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turn) = a_running_turn(&daemon).await;
    let other = "turn_0190f2a4-0000-7000-8000-000000000000";
    let stale = json!({"input": "go on", "when_busy": "steer", "expected_turn_id": other});
    let refusal = session.refused("submit", stale).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32011, "stale_precondition"));
    assert_eq!(refusal.data["current_turn_id"], json!(turn));
    gate.open();
    seen.turn_ends("success").await;
    let stale = json!({"input": "go on", "expected_turn_id": turn});
    let refusal = session.refused("submit", stale).await;
    assert_eq!((refusal.code, &refusal.data["current_turn_id"]), (-32011, &Value::Null));
    assert_eq!(daemon.models.requests().len(), 1);
}

#[tokio::test]
async fn submit_reply_names_item_of_message_in_all_ways() {
    let mut daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Done."));
    let (session, mut seen, gate, _) = a_running_turn(&daemon).await;
    let item_of = |reply: &Value| reply["item_id"].as_str().expect("an item").to_owned();
    let steered = session.submit_with(json!({"input": "steered", "when_busy": "steer"})).await;
    let queued = session.submit_with(json!({"input": "queued", "idempotency_key": "k"})).await;
    let again = session.submit_with(json!({"input": "queued", "idempotency_key": "k"})).await;
    assert_eq!(again, queued);
    let cleared = session.submit_with(json!({"input": "/clear"})).await;
    assert_eq!(
        (&cleared["state"], &cleared["item_id"]),
        (&json!("queued"), &Value::Null),
        "it has no message"
    );
    let params = json!({"turn_id": cleared["turn_id"]});
    session.call("queue.remove", params).await;
    let edited = json!({"turn_id": queued["turn_id"], "input": "queued and edited"});
    session.call("queue.update", edited).await;
    gate.open();
    seen.turn_ends("success").await;
    seen.turn_ends("success").await;
    let started = session.submit_with(json!({"input": "started"})).await;
    assert_eq!(started["state"], "running");
    seen.turn_ends("success").await;
    let items = session.items().await;
    let text_of =
        |item_id: &str| items.iter().find(|item| item["item_id"] == item_id).map(|item| item["text"].clone());
    assert_eq!(text_of(&item_of(&steered)), Some(json!("steered")));
    assert_eq!(text_of(&item_of(&queued)), Some(json!("queued and edited")));
    assert_eq!(text_of(&item_of(&started)), Some(json!("started")));

    // A restart keeps the item of a queued input.
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("again").await;
    gate.wait_reached().await;
    let kept = session.submit_with(json!({"input": "kept"})).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("success").await;
    seen.turn_ends("success").await;
    let items = session.items().await;
    let kept = items.iter().find(|item| item["item_id"] == kept["item_id"]).expect("the item");
    assert_eq!(kept["text"], "kept");
}
