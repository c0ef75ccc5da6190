//! The reaction to a failed model call. It is a pure table from a fault and the history of the turn to a
//! reaction.

#[cfg(test)]
mod tests;

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
