//! The tables of the configuration for providers and models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use model::ProviderKind;

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
