//! Counters for the metrics. Each committed event is inspected once and added to the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use types::event::{Envelope, Event};
use types::ledger::UsageRecord;
use types::metrics::Metrics;
use types::session::{Subtype, TurnResult};
use types::tool::ToolStatus;
use types::usage::{ServiceTier, Usage};

/// Duration above which a turn is slow, in milliseconds. The time of waiting for users is subtracted.
const SLOW_MS: u64 = 30_000;

/// All end states of a turn. A test checks that none is missing, because a missing one would not be counted.
const TURN_ENDS: [Subtype; 12] = [
    Subtype::Success,
    Subtype::ErrorDuringExecution,
    Subtype::ErrorMaxTurns,
    Subtype::ErrorMaxBudgetUsd,
    Subtype::ErrorMaxTokens,
    Subtype::ErrorMaxTime,
    Subtype::MaxOutputTokens,
    Subtype::Aborted,
    Subtype::PermissionDenied,
    Subtype::StructuredOutputInvalid,
    Subtype::ErrorRepeatedCall,
    Subtype::LlmError,
];

/// All end states of a tool call.
const TOOL_STATUSES: [(ToolStatus, &str); 5] = [
    (ToolStatus::Completed, "completed"),
    (ToolStatus::Failed, "failed"),
    (ToolStatus::Denied, "denied"),
    (ToolStatus::Cancelled, "cancelled"),
    (ToolStatus::Unknown, "unknown"),
];

/// A number that only grows.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of all sessions. Adding to them never blocks.
#[derive(Debug, Default)]
pub(super) struct MetricCounters {
    turns_started: Counter,
    ends: [Counter; TURN_ENDS.len()],
    slow_turns: Counter,
    turn_ms: Counter,
    model_ms: Counter,
    tools_ms: Counter,
    permission_ms: Counter,
    model_calls: Counter,
    lost_attempts: Counter,
    response_cache_hits: Counter,
    prompt_cache_hits: Counter,
    retries: Counter,
    input_tokens: Counter,
    output_tokens: Counter,
    cache_read_tokens: Counter,
    cache_write_tokens: Counter,
    cache_write_1h_tokens: Counter,
    reasoning_tokens: Counter,
    web_search_requests: Counter,
    service_tiers: [Counter; ServiceTier::ALL.len()],
    cost_usd_micros: Counter,
    unpriced_calls: Counter,
    tool_calls: [Counter; TOOL_STATUSES.len()],
    permission_requests: Counter,
    errors: Counter,
}

impl MetricCounters {
    /// Counts a committed event.
    pub fn count_event(&self, envelope: &Envelope) {
        if let Some(booking) = UsageRecord::from_envelope(envelope) {
            self.count_usage(&booking);
        }
        match &envelope.event {
            Event::TurnStarted { .. } => self.turns_started.add(1),
            Event::TurnCompleted { result } => self.count_turn_end(envelope, result),
            Event::MessageCompleted { cache_hit: true, .. } => self.response_cache_hits.add(1),
            Event::Retry { .. } => self.retries.add(1),
            Event::PermissionRequested { .. } => self.permission_requests.add(1),
            Event::Error { .. } => self.errors.add(1),
            Event::ToolCompleted { status, .. } => {
                if let Some(at) = TOOL_STATUSES.iter().position(|(known, _)| known == status) {
                    self.tool_calls[at].add(1);
                }
            }
            _ => {}
        }
    }

    fn count_usage(&self, booking: &UsageRecord) {
        self.model_calls.add(1);
        self.lost_attempts.add(u64::from(booking.is_lost));
        match booking.cost_usd_micros {
            Some(cost) => self.cost_usd_micros.add(cost),
            None => self.unpriced_calls.add(1),
        }
        let usage = &booking.usage;
        self.prompt_cache_hits.add(u64::from(usage.cache_read_tokens > 0));
        self.input_tokens.add(usage.input_tokens);
        self.output_tokens.add(usage.output_tokens);
        self.cache_read_tokens.add(usage.cache_read_tokens);
        self.cache_write_tokens.add(usage.cache_write_tokens);
        self.cache_write_1h_tokens.add(usage.cache_write_1h_tokens);
        self.reasoning_tokens.add(usage.reasoning_tokens);
        self.web_search_requests.add(usage.web_search_requests);
        if let Some(at) = ServiceTier::ALL.iter().position(|tier| Some(*tier) == usage.service_tier) {
            self.service_tiers[at].add(1);
        }
    }

