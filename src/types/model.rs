//! One model call: the request, the stream and its end, in words that every provider shares.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::BlobId;
use super::message::Message;
use super::sampling::Sampling;
use super::thinking::Thinking;
use super::tool::ToolDefinition;
use super::usage::{Price, Usage};

/// `PROVIDER/MODEL`, as in the configuration's `[models]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it (may contain slashes).
    pub model: String,
}

impl FromStr for ModelRef {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
                Ok(Self { provider: provider.into(), model: model.into() })
            }
            _ => Err("expected PROVIDER/MODEL, for example anthropic/claude-sonnet-4-5"),
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelRequest {
    /// Whom to ask.
    pub model: ModelRef,
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The conversation: starts with the user, roles alternate, every call has its result in the
    /// next message (Q13).
    pub messages: Vec<Arc<Message>>,
    /// Tools on offer; empty for none.
    pub tools: Arc<[ToolDefinition]>,
    /// Upper limit of the answer, if the session sets one; else the adapter takes the model's.
    pub max_output_tokens: Option<u32>,
    /// How much the model may think; absent for what its vendor made the default. The same for all
    /// requests of a turn.
    pub thinking: Option<Thinking>,
    /// How freely it chooses its words. The same for all requests of a turn.
    pub sampling: Sampling,
    /// Contents of the attachments of `messages`. The session puts them in when it sends the request;
    /// what is missing is named to the model instead of shown.
    pub media: HashMap<BlobId, Arc<[u8]>>,
    /// The provider's id of the last answer in `messages`, if this very model gave it. Providers that
    /// keep conversations continue from there (M3).
    pub previous_response_id: Option<String>,
    /// To be sent over a connection of its own: the one before broke.
    pub fresh_connection: bool,
    /// It is no part of the conversation: a helper is asked, and nothing continues from what it says.
    pub aside: bool,
}

/// One step of a streamed answer. Blocks come in order of `index`, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// A block begins.
    BlockStarted {
        /// Its position in the answer, from 0.
        index: u32,
        /// What it is.
        kind: BlockKind,
    },
    /// More text.
    Text {
        /// The block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More reasoning.
    Thinking {
        /// The block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More of a tool call's arguments.
    ToolInput {
        /// The block.
        index: u32,
        /// A piece of JSON text.
        json: String,
    },
    /// The block is complete.
    BlockCompleted {
        /// The block.
        index: u32,
    },
    /// Not a part of the answer: the provider has been silent for so long. Comes once in each silence, also
    /// before the answer begins.
    Silence {
        /// How long, in milliseconds.
        ms: u64,
    },
}

/// What a streamed block is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BlockKind {
    /// Text.
    Text,
    /// Reasoning.
    Thinking,
    /// A tool call.
    ToolCall {
        /// The tool's name.
        tool: String,
    },
}

/// A model that a session could use, with what is known of it (M5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelView {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// What it is set up for: `main`, and so on; empty for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<String>,
    /// Whether anything is known of it at all. If not, what stands here is what is hoped of any model.
    pub known: bool,
    /// Tokens that fit in a request and its answer; `null` if unknown.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer; `null` if unknown.
    pub max_output_tokens: Option<u32>,
    /// It can call tools.
    pub tools: bool,
    /// It can stream.
    pub streaming: bool,
    /// It has a place for a system prompt.
    pub system_role: bool,
    /// It can reason visibly.
    pub thinking: bool,
    /// It takes a temperature and a share of the likeliest words (`top_p`).
    #[serde(default = "yes")]
    pub sampling: bool,
    /// It can see images; `null` if unknown.
    pub vision: Option<bool>,
    /// It can read PDFs as they are; `null` if unknown.
    #[serde(default)]
    pub documents: Option<bool>,
    /// What it costs; `null` if unknown, which is not nothing.
    pub price: Option<Price>,
    /// When the price was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_as_of: Option<String>,
    /// Where: an address, or `configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_source: Option<String>,
}

const fn yes() -> bool {
    true
}

