//! Events: the source of journal rows, of notifications to subscribers, and of `proto-docs/events.md`.

mod defaults;
mod envelope;
mod variants;

pub use envelope::{EVENT_VERSION, Envelope, HISTORY_LOST};
pub use variants::Event;

pub use crate::origin::Origin;
pub use crate::reason::{
    DequeueReason, FeedbackBy, Phase, Purpose, SettledBy, SwitchReason, TitledBy, TombstoneReason,
    UsageReason,
};
