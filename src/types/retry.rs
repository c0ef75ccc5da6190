//! `[retry]`: retries of model calls, and resumes of turns after restarts.

use serde::{Deserialize, Serialize};

use super::config_values::ConfigDuration;

/// Policy for failed model calls and for interrupted turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySettings {
    /// Maximum attempts at one model call, including the first. 0 means 1.
    pub attempts: u32,
    /// First wait, in milliseconds. Each further wait is twice as long.
    pub base_ms: u64,
    /// Maximum wait between attempts, in milliseconds.
    pub max_ms: u64,
    /// The longest wait in unattended sessions, in milliseconds. They retry rate limits and overloads without end.
    pub unattended_max_ms: u64,
    /// Longest wait that a provider may request in attended sessions. A longer wait ends the turn with an error.
    pub max_retry_after: ConfigDuration,
    /// Interval at which a long wait is reported.
    pub heartbeat: ConfigDuration,
    /// Reaction to a rate limit.
    pub on_rate_limit: OnRateLimit,
    /// Duration of a silence after which it is reported, before the answer begins and inside it.
    pub idle_warn: ConfigDuration,
    /// Maximum time without any byte from the provider. Then the stream is dropped, and the call is retried.
    pub idle_timeout: ConfigDuration,
    /// Maximum time without content: pings, comments and empty events only.
    pub content_timeout: ConfigDuration,
    /// Maximum time of one answer.
    pub attempt_timeout: ConfigDuration,
    /// How often a turn is resumed after restarts of the daemon before it ends.
    pub resumes: u32,
    /// The wait before the second resume, in milliseconds. It doubles with each further resume.
    pub resume_base_ms: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts: 10,
            base_ms: 500,
            max_ms: 32_000,
            unattended_max_ms: 300_000,
            max_retry_after: ConfigDuration::from_secs(600),
            heartbeat: ConfigDuration::from_secs(30),
            on_rate_limit: OnRateLimit::Wait,
            idle_warn: ConfigDuration::from_secs(30),
            idle_timeout: ConfigDuration::from_secs(90),
            content_timeout: ConfigDuration::from_secs(600),
            attempt_timeout: ConfigDuration::from_secs(3_600),
            resumes: 3,
            resume_base_ms: 2_000,
        }
    }
}

/// Reaction to a rate limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRateLimit {
    /// Wait and retry the same model.
    #[default]
    Wait,
    /// Switch to the model of `[models] backup`.
    Backup,
}
