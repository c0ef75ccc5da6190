//! SIGKILL and a restart: shown events are kept, pending requests stay pending, model requests are
//! repeated, and a call that may have run does not run again.

use serde_json::json;

use super::bash;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

#[tokio::test]
async fn pending_request_survives_restart_and_answer_runs_once() {
    for api in MESSAGE_APIS {
        let mut daemon = TestDaemon::builder().api(api).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::calls([bash("echo once >> log.txt")]));
        daemon.models.push(Step::text("Logged."));
        session.submit("log it").await;
        let asked = seen.wait_for("permission.requested").await;

        daemon.crash_and_restart().await;
        let session = daemon.client("bob").await.join(&session);
        let pending = session.pending().await;
        assert_eq!(pending.len(), 1);
        for field in ["request_id", "call_id", "tool", "input", "summary", "suggestions"] {
            assert_eq!(pending[0][field], asked[field], "{field}");
        }
        assert_eq!(session.view().await["state"], "requires_action");
        let mut seen = session.follow().await;
        assert_eq!(
            seen.wait_for("permission.requested").await,
            asked,
            "announced to each client that attaches"
        );
        session.allow(&asked).await;
        assert_eq!(seen.turn_ends("success").await["text"], "Logged.");
        assert_eq!(daemon.read("log.txt"), "once\n");
        assert_eq!(daemon.models.requests().len(), 2, "the model was not asked again for the call");
        assert_eq!(session.answer_refused(&asked, json!({"decision": "allow"})).await.code, -32014);

        daemon.crash_and_restart().await;
        let session = daemon.client("carol").await.join(&session);
        let late = session.answer_refused(&asked, json!({"decision": "deny"})).await;
        assert_eq!((late.code, &late.data["answered_by"]["client"]), (-32014, &json!("bob")));
        assert_eq!(session.view().await["state"], "idle");
        assert_eq!(daemon.read("log.txt"), "once\n");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn interrupted_message_is_marked_and_requested_again() {
    for api in MESSAGE_APIS {
        let mut daemon = TestDaemon::builder().api(api).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        let gate = Gate::new();
        daemon.models.push(Step::text("lost words").hold_after(1, &gate));
        daemon.models.push(Step::text("whole answer"));
        session.submit("tell me").await;
        assert_eq!(seen.text_of(1).await, "lost ");

        daemon.crash_and_restart().await;
        let session = daemon.client("alice").await.join(&session);
        let mut seen = session.follow().await;
        let cut = seen.next_answer().await;
        assert_eq!((&cut["item"]["status"], &cut["item"]["text"]), (&json!("interrupted"), &json!("lost ")));
        seen.wait_for("turn.resumed").await;
        let whole = seen.next_answer().await;
        assert_eq!(
            (&whole["item"]["status"], &whole["item"]["text"]),
            (&json!("completed"), &json!("whole answer"))
        );
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0].body, requests[1].body, "the same request, byte for byte");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn queued_input_starts_after_restart() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("first").await;
    seen.text_of(1).await;
    let queued = session.submit_with(json!({"input": "second"})).await;

    daemon.models.push(Step::text("first answer"));
    daemon.models.push(Step::text("second answer"));
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.turn_ends("success").await["text"], "first answer");
    assert_eq!(seen.wait_for("turn.started").await["turn_id"], queued["turn_id"]);
    assert_eq!(seen.turn_ends("success").await["text"], "second answer");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn turn_over_resume_limit_ends_with_message() {
    let mut daemon = TestDaemon::builder().config("[retry]\nresume_base_ms = 1").start().await;
    let mut session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |_| Step::text("never ending").hold_after(1, &hold));
    session.submit("go").await;
    let mut requests = 0;
    loop {
        let mut seen = session.follow().await;
        requests += 1;
        let either = seen.find("an answer to begin or the turn to end", |event| {
            let is_this_attempt = daemon.models.requests().len() >= requests;
            event["type"] == "turn.completed" || (event["type"] == "message.text_delta" && is_this_attempt)
        });
        if either.await["type"] == "turn.completed" {
            break;
        }
        daemon.crash_and_restart().await;
        session = daemon.client("alice").await.join(&session);
    }
    assert_eq!(daemon.models.requests().len(), 4, "one request and three repetitions");
    let journal = session.events().await;
    let ended = journal.iter().find(|event| event["type"] == "turn.completed").expect("an end");
    assert_eq!(ended["result"]["subtype"], "error_during_execution");
    assert_eq!(ended["result"]["errors"][0]["kind"], "resumed_too_often");

    daemon.models.set_fallback(|_| Step::text("Here."));
    let mut seen = session.follow_after(ended["seq"].as_u64().expect("a seq")).await;
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn many_sessions_in_every_state_resume_together() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |request| match request.body.to_string() {
        body if body.contains("tool_result") => Step::text("Done."),
        body if body.contains("ask me") => Step::calls([bash("echo x >> log.txt")]),
        _ => Step::text("one two").hold_after(1, &hold),
    });
    let mut all = Vec::new();
    for n in 0..12 {
        let session = alice.create(&daemon).await;
        let mut seen = session.follow().await;
        let asks = n % 2 == 0;
        session.submit(if asks { "ask me" } else { "stream" }).await;
        seen.wait_for(if asks { "permission.requested" } else { "message.text_delta" }).await;
        all.push((asks, session));
    }
    daemon.crash_and_restart().await;
    gate.open();
    let alice = daemon.client("alice").await;
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
    assert_eq!(daemon.read("log.txt").lines().count(), 6);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn aborted_turn_stays_aborted_after_crash() {
    let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    // The command ignores SIGTERM, so the abort takes time and the crash happens during it.
    daemon.models.push(Step::calls([bash("trap '' TERM; echo begun; sleep 1000; sleep 1000")]));
    session.submit("go").await;
    seen.wait_for("tool.progress").await;
    session.send("abort", json!({})).await;
    seen.wait_for("turn.aborting").await;

    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    seen.turn_ends("aborted").await;
    assert_eq!(session.view().await["state"], "idle");
    assert_eq!(daemon.models.requests().len(), 1, "the model was not asked again");
    daemon.models.push(Step::text("Here."));
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn sessions_and_items_survive_restart() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    let mut before = Vec::new();
    for name in ["first", "second", "third"] {
        let session = alice.create_with(&daemon, json!({"title": name})).await;
        let mut seen = session.follow().await;
        session.submit("hello").await;
        seen.turn_ends("success").await;
        seen.unsubscribe().await;
        before.push((session.items().await, session));
    }
    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    let list = alice.call("session.list", json!({})).await;
    let titles: Vec<_> =
        list["sessions"].as_array().expect("a list").iter().map(|s| s["title"].clone()).collect();
    assert_eq!(titles, ["third", "second", "first"]);
    for (items, session) in before {
        assert_eq!(alice.join(&session).items().await, items);
    }
}
