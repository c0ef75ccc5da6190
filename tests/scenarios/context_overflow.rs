//! A provider refuses a request that exceeds its window, or may do so: the conversation is compacted once, and the
//! request is sent again.

use serde_json::json;

use super::bash;
use super::compaction::window;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

#[tokio::test]
async fn refused_request_is_compacted_once_and_sent_again() {
    // The configured window is larger than the provider's window.
    let daemon = TestDaemon::builder().config(&window(1_000_000, 500)).start().await;
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"tools": {"allow": ["Bash"]}})).await;
    let mut seen = session.follow().await;
    let too_long =
        || Step::error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum");
    daemon.models.push(Step::calls([bash("seq 1000 1900")]));
    daemon.models.push(Step::calls([bash("seq 2000 2900")]));
    daemon.models.push(Step::calls([bash("seq 3000 3900")]));
    daemon.models.push(too_long());
    daemon.models.push(Step::text("SUMMARY"));
    daemon.models.push(Step::text("done"));
    session.submit("count").await;
    assert_eq!(seen.wait_for("compact.started").await["trigger"], "overflow");
    assert_eq!(seen.turn_ends("success").await["text"], "done");
    // A second refusal in the same step ends the turn with a clear error.
    daemon.models.push(Step::calls([bash("seq 4000 4900")]));
    daemon.models.push(too_long());
    daemon.models.push(Step::text("SUMMARY again"));
    daemon.models.push(too_long());
    session.submit("more").await;
    let end = seen.turn_ends("llm_error").await;
    assert_eq!(end["errors"][0]["kind"], "context_overflow");
    assert!(end["errors"][0]["message"].as_str().expect("text").contains("large_context"), "{end}");
    daemon.models.assert_no_breach();
}

/// A session without a known window, after a turn with three outputs. `more` are keys of `[compaction]`, in which only
/// summaries are on.
pub(super) async fn session_without_window(more: &str) -> (TestDaemon, Session, Log) {
    let config = format!(
        "[compaction]\nsnip = false\nmicrocompact = false\ncollapse = false\n{more}\n[permissions]\nallow = [\"Bash\"]\n[retry]\nbase_ms = 1\nmax_ms = 5"
    );
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"tools": {"allow": ["Bash"]}})).await;
    let mut seen = session.follow().await;
    for number in 1..4 {
        let call = bash(&format!("seq 1000 {number}900; seq 5000 6900"));
        daemon.models.push(Step::calls([call]).usage(4_000 * number, 20));
    }
    daemon.models.push(Step::text("first done").usage(20_000, 5));
    session.submit("count").await;
    seen.turn_ends("success").await;
    (daemon, session, seen)
}

pub(super) fn refusal(status: u16, text: &str) -> Step {
    Step::error(status, "odd_error", text)
}

#[tokio::test]
async fn unknown_refusal_is_compacted_once_then_reported() {
    for status in [400, 422, 500] {
        let (daemon, session, mut seen) = session_without_window("").await;
        daemon.models.push(refusal(status, "this many tokens do not fit here"));
        daemon.models.push(Step::text("SUMMARY"));
        daemon.models.push(Step::text("second done"));
        session.submit("go on").await;
        assert_eq!(seen.wait_for("compact.started").await["trigger"], "overflow", "{status}");
        assert_eq!(seen.turn_ends("success").await["text"], "second done");
        daemon.models.assert_no_breach();
    }
    let (daemon, session, mut seen) = session_without_window("").await;
    let odd = || refusal(400, "an odd limit of tokens");
    daemon.models.push(odd());
    daemon.models.push(Step::text("SUMMARY"));
    daemon.models.push(odd());
    session.submit("go on").await;
    let end = seen.turn_ends("llm_error").await;
    assert_eq!(end["errors"][0]["kind"], "bad_request", "{end}");
    // The guess was wrong, so the next refusal is reported at once.
    daemon.models.push(odd());
    session.submit("again").await;
    let before = daemon.models.requests().len();
    let end = seen.turn_ends("llm_error").await;
    assert_eq!(end["errors"][0]["kind"], "bad_request", "{end}");
    assert!(daemon.models.requests().len() <= before + 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn long_first_input_is_summarised_after_refusal_of_second() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("first done").usage(9_000, 5));
    session.submit(&"a long text ".repeat(3_000)).await;
    seen.turn_ends("success").await;
    daemon.models.push(refusal(400, "prompt too long; exceeded max context length by 12 tokens"));
    daemon.models.push(Step::text("SUMMARY"));
    daemon.models.push(Step::text("second done"));
    session.submit("go on").await;
    assert_eq!(seen.wait_for("compact.started").await["trigger"], "overflow");
    assert_eq!(seen.turn_ends("success").await["text"], "second done");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unknown_refusal_of_shorter_request_is_reported_at_once() {
    let (daemon, session, mut seen) = session_without_window("").await;
    daemon.models.push(Step::text("SUMMARY"));
    session.call("compact", json!({})).await;
    seen.turn_ends("success").await;
    // The model has answered longer requests, so the window is not the cause.
    daemon.models.push(Step::calls([bash("seq 1000 1900")]));
    daemon.models.push(refusal(400, "an odd limit of tokens"));
    session.submit("go on").await;
    let end = seen.turn_ends("llm_error").await;
    assert_eq!(end["errors"][0]["kind"], "bad_request", "{end}");
    assert_eq!(seen.events_of("compact.started").len(), 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn refusal_for_another_limit_is_not_compacted() {
    for text in ["max_tokens is too large: 32000", "The access token expired", "temperature exceeds 1"] {
        let (daemon, session, mut seen) = session_without_window("").await;
        daemon.models.push(refusal(400, text));
        session.submit("go on").await;
        assert_eq!(seen.turn_ends("llm_error").await["errors"][0]["kind"], "bad_request", "{text}");
        assert!(seen.events_of("compact.started").is_empty(), "{text}");
    }
}

#[tokio::test]
async fn compact_shortens_its_request_after_any_refusal() {
    for text in ["prompt too long; exceeded max context length by 12 tokens", "no"] {
        let (daemon, session, mut seen) = session_without_window("").await;
        daemon.models.push(refusal(400, text));
        daemon.models.push(Step::text("SUMMARY"));
        session.call("compact", json!({"idempotency_key": "k"})).await;
        seen.turn_ends("success").await;
        let requests = daemon.models.requests();
        let sizes: Vec<usize> = requests[requests.len() - 2..]
            .iter()
            .map(|request| request.body["messages"].to_string().len())
            .collect();
        assert!(sizes[0] > sizes[1], "{text}: {sizes:?}");
        daemon.models.assert_no_breach();
    }
}
