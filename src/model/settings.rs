//! Settings of this layer: providers, capabilities of their models, and time limits. Another module reads the
//! configuration file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keys::KeySource;
use crate::stream::fault::is_secret_header;
use types::config_values::ConfigDuration;
use types::retry::RetrySettings;
use types::sampling::{Sampling, Temperature, TopP};
use types::usage::Price;

/// Everything [`Models`](super::Models) needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Providers by name, which is the part of a model's name before the slash.
    pub providers: BTreeMap<String, Provider>,
    /// Configured properties of models, by `provider/model`.
    pub models: BTreeMap<String, ModelFacts>,
    /// The `User-Agent` header, for example `agentd/0.1.0`.
    pub user_agent: String,
    /// Time limit for establishing a connection.
    pub connect_timeout: Duration,
    /// Whether the same request within five minutes gets the same answer from memory.
    pub cache: bool,
    /// Time limits of an answer: the keys `idle_…`, `content_timeout` and `attempt_timeout` of `[retry]`.
    pub retry: RetrySettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            providers: BTreeMap::new(),
            models: BTreeMap::new(),
            user_agent: concat!("agentd/", env!("CARGO_PKG_VERSION")).into(),
            cache: false,
            connect_timeout: Duration::from_secs(15),
            retry: RetrySettings::default(),
        }
    }
}

/// `[providers.NAME]`
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The API of the provider.
    pub kind: ProviderKind,
    /// Base URL; absent for the vendor's own address.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Environment variable with the key.
    #[serde(default)]
    pub api_key_env: Option<String>,
    /// File with the key, or `credential:NAME`.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// Command that prints the key.
    #[serde(default)]
    pub api_key_command: Option<String>,
    /// File in which `agentctl login` stores a key. It is used if no other source is configured, or if the variable is
    /// not set, and need not exist.
    #[serde(skip)]
    pub stored_key: Option<PathBuf>,
    /// Additional headers of every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The cassette of a replay provider.
    #[serde(default)]
    pub cassette: Option<PathBuf>,
    /// File to which a recording of every answer is appended.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Responses only: the provider stores the conversation, and requests name the answer that they continue.
    #[serde(default)]
    pub store: bool,
    /// Anthropic only: the value of the API version header; absent for `2023-06-01`.
    #[serde(default)]
    pub api_version: Option<String>,
    /// Chat Completions only: the field of the output limit. If absent, the vendor gets the newer field and other
    /// servers the older one; after a refusal that names the field, the other one is used.
    #[serde(default)]
    pub max_tokens_field: Option<MaxTokensField>,
    /// Parameters that are added to the address of every request.
    #[serde(default)]
    pub query: BTreeMap<String, String>,
    /// Maximum time until the first byte of an answer; absent for 10 minutes on loopback and private addresses and
    /// 5 minutes elsewhere.
    #[serde(default)]
    pub first_byte_timeout: Option<ConfigDuration>,
}

/// The field of a request with the output limit (Chat Completions).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// The older field, which most servers know.
    MaxTokens,
    /// The newer field, which the vendor's models with reasoning require.
    MaxCompletionTokens,
}

impl MaxTokensField {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            MaxTokensField::MaxTokens => MaxTokensField::MaxCompletionTokens,
            MaxTokensField::MaxCompletionTokens => MaxTokensField::MaxTokens,
        }
    }
}

impl Provider {
    /// A provider of this kind at the vendor's own address, without a key.
    #[must_use]
    pub fn new(kind: ProviderKind) -> Self {
        Self {
            kind,
            base_url: None,
            api_key_env: None,
            api_key_file: None,
            api_key_command: None,
            stored_key: None,
            headers: BTreeMap::new(),
            cassette: None,
            record: None,
            store: false,
            api_version: None,
            max_tokens_field: None,
            query: BTreeMap::new(),
            first_byte_timeout: None,
        }
    }

    /// The name of the systemd credential with the key, if `api_key_file` names one.
    #[must_use]
    pub fn credential(&self) -> Option<&str> {
        self.api_key_file.as_ref()?.to_str()?.strip_prefix(crate::keys::CREDENTIAL_PREFIX)
    }

