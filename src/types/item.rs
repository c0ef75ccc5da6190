//! Items: the entries of a conversation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::{Attachment, BlobRef, TruncatedField};
use super::ids::{CallId, ItemId, Seq, TurnId};
use super::message::{Block, Role};
use super::slash_command::SlashCommand;
use super::tool::{ProposedPlan, ToolStatus};

/// Kinds of items.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ItemKind {
    /// An input of the user.
    UserMessage,
    /// An answer of the model.
    AssistantMessage,
    /// A tool call with its result.
    ToolCall,
    /// A plan that the model presents for approval, with its result.
    Plan,
    /// The reasoning of an answer.
    Reasoning,
    /// An error that ended a turn.
    Error,
    /// A text from the daemon to the model, for example to continue after the output limit.
    Notice,
    /// A boundary. Models no longer receive the conversation before it in its original form.
    Compaction,
}

impl ItemKind {
    /// The kind of an item with a call of this tool.
    #[must_use]
    pub fn of_tool(tool: &str) -> Self {
        if tool == ProposedPlan::TOOL { ItemKind::Plan } else { ItemKind::ToolCall }
    }

    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Status of an item.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ItemStatus {
    /// Not complete yet.
    Running,
    /// Complete.
    Completed,
    /// Interrupted. The existing part stays in the conversation, and is not sent to the model again.
    Interrupted,
}

impl ItemStatus {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One entry of the conversation.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// Its id.
    pub item_id: ItemId,
    /// The turn it belongs to.
    pub turn_id: TurnId,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Status of the item.
    pub status: ItemStatus,
    /// Seq of the event that opened it.
    pub first_seq: Seq,
    /// Seq of its newest permanent event.
    pub last_seq: Seq,
    /// Messages: all the text. Tool calls: the output for the model.
    pub text: Option<String>,
    /// Messages: the author.
    pub role: Option<Role>,
    /// Messages: the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub content: Vec<Block>,
    /// Tool calls: details.
    pub call: Option<CallView>,
    /// Inputs of users: the slash command whose expansion is the text.
    pub command: Option<SlashCommand>,
    /// In replies: truncated values of this item. Inside an event, the event has the list.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub truncated_fields: Vec<TruncatedField>,
}

/// The tool call of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallView {
    /// Its id.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// Status of the call.
    pub status: CallStatus,
    /// The full output, if the item's text is only its beginning and its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_blob: Option<BlobRef>,
    /// Pictures and documents that the model received with the result.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub attachments: Vec<Attachment>,
}

/// Status of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Requested by the model.
    Pending,
    /// Waits for the user's answer.
    AwaitingPermission,
    /// Running.
    Running,
    /// Succeeded.
    Completed,
    /// Reported an error.
    Failed,
    /// Was refused.
    Denied,
    /// Was stopped.
    Cancelled,
    /// The outcome is unknown.
    Unknown,
}

impl From<ToolStatus> for CallStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Completed => CallStatus::Completed,
            ToolStatus::Failed => CallStatus::Failed,
            ToolStatus::Denied => CallStatus::Denied,
            ToolStatus::Cancelled => CallStatus::Cancelled,
            ToolStatus::Unknown => CallStatus::Unknown,
        }
    }
}
