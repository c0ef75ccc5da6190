//! kill -9 and a fresh start: what was shown is there, what was pending is pending, what was asked
//! is asked again, and what may have happened is not done twice.

use serde_json::json;

use super::bash;
use crate::support::daemon::{BOTH_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

#[tokio::test]
async fn a_pending_question_survives_and_its_answer_runs_the_tool_once() {
    for api in BOTH_APIS {
        let mut house = TestDaemon::builder().api(api).start().await;
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
        let mut house = TestDaemon::builder().api(api).start().await;
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
async fn a_queued_input_is_not_forgotten() {
    let mut house = TestDaemon::start().await;
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
async fn a_turn_that_the_daemon_does_not_survive_is_given_up_in_words() {
    let mut house = TestDaemon::builder().config("[retry]\nresume_base_ms = 1").start().await;
    let mut session = house.client("alice").await.create(&house).await;
    let gate = Gate::new();
    let hold = gate.clone();
    house.models.otherwise(move |_| Step::text("never ending").hold_after(1, &hold));
    session.submit("go").await;
    let mut requests = 0;
    loop {
        let mut seen = session.follow().await;
        requests += 1;
        let either = seen.find("an answer to begin or the turn to end", |event| {
            let is_this_attempt = house.models.requests().len() >= requests;
            event["type"] == "turn.completed" || (event["type"] == "message.text_delta" && is_this_attempt)
        });
        if either.await["type"] == "turn.completed" {
            break;
        }
        house.crash_and_restart().await;
        session = house.client("alice").await.join(&session);
    }
    assert_eq!(house.models.requests().len(), 4, "once and three times again");
    let journal = session.events().await;
    let ended = journal.iter().find(|event| event["type"] == "turn.completed").expect("it ended");
    assert_eq!(ended["result"]["subtype"], "error_during_execution");
    assert_eq!(ended["result"]["errors"][0]["kind"], "resumed_too_often");

    house.models.otherwise(|_| Step::text("Here."));
    let mut seen = session.follow_after(ended["seq"].as_u64().expect("a seq")).await;
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    house.models.assert_no_breach();
}

#[tokio::test]
async fn many_sessions_in_every_state_are_picked_up_together() {
    let mut house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let gate = Gate::new();
    let hold = gate.clone();
    house.models.otherwise(move |request| match request.body.to_string() {
        body if body.contains("tool_result") => Step::text("Done."),
        body if body.contains("ask me") => Step::calls([bash("echo x >> log.txt")]),
        _ => Step::text("one two").hold_after(1, &hold),
    });
    let mut all = Vec::new();
    for n in 0..12 {
        let session = alice.create(&house).await;
        let mut seen = session.follow().await;
        let asks = n % 2 == 0;
        session.submit(if asks { "ask me" } else { "stream" }).await;
        seen.wait_for(if asks { "permission.requested" } else { "message.text_delta" }).await;
        all.push((asks, session));
    }
    house.crash_and_restart().await;
    gate.open();
    let alice = house.client("alice").await;
    let pending = alice.call("permission.list", json!({"limit": 4})).await;
    assert_eq!(pending["requests"].as_array().expect("a list").len(), 4);
    let rest = alice.call("permission.list", json!({"cursor": pending["next_cursor"]})).await;
    assert_eq!(rest["requests"].as_array().expect("a list").len(), 2);
    for (asks, session) in all {
        let session = alice.join(&session);
        let mut seen = session.follow().await;
        if asks {
            let asked = seen.wait_for("permission.requested").await;
            session.allow(&asked).await;
        }
        seen.turn_ends("success").await;
    }
    assert_eq!(house.read("log.txt").lines().count(), 6);
    house.models.assert_no_breach();
}

#[tokio::test]
async fn what_was_aborted_before_the_crash_stays_aborted() {
    let mut house = TestDaemon::builder().config(BASH_ALLOWED).start().await;
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
    let mut house = TestDaemon::start().await;
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
