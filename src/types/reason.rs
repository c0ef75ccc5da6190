//! Words of events: the phases of a turn, and why something was settled, switched, closed or booked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a turn stands (Q4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The input is taken in.
    Input,
    /// System prompt and surroundings are gathered.
    Context,
    /// A model is asked.
    ModelCall,
    /// Tools are prepared, asked for and run.
    ToolExecution,
    /// The result is made.
    Result,
}

/// How a permission request or a question was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// Somebody answered.
    Answer,
    /// The turn or the call was aborted.
    Abort,
    /// Somebody submitted an input instead of answering: of questions only.
    Submit,
    /// Nobody answered in time: what `on_timeout` says.
    Timeout,
    /// A client that has nobody to ask denied it, and no person did.
    Nobody,
    /// A rule that was added meanwhile, or a grant given with another answer, covers it.
    Rule,
    /// The session's mode was changed to one that lets it pass.
    Mode,
}

/// Why a turn goes on with another model (Q27, Q31).
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
    /// The conversation holds pictures and the model cannot see: `[models] vision`.
    Vision,
}

impl SwitchReason {
    /// For people.
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

/// Why an answer counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TombstoneReason {
    /// Another model is asked in its place.
    ModelSwitched,
    /// It was cut at the output limit, and is asked for again with a higher one.
    OutputLimit,
}

/// Why tokens are booked beside the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageReason {
    /// A model call that a restart or a fault cut off after it was sent: the provider may charge for it.
    LostAttempt,
    /// A helper's call that was answered: `purpose` says what it was for.
    Helper,
}

/// What a helper, which is a model call beside the answers of turns, is for (Q31, Q35).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A short title of the session.
    Title,
}

/// Who made a session's title, if no client did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TitledBy {
    /// It is the beginning of the first input: it stands until there is a better one.
    Prompt,
    /// The model of `[models] quick`.
    Model,
}
