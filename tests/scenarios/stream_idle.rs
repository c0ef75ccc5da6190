//! A provider that goes silent, or sends only keep-alives: clients get a warning, the daemon drops the
//! attempt and retries it, and no other session waits.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, Api, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

async fn start(api: Api, retry: &str) -> (TestDaemon, Session, Log) {
    let config = format!("[retry]\nbase_ms = 1\nmax_ms = 5\n{retry}");
    let provider = "first_byte_timeout = \"500ms\"";
    let daemon = TestDaemon::builder().api(api).provider(provider).config(&config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let seen = session.follow().await;
    (daemon, session, seen)
}

/// The attempt is dropped as idle, with these words, and the next one succeeds.
async fn is_dropped(daemon: &TestDaemon, seen: &mut Log, words: &str) {
    let retry = seen.wait_for("retry").await;
    assert_eq!(retry["kind"], "idle", "{retry}");
    assert!(retry["reason"].as_str().is_some_and(|reason| reason.contains(words)), "{retry}");
    assert_eq!(seen.turn_ends("success").await["text"], "Here again.");
    daemon.models.wait_for_hangups(1).await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn silent_stream_is_reported_then_cancelled() {
    for api in ALL_APIS {
        // Once before the first word, once after it.
        for deltas in [None, Some(1)] {
            let (daemon, session, mut seen) =
                start(api, "idle_warn = \"60ms\"\nidle_timeout = \"500ms\"").await;
            let gate = Gate::new();
            let step = Step::text("one two");
            daemon.models.push(match deltas {
                None => step.hold(&gate),
                Some(deltas) => step.hold_after(deltas, &gate),
            });
            daemon.models.push(Step::text("Here again."));
            session.submit("hello").await;
            assert_eq!(seen.wait_for("stream.idle").await["silent_ms"], 60);
            let words = if deltas.is_some() { "idle_timeout" } else { "first_byte_timeout" };
            is_dropped(&daemon, &mut seen, words).await;
            let cut: Vec<Value> = seen.events_of("message.completed");
            let cut = cut.iter().filter(|event| event["item"]["status"] == "interrupted").count();
            assert_eq!(cut, usize::from(deltas.is_some()));
            // A silent model may be thinking, so the attempt is charged in any case.
            let booked = seen.events_of("usage");
            assert_eq!(booked.len(), 1, "{api:?}: {booked:?}");
            assert_eq!(
                (&booked[0]["reason"], &booked[0]["estimated"]),
                (&json!("lost_attempt"), &json!(true))
            );
        }
    }
}

#[tokio::test]
async fn keep_alive_events_do_not_prevent_stream_timeout() {
    for (api, murmur) in [
        (Api::Anthropic, "event: ping\ndata: {\"type\": \"ping\"}\n\n"),
        (Api::Anthropic, ": still here\n\n"),
        (Api::OpenAiChat, ": OPENROUTER PROCESSING\n\n"),
        (Api::OpenAiResponses, ": keep-alive\n\n"),
    ] {
        let (daemon, session, mut seen) =
            start(api, "idle_warn = \"5s\"\nidle_timeout = \"10s\"\ncontent_timeout = \"300ms\"").await;
        daemon.models.push(Step::text("one two").keep_alive_after(1, murmur));
        daemon.models.push(Step::text("Here again."));
        session.submit("hello").await;
        is_dropped(&daemon, &mut seen, "content_timeout").await;
        assert!(seen.events_of("stream.idle").is_empty(), "bytes came");
    }
}

#[tokio::test]
async fn endless_model_reply_is_cancelled() {
    let word = json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"."}});
    let (daemon, session, mut seen) =
        start(Api::Anthropic, "content_timeout = \"10s\"\nattempt_timeout = \"400ms\"").await;
    daemon.models.push(Step::text("one two").keep_alive_after(1, &format!("data: {word}\n\n")));
    daemon.models.push(Step::text("Here again."));
    session.submit("hello").await;
    is_dropped(&daemon, &mut seen, "attempt_timeout").await;
}

#[tokio::test]
async fn abort_of_silent_stream_takes_effect_immediately() {
    let (daemon, session, mut seen) = start(Api::Anthropic, "idle_warn = \"20ms\"").await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("hello").await;
    seen.wait_for("stream.idle").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    daemon.models.wait_for_hangups(1).await;
}

#[tokio::test]
async fn zero_timeout_in_config_is_refused_by_key() {
    let daemon = TestDaemon::builder().config("[retry]\nidle_timeout = \"0s\"").build().await;
    let output = daemon.run_until_exit().await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("idle_timeout"), "{said}");
}
