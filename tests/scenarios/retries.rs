//! A model call fails: the daemon retries it after a wait that clients see, with the same or another
//! model. Unattended sessions retry without a limit on the attempts, but an abort, a budget or a
//! restart ends the waiting.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

const FAST_RETRIES: &str = "[retry]\nbase_ms = 1\nmax_ms = 5\n";

/// Longer than any test.
const HOUR_SECONDS: &str = "3600";

async fn start(daemon: &TestDaemon, more: Value) -> (Session, Log) {
    let session = daemon.client("alice").await.create_with(daemon, more).await;
    let seen = session.follow().await;
    (session, seen)
}

fn model_of(daemon: &TestDaemon, request: usize) -> String {
    daemon.models.requests()[request].body["model"].as_str().expect("a model").to_owned()
}

fn busy_step() -> Step {
    Step::error(429, "rate_limit_error", "slow down")
}

#[tokio::test]
async fn rate_limit_retry_waits_for_retry_after() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon, json!({})).await;
        daemon.models.push(busy_step().header("retry-after", "0.2"));
        daemon.models.push(Step::text("Now."));
        session.submit("hello").await;
        let retry = seen.wait_for("retry").await;
        assert_eq!((&retry["kind"], &retry["delay_ms"]), (&json!("rate_limited"), &json!(200)), "{retry}");
        assert_eq!(seen.turn_ends("success").await["text"], "Now.");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn overlong_retry_after_ends_turn_with_reset_time() {
    let daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    daemon.models.push(busy_step().header("retry-after", "86400"));
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let error = &result["errors"][0];
    assert_eq!(error["kind"], "rate_limited");
    let message = error["message"].as_str().expect("words");
    for word in ["429", "UTC", "(1 d)", "max_retry_after"] {
        assert!(message.contains(word), "{word} is missing in {message}");
    }
    assert!(seen.events_of("retry").is_empty());
}

