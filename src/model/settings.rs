//! What this floor wants to be told: providers, what their models can do, and time limits.
//! The configuration file is somebody else's concern.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::keys::Key;
use crate::model::catalog::builtin::ModelFacts;
use crate::model::stream::fault::is_secret_header;
use crate::types::sampling::Sampling;
use crate::types::usage::Price;

/// Everything [`Models`](super::Models) needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Providers by the name that stands before the slash of a model.
    pub providers: BTreeMap<String, Provider>,
    /// What the configuration says of single models, by `provider/model`.
    pub models: BTreeMap<String, ModelFacts>,
    /// How we introduce ourselves, for example `agentd/0.1.0`.
    pub user_agent: String,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// Whether the same request within five minutes gets the same answer, from memory.
    pub cache: bool,
    /// After how long a silence a listener is told of it, before the answer begins and inside it.
    pub idle_warn: Duration,
    /// How long a provider may stay silent.
    pub idle_timeout: Duration,
    /// How long it may say nothing but that it is alive: pings, comments, bytes that mean nothing.
    pub content_timeout: Duration,
    /// The longest one answer may take.
    pub attempt_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            user_agent: concat!("agentd/", env!("CARGO_PKG_VERSION")).into(),
            cache: false,
            connect_timeout: Duration::from_secs(15),
            idle_warn: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(90),
            content_timeout: Duration::from_secs(600),
            attempt_timeout: Duration::from_secs(3_600),
        }
    }
}

/// One provider.
#[derive(Clone)]
pub struct Provider {
    /// Which API it speaks.
    pub kind: Kind,
    /// Where; absent for the vendor's own address.
    pub base_url: Option<String>,
    /// Where its key is found.
    pub key: Key,
    /// Further headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The cassette of a replay provider.
    pub cassette: Option<PathBuf>,
    /// Where to append a recording of every answer.
    pub record: Option<PathBuf>,
    /// Responses only: the provider keeps the conversation, and requests name the answer they continue.
    pub store: bool,
    /// Anthropic only: the value of the header with the API's version; absent for `2023-06-01`.
    pub api_version: Option<String>,
}

impl Provider {
    /// A provider of this kind at the vendor's own address, without a key.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            base_url: None,
            key: Key::None,
            headers: BTreeMap::new(),
            cassette: None,
            record: None,
            store: false,
            api_version: None,
        }
    }
}

impl fmt::Debug for Provider {
    /// Hides the values of headers that may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: BTreeMap<&str, &str> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), if is_secret_header(name) { "***" } else { value }))
            .collect();
        f.debug_struct("Provider")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url)
            .field("key", &self.key)
            .field("headers", &headers)
            .field("cassette", &self.cassette)
            .field("record", &self.record)
            .field("store", &self.store)
            .field("api_version", &self.api_version)
            .finish()
    }
}

/// Which API a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Anthropic Messages: `base_url` + `/v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions: `base_url` + `/chat/completions`.
    OpenAiChat,
    /// OpenAI Responses: `base_url` + `/responses`.
    OpenAiResponses,
    /// Answers from a cassette, without a network.
    Replay,
}

/// What is known of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// Tokens that fit in a request and its answer.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    pub max_output_tokens: Option<u32>,
    /// It can call tools. Without, none are offered.
    pub tools: bool,
    /// It can stream. Without, the answer comes in one piece and the deltas all at once.
    pub streaming: bool,
    /// It has a place for a system prompt. Without, the prompt opens the first user message.
    pub system_role: bool,
    /// What it costs, if known.
    pub price: Option<Price>,
    /// It can reason visibly.
    pub thinking: bool,
    /// It decides by itself how much it thinks; budgets of tokens are for the others.
    pub adaptive_thinking: bool,
    /// It thinks between the calls of a turn as well, where that is asked for by a header (Anthropic).
    pub interleaved_thinking: bool,
    /// The least effort of reasoning that it takes, if that is not to send any.
    pub least_effort: Option<String>,
    /// It takes a temperature and a share of the likeliest words.
    pub sampling: bool,
    /// How freely it chooses its words where a request does not say.
    pub usual: Sampling,
    /// Its earlier reasoning is sent back to it, where the API has no agreed place for that (Chat Completions).
    pub reasoning_back: ReasoningBack,
    /// It can see images. What is not told is hoped of the vendors' own models.
    pub vision: Option<bool>,
    /// It takes PDFs as they are. What is not told is hoped of models that see; with Chat Completions, of
    /// the vendor's own alone.
    pub documents: Option<bool>,
}

