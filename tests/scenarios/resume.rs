//! kill -9 and a fresh start: what was shown is there, what was pending is pending, what was asked
//! is asked again, and what may have happened is not done twice.

use serde_json::json;

use super::bash;
use crate::support::daemon::{BOTH_APIS, House};
use crate::support::model_server::{Gate, Step};
use crate::support::wait::until;

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

#[tokio::test]
async fn a_pending_question_survives_and_its_answer_runs_the_tool_once() {
    for api in BOTH_APIS {
        let mut house = House::plan().speaking(api).start().await;
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        house.models.push(Step::calls([bash("echo once >> log.txt")]));
        house.models.push(Step::text("Logged."));
        session.submit("log it").await;
        let asked = seen.wait_for("permission.requested").await;

        house.crash_and_restart().await;
        let session = house.client("bob").await.join(&session);
        let pending = session.pending().await;
        assert_eq!(pending.len(), 1);
        for field in ["request_id", "call_id", "tool", "input", "summary", "suggestions"] {
            assert_eq!(pending[0][field], asked[field], "{field}");
        }
        assert_eq!(session.view().await["state"], "requires_action");
        let mut seen = session.follow().await;
        assert_eq!(seen.wait_for("permission.requested").await, asked, "announced to whoever attaches");
        session.allow(&asked).await;
        assert_eq!(seen.turn_ends("success").await["text"], "Logged.");
        assert_eq!(house.read("log.txt"), "once\n");
        assert_eq!(house.models.requests().len(), 2, "the model was not asked again for the call");
        assert_eq!(session.answer_refused(&asked, json!({"decision": "allow"})).await.code, -32014);

        house.crash_and_restart().await;
        let session = house.client("carol").await.join(&session);
        let late = session.answer_refused(&asked, json!({"decision": "deny"})).await;
        assert_eq!((late.code, &late.data["answered_by"]["client"]), (-32014, &json!("bob")));
        assert_eq!(session.view().await["state"], "idle");
        assert_eq!(house.read("log.txt"), "once\n");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn an_answer_cut_off_in_mid_stream_is_marked_and_asked_for_again() {
    for api in BOTH_APIS {
        let mut house = House::plan().speaking(api).start().await;
        let session = house.client("alice").await.create(&house).await;
        let mut seen = session.follow().await;
        let gate = Gate::new();
        house.models.push(Step::text("lost words").hold_after(1, &gate));
        house.models.push(Step::text("whole answer"));
        session.submit("tell me").await;
        assert_eq!(seen.text_of(1).await, "lost ");

        house.crash_and_restart().await;
        let session = house.client("alice").await.join(&session);
        let mut seen = session.follow().await;
        let cut = seen.answer().await;
        assert_eq!((&cut["item"]["status"], &cut["item"]["text"]), (&json!("interrupted"), &json!("lost ")));
        seen.wait_for("turn.resumed").await;
        let whole = seen.answer().await;
        assert_eq!(
            (&whole["item"]["status"], &whole["item"]["text"]),
            (&json!("completed"), &json!("whole answer"))
        );
        seen.turn_ends("success").await;
        let requests = house.models.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].body, requests[1].body, "the same request, byte for byte");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn a_command_that_was_running_is_unknown_and_never_run_again() {
    let mut house = House::plan().config(BASH_ALLOWED).start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house
        .models
        .push(Step::calls([bash("echo begun >> log.txt; sleep 1000"), bash("echo second >> log.txt")]));
    session.submit("go").await;
    let started = seen.wait_for("tool.started").await;
    until("the command to begin", || house.log(), || (!house.read("log.txt").is_empty()).then_some(())).await;

    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    let lost = seen.wait_for_call("tool.completed", &started["call_id"]).await;
    assert_eq!(lost["status"], "unknown");
    seen.turn_ends("error_during_execution").await;
    seen.state_is("idle").await;

    house.models.push(Step::text("I look first."));
    session.submit("what happened?").await;
    seen.turn_ends("success").await;
    let request = house.models.requests()[1].body.to_string();
    assert!(request.contains("outcome is unknown"), "the model is told: {request}");
    assert_eq!(house.read("log.txt"), "begun\n");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn a_queued_input_is_not_forgotten() {
    let mut house = House::start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    house.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("first").await;
    seen.text_of(1).await;
    let queued = session.submit_with(json!({"input": "second"})).await;

    house.models.push(Step::text("first answer"));
    house.models.push(Step::text("second answer"));
    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.turn_ends("success").await["text"], "first answer");
    assert_eq!(seen.wait_for("turn.started").await["turn_id"], queued["turn_id"]);
    assert_eq!(seen.turn_ends("success").await["text"], "second answer");
    house.models.assert_no_breach();
}

#[tokio::test]
async fn what_was_aborted_before_the_crash_stays_aborted() {
    let mut house = House::plan().config(BASH_ALLOWED).start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    // It does not listen to a polite signal: the abort takes its time, and the crash comes between.
    house.models.push(Step::calls([bash("trap '' TERM; echo begun; sleep 1000; sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    session.send("abort", json!({})).await;
    seen.wait_for("turn.aborting").await;

    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    seen.turn_ends("aborted").await;
    assert_eq!(session.view().await["state"], "idle");
    assert_eq!(house.models.requests().len(), 1, "the model was not asked again");
    house.models.push(Step::text("Here."));
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    house.models.assert_no_breach();
}

#[tokio::test]
async fn sessions_and_conversations_are_there_after_a_restart() {
    let mut house = House::start().await;
    let alice = house.client("alice").await;
    house.models.otherwise(|_| Step::text("Hello."));
    let mut before = Vec::new();
    for name in ["first", "second", "third"] {
        let session = alice.create_with(&house, json!({"title": name})).await;
        let mut seen = session.follow().await;
        session.submit("hello").await;
        seen.turn_ends("success").await;
        seen.unsubscribe().await;
        before.push((session.items().await, session));
    }
    house.crash_and_restart().await;
    let alice = house.client("alice").await;
    let list = alice.call("session.list", json!({})).await;
    let titles: Vec<_> =
        list["sessions"].as_array().expect("a list").iter().map(|s| s["title"].clone()).collect();
    assert_eq!(titles, ["third", "second", "first"]);
    for (items, session) in before {
        assert_eq!(alice.join(&session).items().await, items);
    }
}
