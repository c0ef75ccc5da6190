//! Input and output of models: the transcript in the form that all providers share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::{self, Attachment, AttachmentKind, BlobRef, Document, Picture};
use super::ids::CallId;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the results of tools.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture from the user.
    Image(Picture),
    /// A PDF or a text file from the user.
    Document(Document),
    /// Reasoning. The provider requires it back unchanged while the model calls tools.
    Thinking {
        /// The reasoning, possibly empty.
        text: String,
        /// The provider's signature over it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signature: Option<String>,
    },
    /// Reasoning that the provider encrypted.
    RedactedThinking {
        /// Opaque data, sent back unchanged.
        data: String,
    },
    /// A tool call.
    ToolCall(ToolCall),
    /// The result of one tool call.
    ToolResult {
        /// The daemon's id of the call.
        call_id: CallId,
        /// The provider's id of the call.
        provider_id: String,
        /// The output for the model.
        content: String,
        /// Whether the result is an error.
        is_error: bool,
        /// Pictures and documents of the result.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<Attachment>,
    },
}

impl Block {
    /// The pictures and PDFs in the message, in order, which the model must receive in addition to the text.
    pub fn media_refs(&self) -> impl Iterator<Item = (AttachmentKind, &BlobRef)> {
        let (own, attached): (_, &[Attachment]) = match self {
            Block::Image(picture) => (Some((AttachmentKind::Image, &picture.blob)), &[]),
            Block::Document(document) if document.blob.media_type == blob::PDF => {
                (Some((AttachmentKind::Document, &document.blob)), &[])
            }
            Block::ToolResult { attachments, .. } => (None, attachments),
            Block::Document(_)
            | Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolCall(_) => (None, &[]),
        };
        own.into_iter().chain(attached.iter().map(|attachment| (attachment.kind, &attachment.blob)))
    }
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The daemon's id.
    pub call_id: CallId,
    /// The provider's id, unique within the message; sent back with the result.
    pub provider_id: String,
    /// The tool's name as the model wrote it.
    pub tool: String,
    /// The arguments. An object, unless the model sent another type.
    pub input: Value,
    /// Why the arguments are not valid JSON; `input` is then the raw text as a string.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_error: Option<String>,
}

/// One message of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The blocks; never empty in a request.
    pub content: Vec<Block>,
    /// `PROVIDER/MODEL` that wrote it: its reasoning is sent to this model only. Unknown in old journals.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
}

impl Message {
    /// A message without a model.
    #[must_use]
    pub const fn new(role: Role, content: Vec<Block>) -> Self {
        Self { role, content, model: None }
    }

    /// A user message with one text block.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::Text { text: text.into() }])
    }
}

/// One part of a submitted input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InputBlock {
    /// Text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture.
    Image(Picture),
    /// A PDF or a text file.
    Document(Document),
}

impl InputBlock {
    /// The name of a picture or a document, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            InputBlock::Text { .. } => None,
            InputBlock::Image(Picture { name, .. }) | InputBlock::Document(Document { name, .. }) => {
                name.as_deref()
            }
        }
    }
}

/// The beginning of a text block with the output of a shell command that the user ran in the client.
pub const OWN_COMMAND: &str = "I ran this command myself: `";

/// The words of the user in an input, for a title: without the output of commands that the user ran, unless the input
/// has nothing else.
#[must_use]
pub fn own_words(input: &[InputBlock]) -> String {
    let is_words = |block: &&InputBlock| matches!(block, InputBlock::Text { text } if !text.starts_with(OWN_COMMAND) && !text.trim().is_empty());
    let words: Vec<InputBlock> = input.iter().filter(is_words).cloned().collect();
    if words.is_empty() { input_text(input) } else { input_text(&words) }
}

/// The text of an input, without pictures and documents.
#[must_use]
pub fn input_text(input: &[InputBlock]) -> String {
    let texts = input.iter().filter_map(|block| match block {
        InputBlock::Text { text } => Some(text.as_str()),
        InputBlock::Image(_) | InputBlock::Document(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// An input as one line for users: its text, and short labels for pictures and documents.
#[must_use]
pub fn input_line(input: &[InputBlock]) -> String {
    let parts = input.iter().map(|block| match block {
        InputBlock::Text { text } => text.clone(),
        InputBlock::Image(picture) => format!("[image {}]", picture.name.as_deref().unwrap_or("inline")),
        InputBlock::Document(document) => format!("[file {}]", document.name.as_deref().unwrap_or("inline")),
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The content of the message for an input.
#[must_use]
pub fn input_content(input: Vec<InputBlock>) -> Vec<Block> {
    if input.iter().all(|block| matches!(block, InputBlock::Text { .. })) {
        return vec![Block::Text { text: input_text(&input) }];
    }
    let content = input.into_iter().map(|block| match block {
        InputBlock::Text { text } => Block::Text { text },
        InputBlock::Image(picture) => Block::Image(picture),
        InputBlock::Document(document) => Block::Document(document),
    });
    content.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_leave_out_output_of_own_commands() {
        let words = |texts: &[&str]| {
            let input: Vec<InputBlock> =
                texts.iter().map(|text| InputBlock::Text { text: (*text).to_owned() }).collect();
            own_words(&input)
        };
        let output = format!("{OWN_COMMAND}make` (exit 2). Its output:\n```\nerror\n```");
        assert_eq!(words(&[&output, "fix it"]), "fix it");
        assert_eq!(words(&["review this", "+a diff\n"]), "review this\n+a diff\n");
        assert_eq!(words(&[&output, " "]), format!("{output}\n "), "there are no other words");
    }
}
