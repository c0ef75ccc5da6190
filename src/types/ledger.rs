//! The cost ledger (Q35): what every model call took, and what all calls of a model took together.
//!
//! A booking is read off the event that tells of the call, and off nothing else: engine, database and
//! whoever rebuilds either have the same one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{Envelope, Event, UsageReason};
use super::ids::{Seq, SessionId};
use super::time::Timestamp;
use super::usage::{ModelSnapshot, Usage};

/// What one model call took.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageRecord {
    /// The session that pays.
    pub session_id: SessionId,
    /// The event that tells of it: one booking an event.
    pub seq: Seq,
    /// When it was booked.
    pub at: Timestamp,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// What it took.
    pub usage: Usage,
    /// What that cost; `None` if it is not known.
    pub cost_usd_micros: Option<u64>,
    /// What was known of the model then.
    pub terms: ModelSnapshot,
    /// No answer came of it.
    pub is_lost: bool,
    /// `usage` is at least partly an upper estimate.
    pub is_estimated: bool,
}

impl UsageRecord {
    /// What an event books, if it books anything.
    #[must_use]
    pub fn of(fact: &Envelope) -> Option<Self> {
        let (model, usage, cost, terms, is_lost, is_estimated) = match &fact.event {
            Event::MessageCompleted {
                model, usage: Some(usage), estimated, cost_usd_micros, terms, ..
            } => (model.clone().unwrap_or_default(), usage, cost_usd_micros, terms, false, *estimated),
            Event::UsageBooked { model, usage, cost_usd_micros, terms, reason, estimated, .. } => {
                let is_lost = *reason == UsageReason::LostAttempt;
                (model.clone(), usage, cost_usd_micros, terms, is_lost, *estimated)
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
            terms: terms.unwrap_or_default(),
            is_lost,
            is_estimated,
        })
    }
}

/// What all calls of one model took together, as it stands in the ledger. A sum of which a part is not
/// known is not known; what is known of it is its lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelUsage {
    /// Tokens and searches.
    #[serde(flatten)]
    pub usage: Usage,
    /// Model calls, lost attempts included.
    #[serde(default)]
    pub calls: u64,
    /// Calls of which no answer came, and that may be charged all the same.
    #[serde(default)]
    pub lost_attempts: u64,
    /// Calls whose tokens are an upper estimate, since the provider did not get to report them.
    #[serde(default)]
    pub estimated_calls: u64,
    /// Cost of all calls; `null` if a price is unknown.
    #[serde(default)]
    pub cost_usd_micros: Option<u64>,
    /// Cost of the calls whose price is known: what all of them cost at least.
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
    /// Nothing was called, which costs nothing.
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
    /// Takes one call in. Sums stay at the largest number there is.
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
            context_window: booking.terms.context_window,
            max_output_tokens: booking.terms.max_output_tokens,
        });
    }

    /// Adds what others took; of window and longest answer the newer word counts.
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

/// What one session spent on one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRow {
    /// The session; it may have been deleted since.
    pub session_id: SessionId,
    /// Its short name; absent if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// The first of these calls.
    pub first_at_ms: Timestamp,
    /// The last of them.
    pub last_at_ms: Timestamp,
    /// What they took.
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
            terms: ModelSnapshot::default(),
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
        /// However calls are grouped, their sum is the same.
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
