//! Documents of an index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::index::IndexLevel;

/// The state of a document during indexing.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DocumentStatus {
    /// Known, not begun.
    Pending,
    /// Begun. After a crash it begins again; cached answers are reused.
    Processing,
    /// Completely in the index.
    Processed,
    /// Gave an error, which the document holds.
    Failed,
}

impl DocumentStatus {
    /// All states.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Processing, Self::Processed, Self::Failed];

    /// The name on the wire and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// The origin of a document's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocumentSource {
    /// A file of the workspace. Its document is deleted with the file.
    File,
    /// A text that a client inserted.
    Inserted,
}

/// A document of an index.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IndexDocument")]
pub struct Document {
    /// Its id.
    pub id: String,
    /// Its path; absent for an inserted document without one.
    pub path: Option<String>,
    /// `pending`, `processing`, `processed` or `failed`.
    #[schemars(with = "String")]
    pub status: DocumentStatus,
    /// The level at which it was processed: `lexical`, `structure` or `semantic`.
    #[schemars(with = "String")]
    pub level: IndexLevel,
    /// `file` or `inserted`.
    #[schemars(with = "String")]
    pub source: DocumentSource,
    /// Why it failed.
    pub error: Option<String>,
    /// Its language, if known.
    pub language: Option<String>,
    /// Size of its text in bytes.
    pub bytes: u64,
    /// Number of its chunks.
    pub chunks: u32,
    /// Time of the last change of its state, in milliseconds since the Unix epoch.
    pub updated_at_ms: i64,
}

/// A text for the index that is not a file.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsertedDocument {
    /// An id that the client chooses. If it is absent, the daemon derives one from the text.
    pub id: Option<String>,
    /// A name with which results refer to the document.
    pub path: Option<String>,
    /// The text.
    pub text: String,
}

/// The result of inserting one document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InsertOutcome {
    /// Its id.
    pub id: String,
    /// Whether the index already contained the same document.
    pub unchanged: bool,
}