    /// The source of the key. The variable comes before the file, and the file before the command. A stored key comes
    /// last.
    pub(super) fn key(&self) -> KeySource {
        let stored = |variable: Option<&String>| {
            let file = self.stored_key.clone()?;
            Some(KeySource::Stored { variable: variable.cloned(), file })
        };
        match (&self.api_key_env, &self.api_key_file, &self.api_key_command) {
            (Some(variable), _, _) => {
                stored(Some(variable)).unwrap_or_else(|| KeySource::Env(variable.clone()))
            }
            (None, Some(file), _) => match self.credential() {
                Some(name) => KeySource::Credential(name.to_owned()),
                None => KeySource::File(file.clone()),
            },
            (None, None, Some(command)) => KeySource::Command(command.clone()),
            (None, None, None) => stored(None).unwrap_or(KeySource::None),
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
            .field("base_url", &self.base_url.as_deref().map(|url| url.split('?').next().unwrap_or(url)))
            .field("key", &self.key())
            .field("headers", &headers)
            .field("cassette", &self.cassette)
            .field("record", &self.record)
            .field("store", &self.store)
            .field("api_version", &self.api_version)
            .field("max_tokens_field", &self.max_tokens_field)
            .field("query", &self.query.keys().collect::<Vec<_>>())
            .field("first_byte_timeout", &self.first_byte_timeout)
            .finish()
    }
}

/// The kind of a provider: an API, or recorded answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic Messages: `base_url` + `/v1/messages`.
    Anthropic,
    /// OpenAI Chat Completions: `base_url` + `/chat/completions`.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// OpenAI Responses: `base_url` + `/responses`.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// Plays a cassette, without a network.
    Replay,
}

/// An API that is spoken over HTTP. Recorded answers name the API that they were recorded from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Api {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
}

/// `[model."PROVIDER/MODEL"]`: known properties of one model; absent values use the defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelFacts {
    /// Tokens that fit in a request and its answer.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    pub max_output_tokens: Option<u32>,
    /// It can call tools.
    pub tools: Option<bool>,
    /// It accepts images.
    pub vision: Option<bool>,
    /// It accepts PDFs.
    pub documents: Option<bool>,
    /// It can return its reasoning.
    pub thinking: Option<bool>,
    /// It decides how much it thinks (Anthropic's adaptive thinking); other models receive token budgets.
    pub adaptive_thinking: Option<bool>,
    /// It also thinks between the calls of a turn (Anthropic's models with budgets).
    pub interleaved_thinking: Option<bool>,
    /// The lowest reasoning effort that it accepts, for thinking that is off, for example `minimal` (OpenAI).
    pub min_effort: Option<String>,
    /// It accepts a temperature and `top_p`.
    pub sampling: Option<bool>,
    /// Its temperature if a request sets none.
    pub temperature: Option<Temperature>,
    /// Its `top_p` if a request sets none.
    pub top_p: Option<TopP>,
    /// Which earlier reasoning is sent back to it (Chat Completions).
    pub replay_reasoning: Option<ReplayReasoning>,
    /// It can stream.
    pub streaming: Option<bool>,
    /// It accepts a system prompt.
    pub system_role: Option<bool>,
    /// Its price in US dollars per million tokens.
    pub price: Option<Price>,
}