    fn count_turn_end(&self, envelope: &Envelope, result: &TurnResult) {
        if let Some(at) = TURN_ENDS.iter().position(|known| *known == result.subtype) {
            self.ends[at].add(1);
        }
        self.turn_ms.add(result.duration_ms);
        self.model_ms.add(result.model_ms);
        self.tools_ms.add(result.tools_ms);
        self.permission_ms.add(result.permission_ms);
        if is_slow(result) {
            self.slow_turns.add(1);
            tracing::info!(
                session = %envelope.session_id,
                turn = envelope.turn_id.map(|id| id.to_string()),
                result = result.subtype.name(),
                total_ms = result.duration_ms,
                model_ms = result.model_ms,
                tools_ms = result.tools_ms,
                waiting_ms = result.permission_ms,
                model_calls = result.model_calls,
                "a slow turn"
            );
        }
    }

    /// The current values. Values that other parts of the daemon own are 0.
    pub fn snapshot(&self) -> Metrics {
        let by = |pairs: Vec<(&str, &Counter)>| -> BTreeMap<String, u64> {
            pairs.into_iter().map(|(name, count)| (name.to_owned(), count.get())).collect()
        };
        Metrics {
            turns_started: self.turns_started.get(),
            turns_completed: by(TURN_ENDS.iter().map(|end| end.name()).zip(&self.ends).collect()),
            slow_turns: self.slow_turns.get(),
            turn_ms: self.turn_ms.get(),
            model_ms: self.model_ms.get(),
            tools_ms: self.tools_ms.get(),
            permission_ms: self.permission_ms.get(),
            model_calls: self.model_calls.get(),
            lost_attempts: self.lost_attempts.get(),
            response_cache_hits: self.response_cache_hits.get(),
            prompt_cache_hits: self.prompt_cache_hits.get(),
            retries: self.retries.get(),
            usage: Usage {
                input_tokens: self.input_tokens.get(),
                output_tokens: self.output_tokens.get(),
                cache_read_tokens: self.cache_read_tokens.get(),
                cache_write_tokens: self.cache_write_tokens.get(),
                cache_write_1h_tokens: self.cache_write_1h_tokens.get(),
                reasoning_tokens: self.reasoning_tokens.get(),
                web_search_requests: self.web_search_requests.get(),
                service_tier: None,
            },
            calls_by_service_tier: by(ServiceTier::ALL
                .iter()
                .map(|tier| tier.name())
                .zip(&self.service_tiers)
                .collect()),
            cost_usd_micros: self.cost_usd_micros.get(),
            unpriced_calls: self.unpriced_calls.get(),
            tool_calls: by(TOOL_STATUSES.iter().map(|(_, name)| *name).zip(&self.tool_calls).collect()),
            permission_requests: self.permission_requests.get(),
            errors: self.errors.get(),
            ..Metrics::default()
        }
    }
}

/// Whether a turn was slow, without the time of waiting for users.
fn is_slow(result: &TurnResult) -> bool {
    result.duration_ms.saturating_sub(result.permission_ms) > SLOW_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(subtype: &str, duration_ms: u64, permission_ms: u64) -> TurnResult {
        serde_json::from_value(serde_json::json!({
            "subtype": subtype, "text": "", "stop_reason": null, "usage": {}, "usage_by_model": {},
            "cost_usd_micros": null, "duration_ms": duration_ms, "model_ms": 0, "tools_ms": 0,
            "permission_ms": permission_ms, "model_calls": 0, "permission_denials": [], "errors": [],
        }))
        .expect("a result")
    }

    #[test]
    fn user_wait_time_does_not_make_turn_slow() {
        assert!(!is_slow(&result("success", 30_000, 0)));
        assert!(is_slow(&result("success", 30_001, 0)));
        assert!(!is_slow(&result("success", 90_000, 60_000)));
        assert!(is_slow(&result("aborted", 90_001, 60_000)));
    }

    #[test]
    fn every_turn_result_subtype_is_counted() {
        let schema = serde_json::to_value(schemars::schema_for!(Subtype)).expect("a schema");
        let names: Vec<&str> = schema["oneOf"]
            .as_array()
            .expect("variants")
            .iter()
            .filter_map(|variant| variant["const"].as_str())
            .collect();
        assert_eq!(names.len(), TURN_ENDS.len(), "{names:?}");
        for name in names {
            assert!(TURN_ENDS.iter().any(|end| end.name() == name), "{name}");
        }
    }
}
