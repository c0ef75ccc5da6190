//! The cost ledger: the usage of every model call, and the sum per model.
//!
//! A usage record is computed only from the event that reports the call. So the engine, the database and a
//! rebuild of either compute the same records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{Envelope, Event, UsageReason};
use super::ids::{Seq, SessionId};
use super::time::Timestamp;
use super::usage::{ModelSnapshot, Usage};

/// The usage of one model call.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRecord {
    /// The session that made the call.
    pub session_id: SessionId,
    /// Seq of the event that reports it; each event has at most one record.
    pub seq: Seq,
    /// Time of the booking.
    pub at: Timestamp,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Tokens and searches of the call.
    pub usage: Usage,
    /// Its cost in millionths of a dollar; `None` if unknown.
    pub cost_usd_micros: Option<u64>,
    /// Limits and price of the model at the time of the call.
    pub model_snapshot: ModelSnapshot,
    /// The call brought no answer.
    pub is_lost: bool,
    /// `usage` is at least partly an upper estimate.
    pub is_estimated: bool,
}

impl UsageRecord {
    /// The usage record of an event, if the event has one.
    #[must_use]
    pub fn of(fact: &Envelope) -> Option<Self> {
        let (model, usage, cost, model_snapshot, is_lost, is_estimated) = match &fact.event {
            Event::MessageCompleted {
                model,
                usage: Some(usage),
                estimated,
                cost_usd_micros,
                model_snapshot,
                ..
            } => {
                (model.clone().unwrap_or_default(), usage, cost_usd_micros, model_snapshot, false, *estimated)
            }
            Event::UsageBooked {
                model, usage, cost_usd_micros, model_snapshot, reason, estimated, ..
            } => {
                let is_lost = *reason == UsageReason::LostAttempt;
                (model.clone(), usage, cost_usd_micros, model_snapshot, is_lost, *estimated)
            }
            _ => return None,
        };
        Some(Self {
            session_id: fact.session_id,
            seq: fact.seq,
            at: fact.at_ms,
            model,
            usage: *usage,
            cost_usd_micros: *cost,
            model_snapshot: model_snapshot.unwrap_or_default(),
            is_lost,
            is_estimated,
        })
    }
}

/// The sum of all calls of one model, as the ledger stores it. If a part of a sum is unknown, the sum is
/// unknown, and the known part is its lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsage {
    /// Tokens and searches.
    #[serde(flatten)]
    pub usage: Usage,
    /// Model calls, including lost attempts.
    #[serde(default)]
    pub calls: u64,
    /// Calls without an answer, for which the provider may still charge.
    #[serde(default)]
    pub lost_attempts: u64,
    /// Calls whose tokens are an upper estimate, because the provider did not report them.
    #[serde(default)]
    pub estimated_calls: u64,
    /// Cost of all calls; `null` if a price is unknown.
    #[serde(default)]
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known: a lower bound of the total cost.
    #[serde(default)]
    pub cost_at_least_usd_micros: u64,
    /// Calls whose price is unknown.
    #[serde(default)]
    pub unpriced_calls: u64,
    /// Tokens that fit in a request and its answer, as known at the newest call; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
    /// Tokens of the longest answer, as known at the newest call; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl Default for ModelUsage {
    /// The sum of no calls: its cost is known to be 0.
    fn default() -> Self {
        Self {
            usage: Usage::default(),
            calls: 0,
            lost_attempts: 0,
            estimated_calls: 0,
            cost_usd_micros: Some(0),
            cost_at_least_usd_micros: 0,
            unpriced_calls: 0,
            context_window: None,
            max_output_tokens: None,
        }
    }
}

