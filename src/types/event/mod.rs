//! Events: the source of journal rows, of notifications to subscribers, and of `proto-docs/events.md`.

mod defaults;
mod envelope;
mod variants;

pub use envelope::{EVENT_VERSION, Envelope, HISTORY_LOST};
pub use variants::Event;

/// The kinds whose events are pruned when their item completes.
pub const DELTA_KINDS: [&str; 4] =
    ["message.text_delta", "message.thinking_delta", "message.tool_input_delta", "tool.progress"];

pub use crate::origin::Origin;
pub use crate::reason::{
    DequeueReason, FeedbackBy, Phase, Purpose, SettledBy, SwitchReason, TitledBy, TombstoneReason,
    UsageReason,
};
