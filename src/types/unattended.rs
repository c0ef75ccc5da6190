//! `[permissions.unattended]`: permission requests and limits of unattended sessions.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::config_values::{ConfigDuration, dollars, micros, nonzero_duration};
use super::permission::OnTimeout;
use super::usage::Budgets;

/// Default money limit of one turn in US dollars.
const DEFAULT_USD: f64 = 5.0;

/// Settings of unattended sessions, which always have limits. Only the user's configuration sets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnattendedSettings {
    /// How long a request waits for a user. With 0, a call that needs a request is denied at once.
    pub deadline: ConfigDuration,
    /// The action when a request was not answered in time.
    pub on_timeout: OnTimeout,
    /// Cost of one turn in US dollars. Without it, the built-in default applies to models with a known price.
    #[serde(deserialize_with = "dollars")]
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: NonZeroU64,
    /// Output tokens of one turn.
    pub output_tokens: NonZeroU64,
    /// Elapsed time of one turn.
    #[serde(deserialize_with = "nonzero_duration")]
    pub wall_time: ConfigDuration,
    /// Program and arguments that the daemon starts for a pending request. The program receives JSON on its
    /// standard input.
    pub notify_command: Vec<String>,
    /// Address that receives the same JSON by POST.
    pub notify_url: Option<String>,
}

impl Default for UnattendedSettings {
    fn default() -> Self {
        Self {
            deadline: ConfigDuration::from_secs(3_600),
            on_timeout: OnTimeout::Deny,
            usd: None,
            model_calls: NonZeroU64::new(200).unwrap_or(NonZeroU64::MIN),
            output_tokens: NonZeroU64::new(400_000).unwrap_or(NonZeroU64::MIN),
            wall_time: ConfigDuration::from_secs(4 * 3_600),
            notify_command: Vec::new(),
            notify_url: None,
        }
    }
}

impl UnattendedSettings {
    /// How long a request waits, in milliseconds; `None` if it does not wait.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        Some(self.deadline.millis()).filter(|ms| *ms > 0)
    }

    /// Limits of sessions that name no limits. The limit on money is always set; if `usd` is absent, the caller
    /// removes it for a model whose price is not known.
    #[must_use]
    pub fn budgets(&self) -> Budgets {
        Budgets {
            usd_micros: Some(micros(self.usd.unwrap_or(DEFAULT_USD))),
            model_calls: Some(self.model_calls.get()),
            output_tokens: Some(self.output_tokens.get()),
            wall_time_ms: Some(self.wall_time.millis()),
            ..Budgets::default()
        }
    }
}
