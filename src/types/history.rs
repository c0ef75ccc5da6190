//! Values of the operations on a session's history: search, fork, rewind.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blob::BlobRef;
use super::ids::{ItemId, Seq, SessionId};
use super::message::Message;
use super::todo::Todo;
use super::tool::ReadRecord;

/// A message that contains the searched words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextMatch {
    /// Id of the message's item.
    pub item_id: ItemId,
    /// The part of its text around the words.
    pub snippet: String,
}

/// The session and the item with which a forked session's history begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedFrom {
    /// The session that was forked. It may be deleted since.
    pub session_id: SessionId,
    /// The last item that was copied; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub item_id: Option<ItemId>,
}

/// A file of a rewind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewoundFile {
    /// Absolute path.
    pub path: String,
    /// The action of the rewind for the file.
    pub action: FileAction,
    /// In events: SHA-256 of its content after the rewind, in hexadecimal; absent if the file does not exist then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256: Option<String>,
}

/// A file before a tool call changes it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileCheckpoint {
    /// Absolute path.
    pub path: PathBuf,
    /// Whether the file exists.
    pub exists: bool,
    /// SHA-256 of its content, in hexadecimal; absent if there is no file, or if it could not be read.
    pub sha256: Option<String>,
    /// Its content. If it is absent although the file exists, it was not kept, because it is too large.
    pub content: Option<BlobRef>,
    /// Permission bits of the file.
    pub mode: Option<u32>,
}

/// The action of a rewind for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// It gets its earlier content.
    Restored,
    /// The session created it after the item, so it is removed.
    Deleted,
    /// It has its earlier content already.
    Unchanged,
}

/// A file that prevents a rewind of the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewindConflict {
    /// Absolute path.
    pub path: String,
    /// Why the file cannot be rewound, as text for users.
    pub reason: String,
}

/// The conversation after a rewind. It is complete, so a replay needs no event of the removed part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RewoundHistory {
    /// `first_seq` of the item that becomes the last one. Items that began later are removed.
    pub last_item_seq: Seq,
    /// Ids of the removed items, in their order.
    pub removed_items: Vec<ItemId>,
    /// Number of messages at the beginning that are unchanged.
    pub kept_messages: u64,
    /// The messages after the unchanged ones. Most rewinds need none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub messages: Vec<Message>,
    /// The versions of files that the model had seen at that item.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub reads: Vec<ReadRecord>,
    /// The folder of further commands.
    pub cwd: String,
    /// Tokens of the newest remaining answer and of its request.
    #[serde(default)]
    pub context_tokens: u64,
    /// The todo list at that item. Absent in journals of older versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub todos: Option<Vec<Todo>>,
    /// The files that were rewound as well.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<RewoundFile>,
}

/// The form of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// JSON Lines: the complete session, which can be imported. Only the first line contains ids of sessions and the
    /// time of the export.
    Jsonl,
    /// The conversation as Markdown.
    Markdown,
    /// The conversation as one self-contained HTML page.
    Html,
}