impl Default for ModelSettings {
    /// What can be hoped of an unknown model.
    fn default() -> Self {
        Self {
            context_window: None,
            max_output_tokens: None,
            tools: true,
            streaming: true,
            system_role: true,
            price: None,
            thinking: false,
            adaptive_thinking: false,
            interleaved_thinking: false,
            least_effort: None,
            sampling: true,
            usual: Sampling::default(),
            reasoning_back: ReasoningBack::default(),
            vision: None,
            documents: None,
        }
    }
}

/// Which earlier reasoning a model of Chat Completions is sent back, as `reasoning_content` of the message that
/// it led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBack {
    /// None: most servers refuse it or drop it.
    #[default]
    None,
    /// That of the tool loop under way, until the next message of a person. Demanded by some models that
    /// think between calls.
    Tools,
    /// All of it.
    All,
}

/// Settings that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The address of a provider is not an http or https URL.
    BadBaseUrl {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        why: String,
    },
    /// A header cannot be sent.
    BadHeader {
        /// The provider.
        provider: String,
        /// The header's name.
        header: String,
    },
    /// A replay provider without a cassette.
    NoCassette {
        /// The provider.
        provider: String,
    },
    /// A cassette on a provider that asks a network.
    MisplacedCassette {
        /// The provider.
        provider: String,
    },
    /// `api_version` that is no version, or on a provider whose API has no header for it.
    BadApiVersion {
        /// The provider.
        provider: String,
    },
    /// `store` on a provider whose API keeps no conversations.
    MisplacedStore {
        /// The provider.
        provider: String,
    },
}

impl ModelError {
    /// A stable word for programs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            ModelError::BadBaseUrl { .. } => "bad_base_url",
            ModelError::BadHeader { .. } => "bad_header",
            ModelError::NoCassette { .. } => "no_cassette",
            ModelError::MisplacedCassette { .. } => "misplaced_cassette",
            ModelError::MisplacedStore { .. } => "misplaced_store",
            ModelError::BadApiVersion { .. } => "bad_api_version",
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelError::BadBaseUrl { provider, why } => write!(
                f,
                "base_url of [providers.{provider}] is not usable ({why}): write it like https://host/v1"
            ),
            ModelError::BadHeader { provider, header } => write!(
                f,
                "header {header:?} of [providers.{provider}] cannot be sent: names are letters, digits and \
                 dashes, values are one line of visible characters"
            ),
            ModelError::NoCassette { provider } => {
                write!(f, "[providers.{provider}] is of kind replay and needs cassette = \"FILE\"")
            }
            ModelError::MisplacedCassette { provider } => write!(
                f,
                "[providers.{provider}] has a cassette but is not of kind replay: use record = \"FILE\" to \
                 write one, or kind = \"replay\" to play it"
            ),
            ModelError::BadApiVersion { provider } => write!(
                f,
                "api_version of [providers.{provider}] is not usable: it is for kind = \"anthropic\" and is written \
                 like 2023-06-01"
            ),
            ModelError::MisplacedStore { provider } => write!(
                f,
                "[providers.{provider}] has store but is not of kind openai_responses: only that API keeps \
                 conversations"
            ),
        }
    }
}

impl std::error::Error for ModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_debug_output_contains_no_secret() {
        let mut provider = Provider::new(Kind::OpenAiChat);
        provider.headers.insert("X-Api-Key".into(), "hush-1".into());
        provider.headers.insert("X-Title".into(), "agentd".into());
        provider.key = Key::Command("echo hush-2".into());
        let shown = format!("{provider:?}");
        assert!(!shown.contains("hush"), "{shown}");
        assert!(shown.contains("agentd"), "{shown}");
    }
}