#[tokio::test]
async fn rate_limit_switches_to_fallback_for_one_turn() {
    let daemon = TestDaemon::builder()
        .config("backup = \"scripted/other\"\n[retry]\nbase_ms = 1\non_rate_limit = \"backup\"")
        .start()
        .await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    daemon.models.push(busy_step());
    daemon.models.push(Step::text("From the other."));
    session.submit("hello").await;
    let switched = seen.wait_for("model.switched").await;
    assert_eq!(
        (&switched["from"], &switched["to"], &switched["reason"]),
        (&json!("scripted/model"), &json!("scripted/other"), &json!("rate_limited"))
    );
    assert_eq!(seen.next_answer().await["model"], "scripted/other");
    let result = seen.turn_ends("success").await;
    assert!(result["usage_by_model"]["scripted/other"].is_object(), "{result}");
    assert!(seen.events_of("retry").is_empty(), "no retry was needed");
    // The next turn uses the session's model again.
    daemon.models.push(Step::text("Back."));
    session.submit("and now?").await;
    seen.turn_ends("success").await;
    assert_eq!([0, 1, 2].map(|n| model_of(&daemon, n)), ["model", "other", "model"]);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn third_overload_switches_to_fallback_and_discards_partial_text() {
    for api in ALL_APIS {
        let config = format!("fallback = \"scripted/other\"\n{FAST_RETRIES}");
        let daemon = TestDaemon::builder().api(api).config(&config).start().await;
        let (session, mut seen) = start(&daemon, json!({})).await;
        for n in 0..3 {
            daemon.models.push(Step::text(&format!("torso{n}")).break_off("overloaded_error", "too much"));
        }
        daemon.models.push(Step::text("The whole answer."));
        session.submit("hello").await;
        let mut halves = Vec::new();
        for _ in 0..3 {
            let half = seen.next_answer().await;
            assert_eq!((&half["item"]["status"], &half["superseded"]), (&json!("interrupted"), &json!(true)));
            halves.push(half["item_id"].clone());
        }
        let switched = seen.wait_for("model.switched").await;
        assert_eq!((&switched["to"], &switched["reason"]), (&json!("scripted/other"), &json!("overloaded")));
        for half in &halves {
            let stone = seen.wait_for("message.tombstone").await;
            assert_eq!((&stone["item_id"], &stone["reason"]), (half, &json!("model_switched")));
        }
        let whole = seen.next_answer().await;
        assert_eq!(
            (&whole["model"], &whole["item"]["status"]),
            (&json!("scripted/other"), &json!("completed"))
        );
        assert_eq!(seen.turn_ends("success").await["text"], "The whole answer.");
        assert_eq!(seen.events_of("retry").len(), 2);
        assert_eq!(model_of(&daemon, 3), "other");
        assert!(!daemon.models.requests()[3].body.to_string().contains("torso"));
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn missing_model_uses_fallback_or_fails_with_reason() {
    let missing = || Step::error(404, "not_found_error", "model: model");
    let daemon =
        TestDaemon::builder().config(&format!("fallback = \"scripted/other\"\n{FAST_RETRIES}")).start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    daemon.models.push(missing());
    daemon.models.push(Step::text("Here."));
    session.submit("hello").await;
    assert_eq!(seen.wait_for("model.switched").await["reason"], "not_found");
    seen.turn_ends("success").await;
    // If the fallback model is missing as well, there is no third request.
    daemon.models.push(missing());
    daemon.models.push(missing());
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    assert_eq!(result["errors"][0]["kind"], "not_found");
    assert_eq!(result["errors"].as_array().map(Vec::len), Some(1), "only errors of this turn");
    assert_eq!(daemon.models.requests().len(), 4);
}

#[tokio::test]
async fn cost_budget_prevents_fallback_to_unpriced_model() {
    let daemon = TestDaemon::builder()
        .config(&format!(
            "fallback = \"scripted/other\"\n{FAST_RETRIES}\n[model.\"scripted/model\"]\nprice = {{ input = 1.0, output = 1.0 }}"
        ))
        .start()
        .await;
    let budgets = json!({"budgets": {"usd_micros": 1_000_000}});
    let (session, mut seen) = start(&daemon, budgets).await;
    daemon.models.push(Step::error(404, "not_found_error", "model: model"));
    session.submit("hello").await;
    assert_eq!(seen.turn_ends("llm_error").await["errors"][0]["kind"], "not_found");
    let refused = session.refused("submit", json!({"input": "hello", "model": "scripted/other"})).await;
    assert_eq!(refused.code, -32602);
}

#[tokio::test]
async fn broken_connection_error_names_causes() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 1\nattempts = 2").start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    for _ in 0..2 {
        daemon.models.push(Step::text("one two three").cut_after(400));
    }
    session.submit("hello").await;
    assert_eq!(seen.wait_for("retry").await["kind"], "interrupted");
    let result = seen.turn_ends("llm_error").await;
    let error = &result["errors"][0];
    assert!(error["message"].as_str().is_some_and(|text| text.contains("tried 2 times")), "{error}");
    assert!(error["causes"].as_array().is_some_and(|causes| !causes.is_empty()), "{error}");
}

#[tokio::test]
async fn retry_after_broken_connection_opens_new_connection() {
    let daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
    let gates = [Gate::new(), Gate::new()];
    let mut logs = Vec::new();
    for gate in &gates {
        daemon.models.push(Step::text("Yes.").hold(gate));
        let (session, seen) = start(&daemon, json!({})).await;
        session.submit("hello").await;
        gate.wait_reached().await;
        logs.push((session, seen));
    }
    for (gate, (_, seen)) in gates.iter().zip(&mut logs) {
        gate.open();
        seen.turn_ends("success").await;
    }
    assert_eq!(daemon.models.connections(), 2, "both are kept");
    daemon.models.push(Step::text("one two three").cut_after(400));
    daemon.models.push(Step::text("Whole."));
    let (session, seen) = &mut logs[0];
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.models.connections(), 3);
    // From then on the stored answer is used again.
    daemon.models.push(Step::text("Yes."));
    session.submit("and again").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.models.connections(), 3);
}

