//! An event with its position, its time and its source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::variants::Event;
use crate::blob::TruncatedField;
use crate::ids::{CallId, ItemId, Seq, SessionId, TurnId};
use crate::item::Item;
use crate::origin::Origin;
use crate::time::Timestamp;

/// `kind` of the notice at the end of a journal whose later events are lost.
pub const HISTORY_LOST: &str = "history_lost";

/// Version of the format of events. It rises when the meaning of an existing kind or field changes. It does not rise
/// for new kinds and fields, because clients ignore unknown ones.
pub const EVENT_VERSION: u32 = 1;

/// One event as it is stored in the journal and sent on the wire.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// Its position in the session's journal, from 1.
    pub seq: Seq,
    /// Id of the session.
    pub session_id: SessionId,
    /// The turn, if the event belongs to one.
    pub turn_id: Option<TurnId>,
    /// The item, if the event belongs to one.
    pub item_id: Option<ItemId>,
    /// The step of the turn: number of the model call, from 1. Deltas of messages omit it; they have the step of their
    /// item.
    pub step: Option<u64>,
    /// The tool call of another session that started this session. Absent in sessions that a client created.
    pub parent_call_id: Option<CallId>,
    /// Time of the event.
    pub at_ms: Timestamp,
    /// The client that caused it, if any.
    pub origin: Option<Origin>,
    /// Truncated values of this event, which are too large for an event (64 KiB): `session.blob` reads the
    /// complete value. Absent if the event is complete.
    #[serde(skip_serializing_if = "Vec::is_empty", default, alias = "cut")]
    pub truncated_fields: Vec<TruncatedField>,
    /// Type and content of the event.
    #[serde(flatten)]
    pub event: Event,
}

impl Event {
    /// A complete message without the figures of a model call.
    #[must_use]
    pub fn message(item: Item) -> Self {
        Event::MessageCompleted {
            item,
            reasoning_item_id: None,
            model: None,
            stop_reason: None,
            usage: None,
            estimated: false,
            cost_usd_micros: None,
            model_snapshot: None,
            duration_ms: None,
            response_id: None,
            superseded: false,
            cache_hit: false,
            uncalibrated_tokens: None,
            cut_short: false,
            candidate: false,
        }
    }
}
