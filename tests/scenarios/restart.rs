//! How a turn continues after a restart: a bounded number of times, with growing waits and charged
//! costs; or not at all if `on_restart = "pause"`.

use serde_json::json;

use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

/// Bytes of an answer of the model server up to the middle of its text.
const CUT_BYTES: usize = 700;

const PRICE: &str = "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 1.0 }";

#[tokio::test]
async fn second_resume_waits_and_abort_ends_wait() {
    let mut daemon = TestDaemon::builder().config("[retry]\nresume_base_ms = 600000").start().await;
    let mut session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |_| Step::text("never ending").hold_after(1, &hold));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    for (resumes, delay_ms) in [(1, 0), (2, 600_000)] {
        daemon.crash_and_restart().await;
        session = daemon.client("alice").await.join(&session);
        let resumed = session
            .follow()
            .await
            .find("the resume", |event| event["type"] == "turn.resumed" && event["resumes"] == resumes)
            .await;
        assert_eq!(resumed["delay_ms"], delay_ms);
        if delay_ms == 0 {
            daemon.models.wait_for_requests(2).await;
        }
    }
    assert_eq!(session.view().await["state"], "running");
    session.call("abort", json!({})).await;
    session.follow().await.turn_ends("aborted").await;
    assert_eq!(daemon.models.requests().len(), 2, "no model request during the wait");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn model_call_lost_in_crash_is_charged_and_counted() {
    let mut daemon = TestDaemon::builder().config(PRICE).start().await;
    let budgets = json!({"budgets": {"model_calls": 2}});
    let session = daemon.client("alice").await.create_with(&daemon, budgets).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("lost words").hold_after(1, &gate));
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).usage(100, 10));
    session.submit("go").await;
    session.follow().await.text_of(1).await;

    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    let cut = seen.next_answer().await;
    assert_eq!((&cut["item"]["status"], &cut["superseded"]), (&json!("interrupted"), &json!(true)));
    let booked = seen.wait_for("usage").await;
    assert_eq!((&booked["reason"], &booked["estimated"]), (&json!("lost_attempt"), &json!(true)));
    let input = booked["usage"]["input_tokens"].as_u64().expect("tokens");
    let output = booked["usage"]["output_tokens"].as_u64().expect("tokens");
    let sent = daemon.models.requests()[0].body["messages"].to_string().len() as u64;
    assert!(input >= sent / 2 && output >= 2, "{booked}");
    assert_eq!(booked["cost_usd_micros"], input + output);
    // Two model calls were made, including the lost one: the budget is used up.
    let result = seen.turn_ends("error_max_turns").await;
    assert_eq!(result["model_calls"], 2);
    assert_eq!(result["usage"]["input_tokens"], input + 100);
    assert_eq!(result["cost_usd_micros"], input + output + 110);
    assert_eq!(session.view().await["usage"]["input_tokens"], input + 100);
    assert_eq!(daemon.models.requests().len(), 2);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn crash_loop_cannot_exceed_turn_budget() {
    let mut daemon = TestDaemon::start().await;
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"budgets": {"model_calls": 1}})).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("lost words").hold_after(1, &gate));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    session.follow().await.turn_ends("error_max_turns").await;
    assert_eq!(daemon.models.requests().len(), 1, "the model request is not repeated");
}