/// A whole answer, after the stream came to its proper end.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// The blocks in order. The text of all text blocks equals the text of all `Delta::Text`.
    pub content: Vec<ReplyBlock>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Tokens of this call.
    pub usage: Usage,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// Things a person should know, for example an unknown stop reason.
    pub notices: Vec<String>,
    /// Nobody was asked: it is the answer to the same request of a moment ago.
    pub cache_hit: bool,
    /// What came with the end of the answer and was not handed on before: it belongs to the deltas.
    pub last: Vec<Delta>,
}

/// One block of a whole answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplyBlock {
    /// Text.
    Text(String),
    /// Reasoning with its signature.
    Thinking {
        /// The reasoning.
        text: String,
        /// The provider's signature.
        signature: Option<String>,
    },
    /// Encrypted reasoning.
    RedactedThinking(String),
    /// A complete tool call.
    ToolCall {
        /// The provider's id; adapters make up a unique one where it is missing.
        provider_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, or the raw text and why it is not JSON. Empty text counts as `{}`.
        input: Result<Value, (String, String)>,
    },
}

/// Why an answer ended (M7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// It wants tools.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence was met.
    StopSequence,
    /// The provider refused to answer.
    Refusal,
    /// The provider paused a long turn; it goes on when asked again.
    Pause,
}

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// For people: what happened and what to check. Never contains a key.
    pub message: String,
    /// The provider asked to wait this long.
    pub retry_after_ms: Option<u64>,
    /// The provider's own word for it, for example `context_length_exceeded`.
    pub word: Option<String>,
    /// The request and its answer do not fit, and the provider said by how much.
    pub overflow: Option<Overflow>,
    /// What caused it, from the outermost to the innermost, where more is known. Never contains a key.
    pub causes: Box<[String]>,
    /// Tokens that the provider reported before the answer broke off. Boxed, since most faults have none.
    pub usage: Option<Box<Usage>>,
}

/// How a request overflowed the model's window, in the provider's count of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// What fits, the answer included.
    pub limit: u64,
    /// What was sent.
    pub input: u64,
}

impl ModelFault {
    /// A fault without a wish to wait.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after_ms: None,
            word: None,
            overflow: None,
            causes: Box::default(),
            usage: None,
        }
    }
}

/// Kinds of failure of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No model, no such provider, or a provider kind that is not built.
    Unconfigured,
    /// The key is missing.
    NoKey,
    /// No connection: refused, DNS, TLS, time-out while connecting.
    Unreachable,
    /// The connection broke, or the stream ended without its proper end.
    Interrupted,
    /// No byte for too long.
    Idle,
    /// 429.
    RateLimited,
    /// 529, or an overload told inside the stream.
    Overloaded,
    /// Other 5xx, 408, 409.
    Server,
    /// 401.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 400, 413 and other 4xx.
    BadRequest,
    /// The answer was not what the API promises.
    Garbage,
    /// A replay cassette has no matching record.
    CassetteExhausted,
}

impl FaultKind {
    /// Whether the same request may succeed later (Q26).
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        match self {
            FaultKind::Unreachable
            | FaultKind::Interrupted
            | FaultKind::Idle
            | FaultKind::RateLimited
            | FaultKind::Overloaded
            | FaultKind::Server => true,
            FaultKind::Unconfigured
            | FaultKind::NoKey
            | FaultKind::Unauthorized
            | FaultKind::Forbidden
            | FaultKind::NotFound
            | FaultKind::BadRequest
            | FaultKind::Garbage
            | FaultKind::CassetteExhausted => false,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Unconfigured => "unconfigured",
            FaultKind::NoKey => "no_key",
            FaultKind::Unreachable => "unreachable",
            FaultKind::Interrupted => "interrupted",
            FaultKind::Idle => "idle",
            FaultKind::RateLimited => "rate_limited",
            FaultKind::Overloaded => "overloaded",
            FaultKind::Server => "server",
            FaultKind::Unauthorized => "unauthorized",
            FaultKind::Forbidden => "forbidden",
            FaultKind::NotFound => "not_found",
            FaultKind::BadRequest => "bad_request",
            FaultKind::Garbage => "garbage",
            FaultKind::CassetteExhausted => "cassette_exhausted",
        }
    }
}
