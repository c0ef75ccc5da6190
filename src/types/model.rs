//! One model call: the request, the stream and its end, in the form that every provider shares.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ids::BlobId;
use super::invisible_chars::is_invisible;
use super::message::Message;
use super::sampling::Sampling;
use super::thinking::Thinking;
use super::tool::ToolDefinition;
use super::usage::{NestedUsage, Price, Usage};

/// `PROVIDER/MODEL`, as in the configuration's `[models]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ModelRef {
    /// The provider's name in the configuration.
    pub provider: String,
    /// The model's name as the provider knows it (may contain slashes).
    pub model: String,
}

/// Maximum length of `PROVIDER/MODEL`.
const MAX_NAME_BYTES: usize = 256;

impl FromStr for ModelRef {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            // Names are shown in logs and on screens.
            Some(_) if text.len() > MAX_NAME_BYTES || text.chars().any(is_invisible) => {
                Err("a model's name has at most 256 bytes and no invisible characters")
            }
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
    /// The model to call.
    pub model: ModelRef,
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The conversation: starts with the user, roles alternate, every call has its result in the next message.
    pub messages: Vec<Arc<Message>>,
    /// Tools on offer; empty for none.
    pub tools: Arc<[ToolDefinition]>,
    /// Maximum tokens of the answer, if the session sets a maximum. Otherwise the adapter uses the model's limit.
    pub max_output_tokens: Option<u32>,
    /// How much the model may think; absent for the vendor's default. The same for all requests of a turn.
    pub thinking: Option<Thinking>,
    /// Sampling settings. The same for all requests of a turn.
    pub sampling: Sampling,
    /// Contents of the attachments of `messages`. The session adds them when it sends the request. The model
    /// receives a text instead of missing content.
    pub media: HashMap<BlobId, Arc<[u8]>>,
    /// The provider's id of the last answer in `messages`, if this model gave it. Providers that store
    /// conversations continue from there.
    pub previous_response_id: Option<String>,
    /// Whether to send the request over a new connection, because the previous one broke.
    pub fresh_connection: bool,
    /// Whether the request is a helper call. It is then not part of the conversation, and no later request continues
    /// from it.
    pub is_helper_call: bool,
    /// Texts at which the model stops its answer.
    pub stop: Vec<String>,
    /// Labels for the provider's own records.
    pub metadata: BTreeMap<String, String>,
    /// Whether the model does not think between tool calls, if the provider has such a setting.
    pub no_interleaving: bool,
    /// Whether the same request was sent before and another answer is needed. The response cache is then not used.
    pub is_repeated: bool,
}

impl ModelRequest {
    /// An empty request to this model, with the defaults of all options.
    #[must_use]
    pub fn new(model: ModelRef) -> Self {
        Self {
            model,
            system: "".into(),
            messages: Vec::new(),
            tools: [].into(),
            max_output_tokens: None,
            thinking: None,
            sampling: Sampling::default(),
            media: HashMap::new(),
            previous_response_id: None,
            fresh_connection: false,
            is_helper_call: false,
            stop: Vec::new(),
            metadata: BTreeMap::new(),
            no_interleaving: false,
            is_repeated: false,
        }
    }
}

/// The next part of a streamed answer. Blocks come in order of `index`, one at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// A block starts.
    BlockStarted {
        /// Its position in the answer, from 0.
        index: u32,
        /// Kind of the block.
        kind: BlockKind,
    },
    /// More text.
    Text {
        /// Position of the block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More reasoning.
    Thinking {
        /// Position of the block.
        index: u32,
        /// The new part.
        text: String,
    },
    /// More of a tool call's arguments.
    ToolInput {
        /// Position of the block.
        index: u32,
        /// A part of the JSON text.
        json: String,
    },
    /// A block of reasoning is complete. The provider accepts it back only with this signature or data.
    ThinkingSealed {
        /// Position of the block.
        index: u32,
        /// The signature over its text.
        signature: Option<String>,
        /// The complete data, if the reasoning is encrypted.
        data: Option<String>,
    },
    /// The block is complete.
    BlockCompleted {
        /// Position of the block.
        index: u32,
    },
    /// A tool call is complete and may start, although the answer continues. This delta follows the block's
    /// `BlockCompleted`. It is missing for a call whose end is uncertain, and for all calls after such a call.
    CallCompleted {
        /// Position of its block.
        index: u32,
        /// The provider's id of the call.
        provider_id: String,
        /// Name of the tool.
        tool: String,
        /// Its arguments: an object that is not empty.
        input: Value,
    },
    /// The provider has sent nothing for this time. This delta is not a part of the answer. It is sent once per
    /// silence, also before the answer begins.
    Silence {
        /// Duration of the silence so far, in milliseconds.
        ms: u64,
    },
}

/// Kind of a streamed block.
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

/// The result of trying a provider.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderCheck {
    /// Name of the provider.
    pub name: String,
    /// Whether its address answers and accepts the key.
    pub ok: bool,
    /// Time until the answer, in milliseconds; absent if the provider cannot be used.
    pub latency_ms: Option<u64>,
    /// Names of the models that the provider offers, at most 1,000; absent if it has no list.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub models: Vec<String>,
    /// Why the provider cannot be used, without secrets.
    pub error: Option<String>,
}

