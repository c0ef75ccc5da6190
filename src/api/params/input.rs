//! The input of a submit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The input of a submit: a text, or blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SubmitInput {
    /// Plain text.
    Text(String),
    /// Blocks: at most 20 images and files, of at most 20 MiB in total after images were scaled down.
    Blocks(Vec<SubmitBlock>),
}

impl From<&str> for SubmitInput {
    fn from(text: &str) -> Self {
        SubmitInput::Text(text.into())
    }
}

impl From<String> for SubmitInput {
    fn from(text: String) -> Self {
        SubmitInput::Text(text)
    }
}

/// One block of an input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SubmitBlock {
    /// Text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A PNG, JPEG, GIF or WebP, of at most 20 MiB. An image larger than models accept is scaled down.
    Image(FileContent),
    /// An image, a PDF of at most 32 MiB, or a text file of at most 256 KiB.
    File(FileContent),
    /// A PDF of at most 32 MiB, or a text of at most 256 KiB.
    Document(DocumentContent),
    /// A reference to a resource. With `server`, the daemon reads the content from that MCP server. Without `server`,
    /// it reads a `file:` URI like a file block. For any other URI, the model receives only the name and the URI.
    ResourceLink(ResourceLink),
}

/// A reference to a resource.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceLink {
    /// Its URI, at most 2,000 bytes.
    pub uri: String,
    /// Its name, at most 200 bytes; by default its path or URI.
    pub name: Option<String>,
    /// Name of the MCP server that has the resource, as in `mcp.list` for this session.
    pub server: Option<String>,
}

/// The location of an image or a file: `path` or `data`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileContent {
    /// A file on the daemon's machine: absolute, or relative to the session's folder. The daemon reads it once, so
    /// later changes have no effect.
    pub path: Option<String>,
    /// The content itself, in base64.
    pub data: Option<String>,
    /// Its media type, for display only. The daemon determines the type from the content.
    pub media_type: Option<String>,
    /// Its name; by default its path.
    pub name: Option<String>,
}

/// The location of a document, or its text.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentContent {
    /// A file on the daemon's machine: absolute, or relative to the session's folder. With `text` it is only a name, and
    /// nothing is read.
    pub path: Option<String>,
    /// The content itself, in base64.
    pub data: Option<String>,
    /// The text itself, for example a part of a file, or a buffer of an editor.
    pub text: Option<String>,
    /// Whether `text` differs from the file, because the user has not saved it. The model is told so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsaved: bool,
    /// Its media type, for display only. The daemon determines the type from the content.
    pub media_type: Option<String>,
    /// Its name; by default its path.
    pub name: Option<String>,
}

/// Written by hand, because the errors of an untagged enum name neither the block nor its problem.
impl<'de> Deserialize<'de> for SubmitInput {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = SubmitInput;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or a list of blocks")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<SubmitInput, E> {
                Ok(SubmitInput::Text(text.into()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<SubmitInput, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = list.next_element()? {
                    blocks.push(block);
                }
                Ok(SubmitInput::Blocks(blocks))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