#[tokio::test]
async fn broken_stream_is_charged_marked_and_retried() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 1").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("half an answer and more").cut_after(CUT_BYTES));
    daemon.models.push(Step::text("whole"));
    session.submit("go").await;
    let first = seen.next_answer().await;
    assert_eq!((&first["item"]["status"], &first["superseded"]), (&json!("interrupted"), &json!(true)));
    seen.wait_for("usage").await;
    seen.wait_for("retry").await;
    let result = seen.turn_ends("success").await;
    assert_eq!(result["text"], "whole");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn configured_pause_on_restart_waits_for_user() {
    let mut daemon = TestDaemon::builder().build().await;
    let config = std::fs::read_to_string(daemon.path("config.toml")).expect("read");
    let config = config.replace("[daemon]\n", "[daemon]\non_restart = \"pause\"\n");
    std::fs::write(daemon.path("config.toml"), config).expect("written");
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    let (one, two) = (alice.create(&daemon).await, alice.create(&daemon).await);
    let own = alice.create_with(&daemon, json!({"on_restart": "resume"})).await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |_| Step::text("never ending").hold_after(1, &hold));
    for session in [&one, &two, &own] {
        session.submit("go").await;
        session.follow().await.text_of(1).await;
    }
    daemon.models.set_fallback(|_| Step::text("Here."));
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let (one, two, own) = (bob.join(&one), bob.join(&two), bob.join(&own));
    own.follow().await.turn_ends("success").await;

    let mut seen = one.follow().await;
    let asked = seen.wait_for("question.requested").await;
    assert_eq!((&asked["kind"], &asked["options"]), (&json!("resume"), &json!(["continue", "abort"])));
    seen.state_is("paused").await;
    daemon.crash_and_restart().await;
    let bob = daemon.client("bob").await;
    let (one, two) = (bob.join(&one), bob.join(&two));
    assert_eq!(one.view().await["state"], "paused");
    assert_eq!(daemon.models.requests().len(), 4, "paused turns send no model request");
    let mut seen = one.follow().await;
    bob.call("session.answer", json!({"request_id": asked["request_id"], "choice": "continue"})).await;
    assert_eq!(seen.turn_ends("success").await["text"], "Here.");
    assert_eq!(seen.events_of("question.requested").len(), 1);

    let mut seen = two.follow().await;
    assert_eq!(two.submit_with(json!({"input": "shorter, please"})).await["state"], "steered");
    seen.turn_ends("success").await;
    let last = daemon.models.requests().pop().expect("a request");
    assert!(last.body.to_string().contains("shorter, please"), "{}", last.body);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn session_pause_on_restart_is_ended_by_abort() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"on_restart": "pause"})).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("never ending").hold_after(1, &gate));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    let asked = seen.wait_for("question.requested").await;
    let answer = json!({"request_id": asked["request_id"], "choice": "abort"});
    session.client.call("session.answer", answer).await;
    seen.turn_ends("aborted").await;
    seen.state_is("idle").await;
    assert_eq!(daemon.models.requests().len(), 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn clean_stops_do_not_count_as_resumes() {
    let mut daemon = TestDaemon::start().await;
    let mut session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |_| Step::text("a long answer").hold_after(1, &hold));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    // One stop more than the number of resumes that a turn has after crashes.
    for stops in 1..=4 {
        daemon.stop().await;
        daemon.launch().await;
        session = daemon.client("alice").await.join(&session);
        daemon.models.wait_for_requests(stops + 1).await;
    }
    let journal = session.events().await;
    let resumed: Vec<_> = journal.iter().filter(|event| event["type"] == "turn.resumed").collect();
    assert!(resumed.len() == 4, "{resumed:?}");
    assert!(resumed.iter().all(|event| event["resumes"] == 0 && event["delay_ms"] == 0), "{resumed:?}");
    assert_eq!(journal.iter().filter(|event| event["type"] == "turn.parked").count(), 4);

    gate.open();
    session.follow().await.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn read_only_command_runs_again_after_crash_without_request() {
    let mut daemon = TestDaemon::start().await;
    daemon.write("notes", "wait\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let command = "awk '/wait/ { while (1) {} } { print }' notes";
    daemon.models.push(Step::calls([super::bash(command)]));
    daemon.models.push(Step::text("Read."));
    session.submit("read it").await;
    session.follow().await.wait_for("tool.started").await;
    daemon.tool_processes_reach(|alive| alive >= 1).await;

    daemon.write("notes", "from the file\n");
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    seen.wait_for("turn.resumed").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("question.requested").is_empty());
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("from the file"), "{results:?}");
}