/// Properties of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// Tokens that fit in a request and its answer.
    pub context_window: Option<u32>,
    /// Tokens of the longest answer.
    pub max_output_tokens: Option<u32>,
    /// It can call tools. Otherwise none are offered.
    pub tools: bool,
    /// It can stream. Otherwise the answer arrives in one piece and all deltas at once.
    pub streaming: bool,
    /// It accepts a system prompt. Otherwise the prompt opens the first user message.
    pub system_role: bool,
    /// Its price, if known.
    pub price: Option<Price>,
    /// It can return its reasoning.
    pub thinking: bool,
    /// It decides how much it thinks; other models receive token budgets.
    pub adaptive_thinking: bool,
    /// It also thinks between the calls of a turn, if a header requests it (Anthropic).
    pub interleaved_thinking: bool,
    /// The lowest reasoning effort that it accepts; `None` sends no effort.
    pub min_effort: Option<String>,
    /// It accepts a temperature and `top_p`.
    pub sampling: bool,
    /// Its sampling settings if a request sets none.
    pub usual: Sampling,
    /// Which earlier reasoning is sent back to it, where the API has no common field for it (Chat Completions).
    pub replay_reasoning: ReplayReasoning,
    /// It accepts images. If unknown, the vendors' own models are assumed to.
    pub vision: Option<bool>,
    /// It accepts PDFs. If unknown, models with vision are assumed to; with Chat Completions, only the vendor's
    /// own.
    pub documents: Option<bool>,
}

impl Default for ModelSettings {
    /// Optimistic defaults for an unknown model.
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
            min_effort: None,
            sampling: true,
            usual: Sampling::default(),
            replay_reasoning: ReplayReasoning::default(),
            vision: None,
            documents: None,
        }
    }
}

/// Which earlier reasoning is sent back to a model of Chat Completions, as `reasoning_content` of its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayReasoning {
    /// None: most servers refuse it or drop it.
    #[default]
    None,
    /// That of the current tool loop, until the next message of the user. Some models that think between calls
    /// require it.
    Tools,
    /// All of it.
    All,
}

/// Settings that cannot work for any call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ModelError {
    /// The address of a provider is not an http or https URL.
    #[error("base_url of [providers.{provider}] is not usable ({why}): write it like https://host/v1")]
    BadBaseUrl {
        /// Name of the provider.
        provider: String,
        /// The problem of the address.
        why: String,
    },
    /// A header cannot be sent.
    #[error(
        "header {header:?} of [providers.{provider}] cannot be sent: names are letters, digits and dashes, values are \
         one line of visible characters"
    )]
    BadHeader {
        /// Name of the provider.
        provider: String,
        /// Name of the header.
        header: String,
    },
    /// A replay provider without a cassette.
    #[error("[providers.{provider}] is of kind replay and needs cassette = \"FILE\"")]
    NoCassette {
        /// Name of the provider.
        provider: String,
    },
    /// A cassette on a provider that uses a network.
    #[error(
        "[providers.{provider}] has a cassette but is not of kind replay: use record = \"FILE\" to write one, or \
         kind = \"replay\" to play it"
    )]
    MisplacedCassette {
        /// Name of the provider.
        provider: String,
    },
    /// An invalid `api_version`, or one on a provider whose API has no header for it.
    #[error(
        "api_version of [providers.{provider}] is not usable: it is for kind = \"anthropic\" and is written like \
         2023-06-01"
    )]
    BadApiVersion {
        /// Name of the provider.
        provider: String,
    },
    /// `max_tokens_field` on a provider whose API has one field for the output limit.
    #[error(
        "[providers.{provider}] has max_tokens_field but is not of kind openai_chat: only that API has two fields"
    )]
    MisplacedMaxTokensField {
        /// Name of the provider.
        provider: String,
    },
    /// `first_byte_timeout` is zero.
    #[error("first_byte_timeout of [providers.{provider}] must be at least 1ms")]
    BadFirstByteTimeout {
        /// Name of the provider.
        provider: String,
    },
    /// `store` on a provider whose API stores no conversations.
    #[error(
        "[providers.{provider}] has store but is not of kind openai_responses: only that API keeps conversations"
    )]
    MisplacedStore {
        /// Name of the provider.
        provider: String,
    },
}

impl ModelError {
    /// A stable code for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_debug_output_contains_no_secret() {
        let mut provider = Provider::new(ProviderKind::OpenAiChat);
        provider.headers.insert("X-Api-Key".into(), "hush-1".into());
        provider.headers.insert("X-Title".into(), "agentd".into());
        provider.api_key_command = Some("echo hush-2".into());
        let shown = format!("{provider:?}");
        assert!(!shown.contains("hush"), "{shown}");
        assert!(shown.contains("agentd"), "{shown}");
    }
}
