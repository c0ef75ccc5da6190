//! The tables of the configuration for providers and models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use model::{ProviderKind, ReplayReasoning};
use types::sampling::{Temperature, TopP};
use types::usage::Price;

impl Provider {
    /// The name of the systemd credential with the key, if `api_key_file` names one.
    pub fn credential(&self) -> Option<&str> {
        self.api_key_file.as_ref()?.to_str()?.strip_prefix(super::paths::CREDENTIAL)
    }
}

/// `[providers.NAME]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// The API of the provider.
    pub kind: ProviderKind,
    /// Base address of the API.
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
    /// Additional HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// For `replay`: the file with the recorded answers.
    #[serde(default)]
    pub cassette: Option<PathBuf>,
    /// File to record every answer to.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// For `openai_responses`: the provider stores the conversation.
    #[serde(default)]
    pub store: bool,
    /// For `anthropic`: the API version that is sent as a header.
    #[serde(default)]
    pub api_version: Option<String>,
}

/// `[models]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pointers {
    /// Model of sessions that name none.
    pub main: Option<String>,
    /// Model for small tasks such as titles. It, `task` and `reasoning` are used if a caller names them.
    pub quick: Option<String>,
    /// Model for separate tasks.
    pub task: Option<String>,
    /// Model for hard questions.
    pub reasoning: Option<String>,
    /// Model after repeated overload, or if a model is missing or does not answer.
    pub fallback: Option<String>,
    /// Model on rate limits, if `[retry] on_rate_limit` is `backup`.
    pub backup: Option<String>,
    /// Model for conversations that exceed the context window.
    pub large_context: Option<String>,
    /// Model for images if the session's model does not support them.
    pub vision: Option<String>,
}

impl Pointers {
    /// All pointers by name, including unset ones.
    #[must_use]
    pub fn all(&self) -> [(&'static str, &Option<String>); 8] {
        [
            ("main", &self.main),
            ("quick", &self.quick),
            ("task", &self.task),
            ("reasoning", &self.reasoning),
            ("fallback", &self.fallback),
            ("backup", &self.backup),
            ("large_context", &self.large_context),
            ("vision", &self.vision),
        ]
    }
}

/// `[model."PROVIDER/MODEL"]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Model {
    /// Maximum tokens of input and output together.
    pub context_window: Option<u32>,
    /// Maximum tokens of one answer.
    pub max_output_tokens: Option<u32>,
    /// Whether the model supports tools.
    pub tools: Option<bool>,
    /// Whether the model supports images.
    pub vision: Option<bool>,
    /// Whether the model supports PDF documents.
    pub documents: Option<bool>,
    /// Whether the model supports thinking.
    pub thinking: Option<bool>,
    /// Whether the model decides how much it thinks (Anthropic's adaptive thinking).
    pub adaptive_thinking: Option<bool>,
    /// Whether the model thinks between the calls of a turn as well (Anthropic's models with budgets).
    pub interleaved_thinking: Option<bool>,
    /// The lowest reasoning effort that the model supports, for example `minimal` (OpenAI).
    pub min_effort: Option<String>,
    /// Whether the model supports `temperature` and `top_p`.
    pub sampling: Option<bool>,
    /// Default temperature of the model.
    pub temperature: Option<Temperature>,
    /// Default `top_p` of the model.
    pub top_p: Option<TopP>,
    /// The earlier reasoning that is sent back to the model (Chat Completions).
    pub replay_reasoning: Option<ReplayReasoning>,
    /// Whether the model supports streaming.
    pub streaming: Option<bool>,
    /// Whether the model supports a system role.
    pub system_role: Option<bool>,
    /// Price in US dollars per million tokens.
    pub price: Option<Price>,
}
