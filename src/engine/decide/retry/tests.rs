use crate::decide::retry::*;

fn retry() -> RetrySettings {
    RetrySettings::default()
}

fn fault(kind: FaultKind) -> ModelFault {
    ModelFault::new(kind, "so it is")
}

/// A context in which all four fallback models are available.
fn full_context() -> RetryContext {
    let of = |name: &str| Some(format!("p/{name}"));
    let fallback_models = ModelPointers {
        fallback: of("fallback"),
        backup: of("backup"),
        large_context: of("large"),
        vision: of("vision"),
        ..ModelPointers::default()
    };
    RetryContext { fallback_models, ..RetryContext::default() }
}

fn switch_decision(to: &str, reason: SwitchReason) -> RetryDecision {
    RetryDecision::Switch { to: format!("p/{to}"), reason }
}

#[track_caller]
fn assert_retries(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> (u32, u64) {
    match decide_retry(retry, fault, past) {
        RetryDecision::Retry { max, delay_ms, max_output_tokens: None } => (max, delay_ms),
        other => panic!("{fault:?}: {other:?}"),
    }
}

#[track_caller]
fn assert_gives_up(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> TurnError {
    match decide_retry(retry, fault, past) {
        RetryDecision::GiveUp(error) => error,
        other => panic!("{fault:?}: {other:?}"),
    }
}

#[test]
fn every_fault_kind_has_specified_retry_decision() {
    use FaultKind as Kind;
    let alone = RetryContext::default();
    for kind in
        [Kind::RateLimited, Kind::Overloaded, Kind::Server, Kind::Interrupted, Kind::Idle, Kind::Unreachable]
    {
        // One failure is no reason to switch to another model.
        for past in [&alone, &full_context()] {
            let (max, delay_ms) = assert_retries(&retry(), &fault(kind), past);
            assert_eq!(max, 10, "{kind:?}");
            assert!((250..=500).contains(&delay_ms), "{kind:?}: {delay_ms}");
        }
        // After all attempts there is no other reaction.
        let tired = |past: RetryContext| RetryContext { failures: 9, ..past };
        let error = assert_gives_up(&retry(), &fault(kind), &tired(alone.clone()));
        assert_eq!((error.kind.as_str(), error.message.as_str()), (kind.name(), "so it is (tried 10 times)"));
        let reaction = decide_retry(&retry(), &fault(kind), &tired(full_context()));
        assert_eq!(reaction, switch_decision("fallback", SwitchReason::Unavailable), "{kind:?}");
    }
    for kind in [
        Kind::Unauthorized,
        Kind::Forbidden,
        Kind::BadRequest,
        Kind::NoKey,
        Kind::Unconfigured,
        Kind::Garbage,
        Kind::CassetteExhausted,
    ] {
        assert_eq!(assert_gives_up(&retry(), &fault(kind), &full_context()).kind, kind.name());
    }
    assert_eq!(assert_gives_up(&retry(), &fault(Kind::NotFound), &alone).kind, "not_found");
    let reaction = decide_retry(&retry(), &fault(Kind::NotFound), &full_context());
    assert_eq!(reaction, switch_decision("fallback", SwitchReason::NotFound));
}

#[test]
fn unknown_host_is_tried_three_times_unless_unattended_without_name_server() {
    let lookup = |word: &str| ModelFault { word: Some(word.into()), ..fault(FaultKind::Unreachable) };
    let past = |failures, unattended| RetryContext { failures, unattended, ..RetryContext::default() };
    for (word, unattended, attempts) in [
        (UNKNOWN_HOST, false, 3),
        (UNKNOWN_HOST, true, 3),
        (LOOKUP_FAILED, false, 3),
        (LOOKUP_FAILED, true, 10),
        ("connection refused", false, 10),
    ] {
        let (max, _) = assert_retries(&retry(), &lookup(word), &past(attempts - 2, unattended));
        assert_eq!(max, attempts, "{word} {unattended}");
        let error = assert_gives_up(&retry(), &lookup(word), &past(attempts - 1, unattended));
        assert!(error.message.ends_with(&format!("(tried {attempts} times)")), "{}", error.message);
    }
    // Fewer attempts by configuration stay fewer, and another model may be reachable.
    let once = RetrySettings { attempts: 1, ..retry() };
    assert_gives_up(&once, &lookup(UNKNOWN_HOST), &past(0, false));
    let other = RetryContext { failures: 2, ..full_context() };
    let reaction = decide_retry(&retry(), &lookup(UNKNOWN_HOST), &other);
    assert_eq!(reaction, switch_decision("fallback", SwitchReason::Unavailable));
}

#[test]
fn third_consecutive_overload_switches_to_fallback() {
    let overloaded = |overloads| RetryContext { failures: 4, overloads, ..full_context() };
    for overloads in 0..2 {
        assert_retries(&retry(), &fault(FaultKind::Overloaded), &overloaded(overloads));
    }
    let reaction = decide_retry(&retry(), &fault(FaultKind::Overloaded), &overloaded(2));
    assert_eq!(reaction, switch_decision("fallback", SwitchReason::Overloaded));
    // Other failures do not count.
    assert_retries(&retry(), &fault(FaultKind::Server), &overloaded(2));
    assert_retries(
        &retry(),
        &fault(FaultKind::Overloaded),
        &RetryContext { overloads: 7, ..RetryContext::default() },
    );
}

#[test]
fn rate_limit_waits_or_switches_to_backup() {
    let limited = fault(FaultKind::RateLimited);
    let backup = RetrySettings { on_rate_limit: OnRateLimit::Backup, ..retry() };
    assert_retries(&retry(), &limited, &full_context());
    assert_eq!(
        decide_retry(&backup, &limited, &full_context()),
        switch_decision("backup", SwitchReason::RateLimited)
    );
    assert_retries(&backup, &limited, &RetryContext::default());
}

#[test]
fn retry_delay_grows_up_to_maximum() {
    let busy = fault(FaultKind::Overloaded);
    for failures in 0..9 {
        let past = RetryContext { failures, random: u64::MAX, ..RetryContext::default() };
        let (_, delay_ms) = assert_retries(&retry(), &busy, &past);
        let ceiling = (500 << failures).min(32_000);
        assert!((ceiling / 2..=ceiling).contains(&delay_ms), "{delay_ms}");
    }
}

#[test]
fn retry_after_is_respected_up_to_configured_maximum() {
    let asks = |ms| ModelFault { retry_after_ms: Some(ms), ..fault(FaultKind::RateLimited) };
    assert_eq!(assert_retries(&retry(), &asks(7_000), &RetryContext::default()), (10, 7_000));
    assert_eq!(assert_retries(&retry(), &asks(600_000), &RetryContext::default()), (10, 600_000));
    // Unlimited retries without a wait would flood the provider with requests.
    let tired = RetryContext { failures: 4, unattended: true, ..RetryContext::default() };
    for ms in [0, 499] {
        assert_eq!(
            assert_retries(&retry(), &asks(ms), &tired),
            assert_retries(&retry(), &fault(FaultKind::RateLimited), &tired)
        );
    }
    let now = Timestamp(1_795_219_200_000);
    let error =
        assert_gives_up(&retry(), &asks(86_400_000), &RetryContext { now, ..RetryContext::default() });
    for word in ["2026-11-22 00:00 UTC", "(1 d)", "max_retry_after", "10 min"] {
        assert!(error.message.contains(word), "{error:?}");
    }
    assert_eq!(
        decide_retry(&retry(), &asks(86_400_000), &full_context()),
        switch_decision("fallback", SwitchReason::Unavailable)
    );
    // No user is present in an unattended session, but its time limit still applies.
    let alone = RetryContext { unattended: true, ..RetryContext::default() };
    assert_eq!(assert_retries(&retry(), &asks(86_400_000), &alone), (0, 86_400_000));
    let short = RetryContext { time_left_ms: Some(1_000), ..alone };
    assert_eq!(assert_retries(&retry(), &asks(86_400_000), &short), (0, 1_000));
}

#[test]
fn unattended_session_retries_busy_provider_without_limit() {
    let past =
        RetryContext { failures: 1_000_000, unattended: true, random: u64::MAX, ..RetryContext::default() };
    for kind in [FaultKind::RateLimited, FaultKind::Overloaded] {
        let (max, delay_ms) = assert_retries(&retry(), &fault(kind), &past);
        assert!(max == 0 && (150_000..=300_000).contains(&delay_ms), "{delay_ms}");
    }
    assert_gives_up(&retry(), &fault(FaultKind::Server), &past);
}

#[test]
fn overflow_reduces_output_once_then_switches_model() {
    let overflow = |limit, input| ModelFault {
        overflow: Some(Overflow { limit, input }),
        ..fault(FaultKind::BadRequest)
    };
    let shorter = |fault: &ModelFault, past: &RetryContext| match decide_retry(&retry(), fault, past) {
        RetryDecision::Retry { delay_ms: 0, max_output_tokens, .. } => max_output_tokens,
        _ => None,
    };
    let limited_context = RetryContext { output_limit: Some(32_000), ..full_context() };
    assert_eq!(shorter(&overflow(200_000, 190_000), &limited_context), Some(10_000));
    assert_eq!(
        shorter(&overflow(200_000, 190_000), &RetryContext { output_limit: None, ..full_context() }),
        Some(10_000)
    );
    // Requesting the same limit as before would change nothing.
    let less = RetryContext { output_limit: Some(9_000), ..full_context() };
    assert_eq!(shorter(&overflow(200_000, 190_000), &less), None);
    for (fault, past) in [
        (overflow(200_000, 190_000), RetryContext { is_fitted: true, ..limited_context.clone() }),
        (overflow(200_000, 199_900), limited_context.clone()),
        (overflow(200_000, 210_000), limited_context.clone()),
        (
            ModelFault { word: Some("context_length_exceeded".into()), ..fault(FaultKind::BadRequest) },
            limited_context.clone(),
        ),
    ] {
        assert_eq!(
            decide_retry(&retry(), &fault, &past),
            switch_decision("large", SwitchReason::LargeContext),
            "{fault:?}"
        );
        let error =
            assert_gives_up(&retry(), &fault, &RetryContext { is_fitted: true, ..RetryContext::default() });
        assert_eq!(error.kind, "context_overflow");
        assert!(error.message.contains("large_context"), "{error:?}");
    }
}

#[test]
fn unknown_refusal_shortens_longest_request_only() {
    let suspect = ModelFault { may_be_overflow: true, ..fault(FaultKind::BadRequest) };
    let longest = RetryContext { can_compact: true, is_longest: true, ..full_context() };
    let compacts = |fault: &ModelFault, past: &RetryContext| {
        decide_retry(&retry(), fault, past) == RetryDecision::Compact { limit: None }
    };
    assert!(compacts(&suspect, &longest));
    let server = ModelFault { may_be_overflow: true, ..fault(FaultKind::Server) };
    assert!(compacts(&server, &longest));
    // A shorter request was answered before, or the conversation was compacted already.
    assert!(!compacts(&suspect, &RetryContext { is_longest: false, ..longest.clone() }));
    assert!(!compacts(&suspect, &RetryContext { can_compact: false, ..longest.clone() }));
    assert_eq!(assert_gives_up(&retry(), &suspect, &RetryContext::default()).kind, "bad_request");
    // A refusal for another reason is no overflow, except of a request for a summary.
    assert!(!compacts(&fault(FaultKind::BadRequest), &longest));
    let summary = RetryContext { is_longest: false, is_summary: true, ..longest.clone() };
    assert!(compacts(&fault(FaultKind::BadRequest), &summary));
    assert!(compacts(&server, &summary));
    for kind in [FaultKind::Unauthorized, FaultKind::Forbidden, FaultKind::RateLimited, FaultKind::Server] {
        assert!(!compacts(&fault(kind), &summary), "{kind:?}");
    }
    // Pictures are left out first.
    let shown = RetryContext { shows: true, ..longest };
    let media = ModelFault { message: "the image exceeds 5 MB".into(), ..suspect };
    assert_eq!(decide_retry(&retry(), &media, &shown), switch_decision("vision", SwitchReason::Vision));
}

#[test]
fn refused_image_switches_to_vision_model_or_is_withheld() {
    let refused = ModelFault::new(FaultKind::BadRequest, "Could not process image");
    let shows = |past: RetryContext| RetryContext { shows: true, ..past };
    assert_eq!(
        decide_retry(&retry(), &refused, &shows(full_context())),
        switch_decision("vision", SwitchReason::Vision)
    );
    assert_eq!(decide_retry(&retry(), &refused, &shows(RetryContext::default())), RetryDecision::Withhold);
    // Without media in the request, the error has another cause.
    assert_eq!(assert_gives_up(&retry(), &refused, &full_context()).kind, "bad_request");
    let other = assert_gives_up(&retry(), &fault(FaultKind::BadRequest), &shows(full_context()));
    assert!(other.message.contains("vision = false"), "there is a way out: {}", other.message);
    assert_retries(&retry(), &fault(FaultKind::Server), &shows(full_context()));
}

#[test]
fn duration_text_uses_at_most_two_units() {
    let texts: Vec<String> =
        [0, 7, 1_500, 60_000, 86_400_000, 90_061_000].into_iter().map(duration_text).collect();
    assert_eq!(texts, ["0 ms", "7 ms", "1 s 500 ms", "1 min", "1 d", "1 d 1 h"]);
}
