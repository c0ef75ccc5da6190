//! What a model is told and what it said: the transcript in the form that all providers share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::Attachment;
use super::ids::CallId;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning that the provider wants back unchanged inside a tool loop.
    Thinking {
        /// The reasoning, possibly empty.
        text: String,
        /// The provider's signature over it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signature: Option<String>,
    },
    /// Reasoning that the provider encrypted.
    RedactedThinking {
        /// Opaque, to be sent back as it came.
        data: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// The result of one tool call.
    ToolResult {
        /// Our id of the call.
        call_id: CallId,
        /// The provider's id of the call.
        provider_id: String,
        /// What the model is told.
        content: String,
        /// Whether this is an error for the model.
        is_error: bool,
        /// Pictures and documents that belong to it.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<Attachment>,
    },
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Our id.
    pub call_id: CallId,
    /// The provider's id, unique within the message; sent back with the result.
    pub provider_id: String,
    /// The tool's name as the model spelled it.
    pub tool: String,
    /// The arguments. An object, unless the model sent something else.
    pub input: Value,
    /// Why the arguments could not be read as JSON; `input` is then the raw text as a string.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_error: Option<String>,
}

/// One message of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said; never empty in a request.
    pub content: Vec<Block>,
    /// `PROVIDER/MODEL` that said it: its reasoning goes back to nobody else. Unknown in old journals.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
}

impl Message {
    /// A message of nobody in particular.
    #[must_use]
    pub const fn new(role: Role, content: Vec<Block>) -> Self {
        Self { role, content, model: None }
    }

    /// A user message of one text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::Text { text: text.into() }])
    }
}

/// One part of a submitted input (Q5; text only so far).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
}

/// The text of an input.
#[must_use]
pub fn input_text(input: &[InputBlock]) -> String {
    let parts: Vec<&str> = input.iter().map(|InputBlock::Text { text }| text.as_str()).collect();
    parts.join("\n")
}