#[tokio::test]
async fn context_overflow_reduces_output_then_uses_larger_model() {
    let too_long = || {
        Step::error(
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input \
             length or `max_tokens` and try again",
        )
    };
    let models = "[model.\"scripted/model\"]\nmax_output_tokens = 64000\n";
    let daemon = TestDaemon::builder()
        .config(&format!("large_context = \"scripted/large\"\n{FAST_RETRIES}{models}"))
        .start()
        .await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    daemon.models.push(too_long());
    daemon.models.push(Step::text("Short."));
    session.submit("hello").await;
    let retry = seen.wait_for("retry").await;
    assert_eq!(
        (&retry["kind"], &retry["max_output_tokens"], &retry["delay_ms"]),
        (&json!("context_overflow"), &json!(10_000), &json!(0))
    );
    seen.turn_ends("success").await;
    let asked: Vec<Value> = daemon.models.requests().iter().map(|it| it.body["max_tokens"].clone()).collect();
    assert_eq!(asked, [32_000, 10_000]);

    daemon.models.push(too_long());
    daemon.models.push(too_long());
    daemon.models.push(Step::text("From the large one."));
    session.submit("more").await;
    assert_eq!(seen.wait_for("model.switched").await["reason"], "large_context");
    seen.turn_ends("success").await;
    assert_eq!(model_of(&daemon, 4), "large");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unsent_results_count_towards_context_window() {
    let models = "[model.\"scripted/model\"]\ncontext_window = 16000\nmax_output_tokens = 1000\n";
    // Without compaction the conversation outgrows the window.
    let off = "[compaction]\nauto = false\ntool_results = false\nmicrocompact = false\n";
    let daemon = TestDaemon::builder()
        .config(&format!("large_context = \"scripted/large\"\n{FAST_RETRIES}{models}{off}"))
        .start()
        .await;
    // 97,000 characters are about 24,000 tokens.
    daemon.write("long.txt", &format!("{}\n", "abc ".repeat(24)).repeat(1_000));
    let (session, mut seen) = start(&daemon, json!({})).await;
    daemon.models.push(Step::calls([("Read", json!({"file_path": "long.txt"}))]).usage(6_000, 10));
    daemon.models.push(Step::text("Long."));
    session.submit("read it").await;
    let switched = seen.wait_for("model.switched").await;
    assert_eq!((&switched["to"], &switched["reason"]), (&json!("scripted/large"), &json!("large_context")));
    seen.turn_ends("success").await;
    assert_eq!([0, 1].map(|n| model_of(&daemon, n)), ["model", "large"], "no call was wasted");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unresolvable_context_overflow_ends_turn_with_error() {
    let daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    let words = "prompt is too long: 210000 tokens > 200000 maximum";
    daemon.models.push(Step::error(400, "invalid_request_error", words));
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    assert_eq!(result["errors"][0]["kind"], "context_overflow");
    assert!(result["errors"][0]["message"].as_str().is_some_and(|it| it.contains("large_context")));
    daemon.models.push(Step::text("Yes."));
    session.submit("still there?").await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn unattended_session_retries_without_limit_and_reports() {
    let daemon = TestDaemon::builder()
        .config("[retry]\nbase_ms = 1\nunattended_max_ms = 2\nattempts = 2\nheartbeat = \"40ms\"")
        .start()
        .await;
    let (session, mut seen) = start(&daemon, json!({"background": true})).await;
    for _ in 0..5 {
        daemon.models.push(busy_step());
    }
    daemon.models.push(busy_step().header("retry-after", "0.2"));
    daemon.models.push(Step::text("At last."));
    session.submit("hello").await;
    for attempt in 1..=6 {
        let retry = seen.wait_for("retry").await;
        assert_eq!((&retry["attempt"], &retry["max"]), (&json!(attempt), &json!(0)));
    }
    let mut left = 200;
    for _ in 0..4 {
        let beat = seen.wait_for("heartbeat").await;
        assert_eq!(beat["attempt"], 6);
        assert!(beat["reason"].as_str().is_some_and(|reason| reason.contains("429")), "{beat}");
        assert_eq!(beat["remaining_ms"], left - 40);
        left -= 40;
    }
    assert_eq!(seen.turn_ends("success").await["text"], "At last.");
}

#[tokio::test]
async fn abort_and_kill_end_backoff_immediately() {
    for verb in ["abort", "kill"] {
        let daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon, json!({"background": true})).await;
        daemon.models.push(busy_step().header("retry-after", HOUR_SECONDS));
        session.submit("hello").await;
        assert_eq!(seen.wait_for("retry").await["delay_ms"], 3_600_000);
        session.call(verb, json!({})).await;
        seen.turn_ends("aborted").await;
        assert_eq!(daemon.models.requests().len(), 1);
    }
}

#[tokio::test]
async fn wall_time_budget_ends_backoff() {
    let daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
    // Long enough for the first answer on a busy machine.
    let budgets = json!({"background": true, "budgets": {"wall_time_ms": 2_000}});
    let (session, mut seen) = start(&daemon, budgets).await;
    daemon.models.push(busy_step().header("retry-after", HOUR_SECONDS));
    session.submit("hello").await;
    let wait = seen.wait_for("retry").await["delay_ms"].as_u64().expect("a wait");
    assert!(wait <= 2_000, "{wait}");
    seen.turn_ends("error_max_time").await;
    assert_eq!(daemon.models.requests().len(), 1);
}

#[tokio::test]
async fn backoff_continues_after_restart() {
    let mut daemon = TestDaemon::builder().config(FAST_RETRIES).start().await;
    let (session, mut seen) = start(&daemon, json!({"background": true})).await;
    daemon.models.push(busy_step().header("retry-after", HOUR_SECONDS));
    session.submit("hello").await;
    seen.wait_for("retry").await;
    for _ in 0..2 {
        daemon.crash_and_restart().await;
        let session = daemon.client("bob").await.join(&session);
        let mut seen = session.follow_after(seen.last_seq()).await;
        let left = seen.wait_for("heartbeat").await["remaining_ms"].as_u64().expect("a wait");
        assert!((3_000_000..3_600_000).contains(&left), "{left}");
    }
    assert_eq!(daemon.models.requests().len(), 1, "a restart does not shorten the wait");
    let session = daemon.client("carol").await.join(&session);
    let mut seen = session.follow().await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
}

#[tokio::test]
async fn submit_model_applies_to_one_turn() {
    let daemon = TestDaemon::builder().config("reasoning = \"scripted/deep\"").start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    for _ in 0..3 {
        daemon.models.push(Step::text("Yes."));
    }
    session.submit_with(json!({"input": "a", "model": "scripted/other"})).await;
    assert_eq!(seen.wait_for("turn.started").await["model"], "scripted/other");
    seen.turn_ends("success").await;
    session.submit_with(json!({"input": "b", "model": "reasoning"})).await;
    seen.turn_ends("success").await;
    session.submit("c").await;
    seen.turn_ends("success").await;
    assert_eq!([0, 1, 2].map(|n| model_of(&daemon, n)), ["other", "deep", "model"]);
    for (model, word) in [
        ("nowhere/x", "nowhere"),
        ("quick", "not set"),
        ("odd", "PROVIDER/MODEL"),
        ("deep", "did you mean \"scripted/deep\"?"),
    ] {
        let refused = session.refused("submit", json!({"input": "d", "model": model})).await;
        assert!(refused.code == -32602 && refused.message.contains(word), "{refused:?}");
    }
}

#[tokio::test]
async fn images_are_sent_to_vision_model() {
    const DOT: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let daemon = TestDaemon::builder()
        .config("vision = \"scripted/eyes\"\n[model.\"scripted/model\"]\nvision = false")
        .start()
        .await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    for _ in 0..2 {
        daemon.models.push(Step::text("A dot."));
    }
    let dot = json!({"type": "image", "data": DOT, "media_type": "image/png"});
    session.submit_with(json!({"input": [{"type": "text", "text": "What is it?"}, dot]})).await;
    let switched = seen.wait_for("model.switched").await;
    assert_eq!((&switched["to"], &switched["reason"]), (&json!("scripted/eyes"), &json!("vision")));
    seen.turn_ends("success").await;
    // The picture is still there in the next turn, which begins with the session's model.
    session.submit("And its colour?").await;
    assert_eq!(seen.wait_for("turn.started").await["model"], "scripted/model");
    assert_eq!(seen.wait_for("model.switched").await["reason"], "vision");
    seen.turn_ends("success").await;
    assert_eq!([0, 1].map(|n| model_of(&daemon, n)), ["eyes", "eyes"]);
    assert!(daemon.models.requests()[0].body.to_string().contains(DOT));
    daemon.models.assert_no_breach();
}
