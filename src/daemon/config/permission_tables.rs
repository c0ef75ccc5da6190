//! The tables of the configuration for permissions and the sandbox.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use judge::Rule;
use types::config_values::{ConfigDuration, dollars};
use types::permission::OnTimeout;

/// `[permissions]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Whether read-only commands run without a rule.
    pub safe_commands: bool,
    /// Whether the mode `bypass` is allowed.
    pub allow_bypass: bool,
    /// Whether `bypass` is allowed for root.
    pub allow_bypass_as_root: bool,
    /// Whether `bypass` still needs a permission request for some calls: deleting the root, the home folder or
    /// a folder above the workspace, and writing SSH or GnuPG keys.
    pub bypass_guard: bool,
    /// Allow rules.
    #[serde(deserialize_with = "rules")]
    pub allow: Vec<String>,
    /// Ask rules.
    #[serde(deserialize_with = "rules")]
    pub ask: Vec<String>,
    /// Deny rules.
    #[serde(deserialize_with = "rules")]
    pub deny: Vec<String>,
    /// Settings of unattended sessions.
    pub unattended: Unattended,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            safe_commands: true,
            allow_bypass: false,
            allow_bypass_as_root: false,
            bypass_guard: true,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            unattended: Unattended::default(),
        }
    }
}

/// Deserializes a duration above zero.
pub(super) fn deserialize_nonzero_span<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ConfigDuration, D::Error> {
    let span = ConfigDuration::deserialize(deserializer)?;
    if span.0.is_zero() {
        return Err(serde::de::Error::custom("0 leaves no time for anything; give a time like \"30m\""));
    }
    Ok(span)
}

/// Deserializes rules. They are parsed here, so that an error names their line.
pub(super) fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let rules = Vec::<String>::deserialize(deserializer)?;
    for rule in &rules {
        let rule = rule.parse::<Rule>().map_err(serde::de::Error::custom)?;
        if rule.is_unsandboxed() {
            let why = "running outside the sandbox is granted to a session only, when it is asked";
            return Err(serde::de::Error::custom(format!("{rule}: {why}")));
        }
    }
    Ok(rules)
}

/// `[permissions.unattended]`: sessions created with `background`. They always have limits.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Unattended {
    /// How long a request waits for a user; 0 asks no user.
    pub deadline: ConfigDuration,
    /// Decision at the deadline.
    pub on_timeout: OnTimeout,
    /// Cost of one turn in US dollars.
    #[serde(deserialize_with = "dollars")]
    pub usd: Option<f64>,
    /// Model calls of one turn.
    pub model_calls: NonZeroU64,
    /// Output tokens of one turn.
    pub output_tokens: NonZeroU64,
    /// Elapsed time of one turn.
    #[serde(deserialize_with = "deserialize_nonzero_span")]
    pub wall_time: ConfigDuration,
    /// Program and arguments that the daemon starts for a pending request. The program receives JSON on its
    /// standard input.
    pub notify_command: Vec<String>,
    /// Address that receives the same JSON by POST.
    pub notify_url: Option<String>,
}

impl Default for Unattended {
    fn default() -> Self {
        Self {
            deadline: ConfigDuration(Duration::from_secs(3_600)),
            on_timeout: OnTimeout::Deny,
            usd: None,
            model_calls: NonZeroU64::new(200).unwrap_or(NonZeroU64::MIN),
            output_tokens: NonZeroU64::new(400_000).unwrap_or(NonZeroU64::MIN),
            wall_time: ConfigDuration(Duration::from_secs(4 * 3_600)),
            notify_command: Vec::new(),
            notify_url: None,
        }
    }
}

/// `[sandbox]`
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// The sandbox level.
    pub level: SandboxLevel,
    /// Whether tools have network access.
    pub network: Network,
    /// Additional folders that tools may write.
    pub writable: Vec<PathBuf>,
    /// Whether the daemon offers to repeat a blocked command without the sandbox. If absent: in attended
    /// sessions only.
    pub offer_unsandboxed_retry: Option<bool>,
}

/// The sandbox levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// The strongest level that works on this host. In attended sessions, the fastest level that protects
    /// files.
    #[default]
    Auto,
    /// Namespaces, through bubblewrap.
    Bubblewrap,
    /// Landlock rules.
    Landlock,
    /// Resource limits only.
    Rlimits,
    /// No sandbox.
    Off,
}

/// Whether tools have network access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Access in attended sessions only.
    #[default]
    Auto,
    /// Access in all sessions.
    On,
    /// No access.
    Off,
}
