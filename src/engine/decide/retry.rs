//! The reaction to a failed model call. It is a pure table from a fault and the history of the turn to a
//! reaction.

use crate::request::vision::is_about_media;
use crate::state::CONTEXT_OVERFLOW;
use types::event::SwitchReason;
use types::model::{FaultKind, LOOKUP_FAILED, ModelFault, Overflow, UNKNOWN_HOST};
use types::model_pointers::ModelPointers;
use types::retry::{OnRateLimit, RetrySettings};
use types::session::TurnError;
use types::time::Timestamp;

/// Overloads in a row after which the turn switches to another model.
const MAX_OVERLOADS: u32 = 3;

/// Attempts at a call whose host is not found.
const MAX_LOOKUPS: u32 = 3;

/// How often the request for a summary is made shorter after the provider refused it.
pub(crate) const MAX_SUMMARY_OVERFLOWS: u32 = 5;

/// Smallest useful answer, in tokens; with less room, an answer would only be cut.
const MIN_OUTPUT_TOKENS: u64 = 512;

/// The history of the current model call and the available fallback models.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetryContext {
    /// Failed attempts before this one.
    pub failures: u32,
    /// Number of overloads at the end of `failures`.
    pub overloads: u32,
    /// Whether the session is unattended.
    pub unattended: bool,
    /// The requested output limit in tokens, if known.
    pub output_limit: Option<u32>,
    /// Whether the output limit was already reduced.
    pub is_fitted: bool,
    /// Whether the request contained pictures or documents.
    pub shows: bool,
    /// Whether the conversation can be compacted, or the summary's own request can be shortened.
    pub can_compact: bool,
    /// Whether the request is longer than every request that the model answered.
    pub is_longest: bool,
    /// Whether the call was to summarise the conversation.
    pub is_summary: bool,
    /// Available fallback models: configured, not tried in this turn, and within the limits on money.
    pub fallback_models: ModelPointers,
    /// Milliseconds until the turn's time limit.
    pub time_left_ms: Option<u64>,
    /// Random value that spreads the waits.
    pub random: u64,
    /// Current time.
    pub now: Timestamp,
}

/// The reaction to a failed call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RetryDecision {
    /// Call the same model again after a wait.
    Retry {
        /// Maximum number of attempts; 0 means no maximum.
        max: u32,
        /// The wait, in milliseconds.
        delay_ms: u64,
        /// A reduced output limit, in tokens.
        max_output_tokens: Option<u32>,
    },
    /// Call another model.
    Switch {
        /// `PROVIDER/MODEL` of that model.
        to: String,
        /// Reason of the switch.
        reason: SwitchReason,
    },
    /// Call the same model again at once, without any picture or document.
    Withhold,
    /// Call the same model again at once, with a compacted conversation.
    Compact {
        /// The tokens that fit, as the provider reported them.
        limit: Option<u64>,
    },
    /// End the turn with this error.
    GiveUp(TurnError),
}

