//! The cost ledger: the usage of every model call, and the sum per model.
//!
//! A usage record is computed only from the event that reports the call. So the engine, the database and a
//! rebuild of either compute the same records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::{Envelope, Event, UsageReason};
use super::ids::SessionId;
use super::time::Timestamp;
pub use super::usage::{ModelUsage, UsageRecord};

impl UsageRecord {
    /// The usage record of an event, if the event has one.
    #[must_use]
    pub fn from_envelope(fact: &Envelope) -> Option<Self> {
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
    use crate::usage::{ModelSnapshot, Usage};
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
        sum.add_record(&booking(Some(7)));
        assert_eq!((sum.cost_usd_micros, sum.unpriced_calls), (Some(7), 0));
        sum.add_record(&booking(None));
        sum.add_record(&booking(Some(5)));
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
                part.iter().for_each(|cost| sum.add_record(&booking(*cost)));
                sum
            };
            let (one, other) = costs.split_at(cut.min(costs.len()));
            let mut both = sum(one);
            both.add(&sum(other));
            prop_assert_eq!(both, sum(&costs));
        }
    }
}
