//! Questions to a person that are not about permission: what to do about a call whose outcome is
//! unknown, and whether a turn that a restart interrupted goes on (S7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::{CallId, QuestionId};

/// A question as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// Its id, kept over restarts.
    pub request_id: QuestionId,
    /// What it is about.
    pub kind: QuestionKind,
    /// The question in words, for people.
    pub text: String,
    /// The call that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<CallId>,
    /// The call's tool.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<String>,
    /// The call's full arguments.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<Value>,
    /// What the call had said until then, head and tail if it is long.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output: Option<String>,
    /// What can be answered.
    pub options: Vec<Choice>,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The daemon stopped while a call may have been running: whether it took effect is not known.
    UnknownOutcome,
    /// The daemon stopped during the turn, and `on_restart = "pause"` holds.
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
    /// The turn goes on; of an unknown call the model is told that its outcome is unknown.
    Continue,
    /// The turn ends as aborted.
    Abort,
}

impl Choice {
    /// Both of them, in the order in which they are offered.
    pub const ALL: [Choice; 2] = [Choice::Continue, Choice::Abort];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Continue => "continue",
            Choice::Abort => "abort",
        }
    }

    /// The choice of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}