/// Selects the row of the table that matches the fault.
pub(crate) fn decide_retry(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> RetryDecision {
    if let Some(reaction) = shrink_request(fault, past) {
        return reaction;
    }
    if may_shorten(fault, past) {
        return RetryDecision::Compact { limit: None };
    }
    let switch_decision =
        |to: &Option<String>, reason| to.clone().map(|to| RetryDecision::Switch { to, reason });
    // Every later request would contain the same media and be refused.
    if past.shows && is_about_media(fault) {
        return switch_decision(&past.fallback_models.vision, SwitchReason::Vision)
            .unwrap_or(RetryDecision::Withhold);
    }
    let fallback = |reason| switch_decision(&past.fallback_models.fallback, reason);
    let now = match fault.kind {
        FaultKind::RateLimited if retry.on_rate_limit == OnRateLimit::Backup => {
            switch_decision(&past.fallback_models.backup, SwitchReason::RateLimited)
        }
        FaultKind::Overloaded if past.overloads + 1 >= MAX_OVERLOADS => fallback(SwitchReason::Overloaded),
        FaultKind::NotFound => fallback(SwitchReason::NotFound),
        _ => None,
    };
    if let Some(reaction) = now {
        return reaction;
    }
    if !fault.kind.is_retryable() {
        let mut error = turn_error(fault, past.failures);
        if past.shows && fault.kind == FaultKind::BadRequest {
            error.message += "; the conversation shows pictures or documents: if that is why, vision = false in \
                              [model.\"PROVIDER/MODEL\"] leaves them out";
        }
        return RetryDecision::GiveUp(error);
    }
    let last = || fallback(SwitchReason::Unavailable);
    if let Some(reaction) = refuse_long_wait(retry, fault, past) {
        return last().unwrap_or(reaction);
    }
    match next_wait(retry, fault, past) {
        Some((max, delay_ms)) => RetryDecision::Retry { max, delay_ms, max_output_tokens: None },
        None => last().unwrap_or_else(|| RetryDecision::GiveUp(turn_error(fault, past.failures))),
    }
}

/// The maximum number of attempts and the wait before the next one, or `None` to give up.
fn next_wait(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> Option<(u32, u64)> {
    let busy = matches!(fault.kind, FaultKind::RateLimited | FaultKind::Overloaded);
    let endless = past.unattended && busy;
    let max = if endless { 0 } else { max_attempts(retry, fault, past) };
    if !endless && past.failures.saturating_add(1) >= max {
        return None;
    }
    let longest = if endless { retry.unattended_max_ms } else { retry.max_ms };
    let ceiling = retry.base_ms.saturating_mul(1 << past.failures.min(20)).min(longest);
    // Half fixed, half random: waits grow, and clients do not retry at the same moment.
    let jittered = ceiling / 2 + past.random % (ceiling / 2 + 1);
    // A provider may repeatedly request no wait at all, so the usual wait is the minimum.
    let wait = fault.retry_after_ms.filter(|requested_ms| *requested_ms >= retry.base_ms).unwrap_or(jittered);
    // The turn ends at its time limit, so a longer wait is useless.
    Some((max, past.time_left_ms.map_or(wait, |left| wait.min(left))))
}

/// A host without an address is probably a wrong name. If names cannot be looked up at all, the network is gone; a user
/// sees that soon, and an unattended session waits as for other failures.
fn max_attempts(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> u32 {
    let is_lookup = fault.kind == FaultKind::Unreachable
        && match fault.word.as_deref() {
            Some(UNKNOWN_HOST) => true,
            Some(LOOKUP_FAILED) => !past.unattended,
            _ => false,
        };
    if is_lookup { retry.attempts.min(MAX_LOOKUPS) } else { retry.attempts }
}

/// Gives up if the provider requests a longer wait than an attended user would expect.
fn refuse_long_wait(retry: &RetrySettings, fault: &ModelFault, past: &RetryContext) -> Option<RetryDecision> {
    let max_ms = retry.max_retry_after.millis();
    let wait = fault.retry_after_ms.filter(|wait| !past.unattended && *wait > max_ms)?;
    let mut error = turn_error(fault, past.failures);
    error.message = format!(
        "{}; it asks to wait until {} ({}), longer than [retry] max_retry_after ({}): submit again then, or set \
         [models] fallback",
        error.message,
        past.now.plus(wait).minute(),
        duration_text(wait),
        duration_text(max_ms)
    );
    Some(RetryDecision::GiveUp(error))
}

/// The reaction if the request and its answer exceed the window. It first tries a shorter answer,
/// then a compacted conversation, then a model with a larger window. Otherwise it gives up.
fn shrink_request(fault: &ModelFault, past: &RetryContext) -> Option<RetryDecision> {
    let says_so = fault.word.as_deref() == Some("context_length_exceeded");
    if fault.overflow.is_none() && !says_so {
        return None;
    }
    let room = fault.overflow.map_or(0, |Overflow { limit, input }| limit.saturating_sub(input));
    let shorter = past.output_limit.is_none_or(|output_limit| room < u64::from(output_limit));
    if !past.is_fitted && room >= MIN_OUTPUT_TOKENS && shorter {
        let max_output_tokens = Some(u32::try_from(room).unwrap_or(u32::MAX));
        let max = past.failures.saturating_add(2);
        return Some(RetryDecision::Retry { max, delay_ms: 0, max_output_tokens });
    }
    if past.can_compact {
        return Some(RetryDecision::Compact { limit: fault.overflow.map(|overflow| overflow.limit) });
    }
    if let Some(to) = past.fallback_models.large_context.clone() {
        return Some(RetryDecision::Switch { to, reason: SwitchReason::LargeContext });
    }
    let mut error = turn_error(fault, past.failures);
    error.kind = CONTEXT_OVERFLOW.into();
    error.message = format!(
        "{}; the conversation does not fit the model's window: set [models] large_context, or begin a new \
         session",
        error.message
    );
    Some(RetryDecision::GiveUp(error))
}

/// Whether to try a shorter request after a refusal whose text does not say that the window is exceeded. The engine
/// guesses once, for the longest request so far. A refused request for a summary is always made shorter.
fn may_shorten(fault: &ModelFault, past: &RetryContext) -> bool {
    let is_refused_summary =
        past.is_summary && (fault.kind == FaultKind::BadRequest || fault.may_be_overflow);
    let is_guess = fault.may_be_overflow && past.is_longest;
    let is_media = past.shows && is_about_media(fault);
    past.can_compact && !is_media && (is_refused_summary || is_guess)
}

fn turn_error(fault: &ModelFault, failures: u32) -> TurnError {
    let mut message = fault.message.clone();
    if failures > 0 {
        message = format!("{message} (tried {} times)", failures.saturating_add(1));
    }
    TurnError { kind: fault.kind.name().into(), message, causes: fault.causes.to_vec() }
}

/// A duration as text for users: the two largest units.
fn duration_text(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];
    let first = units.iter().position(|(_, unit)| ms >= *unit).unwrap_or(units.len() - 1);
    let mut rest = ms;
    let mut parts = Vec::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        let count = rest / unit;
        rest %= unit;
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
    }
    if parts.is_empty() { "0 ms".into() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
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
        for kind in [
            Kind::RateLimited,
            Kind::Overloaded,
            Kind::Server,
            Kind::Interrupted,
            Kind::Idle,
            Kind::Unreachable,
        ] {
            // One failure is no reason to switch to another model.
            for past in [&alone, &full_context()] {
                let (max, delay_ms) = assert_retries(&retry(), &fault(kind), past);
                assert_eq!(max, 10, "{kind:?}");
                assert!((250..=500).contains(&delay_ms), "{kind:?}: {delay_ms}");
            }
            // After all attempts there is no other reaction.
            let tired = |past: RetryContext| RetryContext { failures: 9, ..past };
            let error = assert_gives_up(&retry(), &fault(kind), &tired(alone.clone()));
            assert_eq!(
                (error.kind.as_str(), error.message.as_str()),
                (kind.name(), "so it is (tried 10 times)")
            );
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
        let past = RetryContext {
            failures: 1_000_000,
            unattended: true,
            random: u64::MAX,
            ..RetryContext::default()
        };
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
            let error = assert_gives_up(
                &retry(),
                &fault,
                &RetryContext { is_fitted: true, ..RetryContext::default() },
            );
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
        for kind in [FaultKind::Unauthorized, FaultKind::Forbidden, FaultKind::RateLimited, FaultKind::Server]
        {
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
        assert_eq!(
            decide_retry(&retry(), &refused, &shows(RetryContext::default())),
            RetryDecision::Withhold
        );
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
}