impl ModelUsage {
    /// Adds one call. Sums stop at the largest number.
    pub fn book(&mut self, booking: &UsageRecord) {
        let one = |is: bool| u64::from(is);
        self.add(&Self {
            usage: booking.usage,
            calls: 1,
            lost_attempts: one(booking.is_lost),
            estimated_calls: one(booking.is_estimated),
            cost_usd_micros: booking.cost_usd_micros,
            cost_at_least_usd_micros: booking.cost_usd_micros.unwrap_or(0),
            unpriced_calls: one(booking.cost_usd_micros.is_none()),
            context_window: booking.model_snapshot.context_window,
            max_output_tokens: booking.model_snapshot.max_output_tokens,
        });
    }

    /// Adds other sums. The window and the longest answer come from the newer sums.
    pub fn add(&mut self, other: &ModelUsage) {
        self.usage.add(&other.usage);
        self.calls = self.calls.saturating_add(other.calls);
        self.lost_attempts = self.lost_attempts.saturating_add(other.lost_attempts);
        self.estimated_calls = self.estimated_calls.saturating_add(other.estimated_calls);
        let sum = self.cost_usd_micros.zip(other.cost_usd_micros);
        self.cost_usd_micros = sum.map(|(one, more)| one.saturating_add(more));
        self.cost_at_least_usd_micros =
            self.cost_at_least_usd_micros.saturating_add(other.cost_at_least_usd_micros);
        self.unpriced_calls = self.unpriced_calls.saturating_add(other.unpriced_calls);
        self.context_window = other.context_window.or(self.context_window);
        self.max_output_tokens = other.max_output_tokens.or(self.max_output_tokens);
    }
}

/// The usage of one model by one session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRow {
    /// Id of the session; it may have been deleted since.
    pub session_id: SessionId,
    /// Its short name; absent if the session was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Time of the first of these calls.
    pub first_at_ms: Timestamp,
    /// Time of the last of these calls.
    pub last_at_ms: Timestamp,
    /// Sum of these calls.
    #[serde(flatten)]
    pub spent: ModelUsage,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn booking(cost_usd_micros: Option<u64>) -> UsageRecord {
        UsageRecord {
            session_id: "ses_0190f2a4-0000-7000-8000-000000000001".parse().expect("an id"),
            seq: 1,
            at: Timestamp(1),
            model: "p/m".into(),
            usage: Usage { input_tokens: 2, ..Usage::default() },
            cost_usd_micros,
            model_snapshot: ModelSnapshot::default(),
            is_lost: false,
            is_estimated: false,
        }
    }

    #[test]
    fn cost_sum_with_unknown_part_keeps_known_minimum() {
        let mut sum = ModelUsage::default();
        assert_eq!(sum.cost_usd_micros, Some(0));
        sum.book(&booking(Some(7)));
        assert_eq!((sum.cost_usd_micros, sum.unpriced_calls), (Some(7), 0));
        sum.book(&booking(None));
        sum.book(&booking(Some(5)));
        assert_eq!((sum.cost_usd_micros, sum.cost_at_least_usd_micros), (None, 12));
        assert_eq!((sum.calls, sum.unpriced_calls, sum.usage.input_tokens), (3, 1, 6));
        let wire = serde_json::to_value(&sum).expect("json");
        assert!(wire["cost_usd_micros"].is_null(), "never 0: {wire}");
    }

    #[test]
    fn usage_without_cost_field_has_unknown_cost() {
        let old: ModelUsage = serde_json::from_str(r#"{"input_tokens": 3}"#).expect("an old one");
        assert_eq!((old.usage.input_tokens, old.cost_usd_micros), (3, None));
    }

    proptest! {
        /// The sum does not depend on how the calls are grouped.
        #[test]
        fn usage_sum_is_independent_of_grouping(costs in proptest::collection::vec(proptest::option::of(0..1_000u64), 0..20), cut in 0..20usize) {
            let sum = |part: &[Option<u64>]| {
                let mut sum = ModelUsage::default();
                part.iter().for_each(|cost| sum.book(&booking(*cost)));
                sum
            };
            let (one, other) = costs.split_at(cut.min(costs.len()));
            let mut both = sum(one);
            both.add(&sum(other));
            prop_assert_eq!(both, sum(&costs));
        }
    }
}
