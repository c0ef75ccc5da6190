//! Stable names in events: the phases of a turn, and the reasons of settling, switching, discarding and booking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The phase of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The input is added to the conversation.
    Input,
    /// The conversation is compacted, because the next request would not fit the model's window or a user asked
    /// for it.
    CompactCheck,
    /// The daemon builds the system prompt and its context.
    Context,
    /// The conversation is brought into the form that the provider accepts.
    Normalize,
    /// The daemon waits for a model.
    ModelCall,
    /// Tools are prepared, wait for permission, and run.
    ToolExecution,
    /// The daemon computes the result.
    Result,
}

impl Phase {
    /// The value on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// How a permission request or a question was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// A client answered.
    Answer,
    /// The turn or the call was aborted.
    Abort,
    /// A client submitted an input instead of answering. Questions only.
    Submit,
    /// The deadline passed without an answer, so the action of `on_timeout` applied.
    Timeout,
    /// A client without a user denied the request; no user decided.
    #[serde(alias = "nobody")]
    NoApprover,
    /// A rule that was added meanwhile, or a grant given with another answer, covers it.
    Rule,
    /// The session's mode was changed to one that allows it.
    Mode,
}

/// Why a queued turn left the queue without a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DequeueReason {
    /// A client removed it.
    Removed,
    /// A client cleared the whole queue.
    Cleared,
    /// A client aborted the turn by its id before it started.
    Aborted,
}

/// Why a turn switches to another model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SwitchReason {
    /// Overloaded three times in a row: `[models] fallback`.
    Overloaded,
    /// Every attempt failed: `[models] fallback`.
    Unavailable,
    /// The provider does not know the model: `[models] fallback`.
    NotFound,
    /// The provider limits the rate, and `[retry] on_rate_limit` is `backup`: `[models] backup`.
    RateLimited,
    /// The conversation does not fit the model's window: `[models] large_context`.
    LargeContext,
    /// The conversation contains pictures and the model does not accept them: `[models] vision`.
    Vision,
}

impl SwitchReason {
    /// The reason as text for users.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            SwitchReason::Overloaded => "overloaded",
            SwitchReason::Unavailable => "unavailable",
            SwitchReason::NotFound => "not found",
            SwitchReason::RateLimited => "rate limited",
            SwitchReason::LargeContext => "the conversation is too large for it",
            SwitchReason::Vision => "it cannot see pictures",
        }
    }
}

/// Why a partial answer is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TombstoneReason {
    /// Another model answers instead.
    ModelSwitched,
    /// The answer was cut at the output limit and is requested again with a higher limit.
    OutputLimit,
    /// The model answered twice, and the other answer was chosen.
    NotChosen,
    /// The model answered twice, and this answer was chosen. A complete item with the same content follows.
    Chosen,
}

/// How one of two answers was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeedbackBy {
    /// A client chose it.
    Answer,
    /// Both say and do the same, so no client was asked.
    Equal,
    /// There is no complete second answer, so no client was asked.
    Single,
    /// The turn was aborted before a client chose.
    Abort,
}

/// Why tokens are booked outside the answers of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageReason {
    /// A model call that a restart or a fault interrupted after it was sent: the provider may charge for it.
    LostAttempt,
    /// An answered helper call; `purpose` gives its purpose.
    Helper,
}

/// The purpose of a helper call, which is a model call outside the turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A short title of the session.
    Title,
    /// A summary of the conversation, in the course of a turn.
    Compaction,
    /// A call about the index of the workspace.
    Knowledge,
    /// A call for an MCP server (sampling).
    Mcp,
    /// Use inside an answer that the provider reports separately, for example of an advisor model.
    Nested,
}

/// The source of a session's title, if no client set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TitledBy {
    /// The beginning of the first input; it is used until there is a better title.
    Prompt,
    /// The model of `[models] quick`.
    Model,
}