/// A model that a session could use, with its known capabilities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelView {
    /// `PROVIDER/MODEL`.
    pub model: String,
    /// Its roles in the configuration, such as `main`; empty for most models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pointers: Vec<String>,
    /// Whether the model is known. If not, the values are optimistic defaults.
    pub known: bool,
    /// Tokens that fit in a request and its answer; `null` if unknown.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer; `null` if unknown.
    pub max_output_tokens: Option<u32>,
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it can stream.
    pub streaming: bool,
    /// Whether it accepts a system prompt.
    pub system_role: bool,
    /// Whether it can return its reasoning.
    pub thinking: bool,
    /// Whether it accepts a temperature and `top_p`.
    #[serde(default = "default_true")]
    pub sampling: bool,
    /// Whether it accepts images; `null` if unknown.
    pub vision: Option<bool>,
    /// Whether it accepts PDFs; `null` if unknown.
    #[serde(default)]
    pub documents: Option<bool>,
    /// Its price; `null` if unknown, which is not the same as free.
    pub price: Option<Price>,
    /// Date of the price, for example `2026-03`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_as_of: Option<String>,
    /// Source of the price: an address, or `configuration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_source: Option<String>,
}

const fn default_true() -> bool {
    true
}

/// A complete answer, after the stream ended properly.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelReply {
    /// The blocks in order. Unless `is_restated`, the text of all text blocks equals the text of all `Delta::Text`.
    pub content: Vec<ReplyBlock>,
    /// Whether the streamed text of the first block turned out to be reasoning when it ended. It is a reasoning block
    /// here.
    pub is_restated: bool,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Tokens of this call.
    pub usage: Usage,
    /// Use inside the answer that is not part of `usage`.
    pub nested: Vec<NestedUsage>,
    /// The provider's id of the answer.
    pub response_id: Option<String>,
    /// Notices for the user, for example about an unknown stop reason.
    pub notices: Vec<String>,
    /// Whether this is the cached answer to the same request shortly before. If so, no model was called.
    pub cache_hit: bool,
    /// Deltas that arrived with the end of the answer and were not delivered before.
    pub last: Vec<Delta>,
}

/// One block of a complete answer.
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
        /// The provider's id of the call. If it is missing, the adapter generates a unique one.
        provider_id: String,
        /// The tool's name.
        tool: String,
        /// The arguments, or the raw text and the reason why it is not JSON. Empty text counts as `{}`.
        input: Result<Value, (String, String)>,
    },
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    EndTurn,
    /// The model requested tools.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// The model produced a stop sequence.
    StopSequence,
    /// The provider refused to answer.
    Refusal,
    /// The provider paused a long turn; another call continues it.
    Pause,
}

/// Why a model call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFault {
    /// Kind of the failure.
    pub kind: FaultKind,
    /// Text for users: the failure and what to check. It never contains a key.
    pub message: String,
    /// The wait that the provider requested, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The provider's own error code, for example `context_length_exceeded`, or [`UNKNOWN_HOST`] and [`LOOKUP_FAILED`].
    pub word: Option<String>,
    /// The sizes that the provider reported, if the request and its answer do not fit.
    pub overflow: Option<Overflow>,
    /// Whether the provider may have refused the request as too long, although its text is not known.
    pub may_be_overflow: bool,
    /// Causes from the outermost to the innermost, where known. They never contain a key.
    pub causes: Box<[String]>,
    /// Tokens that the provider reported before the answer broke off. Boxed, because most faults have none.
    pub usage: Option<Box<Usage>>,
}

/// [`ModelFault::word`] if the provider's host has no address.
pub const UNKNOWN_HOST: &str = "unknown_host";
/// [`ModelFault::word`] if the address of the provider's host could not be looked up.
pub const LOOKUP_FAILED: &str = "lookup_failed";

/// How a request exceeded the model's window, in the provider's count of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Maximum tokens, including the answer.
    pub limit: u64,
    /// Tokens of the request.
    pub input: u64,
}

impl ModelFault {
    /// A fault without a requested wait.
    #[must_use]
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after_ms: None,
            word: None,
            overflow: None,
            may_be_overflow: false,
            causes: Box::default(),
            usage: None,
        }
    }
}

/// Kinds of failure of a model call.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum FaultKind {
    /// No model, no such provider, or a provider kind that this build does not contain.
    Unconfigured,
    /// The key is missing.
    NoKey,
    /// No connection: refused, DNS, TLS, time-out while connecting.
    Unreachable,
    /// The connection broke, or the stream ended without its proper end.
    Interrupted,
    /// No byte arrived for too long.
    Idle,
    /// 429.
    RateLimited,
    /// 529, or an overload reported inside the stream.
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
    /// The answer violates the provider's API.
    Garbage,
    /// A replay cassette has no matching record.
    CassetteExhausted,
}

impl FaultKind {
    /// Whether the same request may succeed later.
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
    pub fn name(self) -> &'static str {
        self.into()
    }
}
