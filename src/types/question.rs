//! Questions to the user that are not about permission: what to do about a call with unknown outcome, and
//! whether an interrupted turn continues after a restart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{CallId, QuestionId};

/// A question as clients receive it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Its id; a restart does not change it.
    pub request_id: QuestionId,
    /// The subject of the question.
    pub kind: QuestionKind,
    /// The question as text for users.
    pub text: String,
    /// The call that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<CallId>,
    /// The call's tool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<String>,
    /// The call's full arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<Value>,
    /// The call's output so far; only head and tail if it is long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<String>,
    /// The possible answers.
    pub options: Vec<Choice>,
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The daemon stopped while a call may have been running, so its outcome is unknown.
    UnknownOutcome,
    /// The daemon stopped during the turn, and `on_restart = "pause"` applies.
    Resume,
}

impl QuestionKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            QuestionKind::UnknownOutcome => "unknown_outcome",
            QuestionKind::Resume => "resume",
        }
    }
}

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The turn continues; the model is told that the outcome of an unknown call is unknown.
    Continue,
    /// The turn ends as aborted.
    Abort,
}

impl Choice {
    /// Both choices, in the order in which clients offer them.
    pub const ALL: [Choice; 2] = [Choice::Continue, Choice::Abort];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Continue => "continue",
            Choice::Abort => "abort",
        }
    }

    /// The choice with this name on the wire; `None` if there is none.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}
