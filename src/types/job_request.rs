//! What a job is asked to do: the content that `job.create` stores whole.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config_values::ConfigDuration;
use super::permission::Mode;
use super::time::Timestamp;
use super::tool::ToolChoice;
use super::turn_result::Subtype;
use super::usage::Budgets;
use super::worktree::{WorktreeChoice, optional_worktree};

/// The content of a job. Later changes of a template or of the configuration do not change it, except that deny rules
/// and lower limits count at once.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JobRequest {
    /// The text for the model, sent as it is. Not together with `template`.
    pub prompt: Option<String>,
    /// Name of a template, whose fields apply where the request has none.
    pub template: Option<String>,
    /// Values of the template's parameters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// An existing folder, absolute.
    pub cwd: String,
    /// Short name; by default the first words of the prompt.
    pub title: Option<String>,
    /// `PROVIDER/MODEL`, or the name of a pointer of `[models]`.
    pub model: Option<String>,
    /// Approval mode.
    pub mode: Option<Mode>,
    /// Name of the agent as which the attempts work.
    pub agent: Option<String>,
    /// The tools on offer; absent for all.
    pub tools: Option<ToolChoice>,
    /// Replaces the default system prompt.
    pub system_prompt: Option<String>,
    /// Limits of the job over all attempts. Missing ones come from `[permissions.unattended]`.
    pub budgets: Option<Budgets>,
    /// JSON Schema of the result. A job without a valid value is `failed`.
    pub output_schema: Option<Value>,
    /// Whether the job works in a git worktree of its own: `true`, or an object.
    #[serde(deserialize_with = "optional_worktree")]
    pub worktree: Option<WorktreeChoice>,
    /// When a failed attempt is repeated; by default never.
    pub retry: Option<RetryPolicy>,
    /// From -100 to 100; jobs with a higher number start first. 0 by default.
    pub priority: Option<i32>,
    /// How many jobs with the same key run at a time. A job without a worktree has the key of its real folder with
    /// limit 1 by default.
    pub concurrency: Option<Concurrency>,
    /// Prevents a second job with the same key.
    pub unique: Option<Unique>,
    /// The job does not start before this time. Not together with `delay`.
    pub run_at_ms: Option<Timestamp>,
    /// The job does not start before this time has passed since its creation.
    pub delay: Option<ConfigDuration>,
    /// A job that has not started this long after it was due becomes `expired`.
    pub start_deadline: Option<ConfigDuration>,
    /// Who is told of the end of the job.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_complete: Vec<OnComplete>,
    /// Globs relative to the job's folder: files that are kept with the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<String>,
    /// Labels for lists.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// A repeated call with the same key returns the reply of the first call. It is not stored with the job.
    pub idempotency_key: Option<String>,
}

/// When a failed attempt is repeated. An agent's work is not idempotent, so by default it is not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RetryPolicy {
    /// Attempts in all, 1 to 20.
    pub attempts: u32,
    /// Results that are repeated. Aborted attempts, refused permissions and exhausted budgets are never repeated.
    pub on: Vec<Subtype>,
    /// Wait before the second attempt; it doubles with each further one.
    pub backoff: ConfigDuration,
    /// Longest wait.
    pub max_backoff: ConfigDuration,
    /// What the next attempt starts from.
    pub mode: RetryMode,
    /// Whether an attempt is repeated although a call that could reach outside of the worktree has an unknown outcome.
    pub after_unknown: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 1,
            on: vec![Subtype::LlmError, Subtype::ErrorDuringExecution],
            backoff: ConfigDuration::from_secs(30),
            max_backoff: ConfigDuration::from_secs(1_800),
            mode: RetryMode::Fresh,
            after_unknown: false,
        }
    }
}

/// What a further attempt starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryMode {
    /// A new session, in a new worktree from the same base commit if the job has one.
    #[default]
    Fresh,
    /// The same session, which gets the input that failed again.
    Continue,
}

/// How many jobs with the same key run at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Concurrency {
    /// Any text.
    pub key: String,
    /// At least 1.
    #[serde(default = "one")]
    pub limit: u32,
}

fn one() -> u32 {
    1
}

/// Prevents a second job with the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unique {
    /// Any text.
    pub key: String,
    /// For how long the key is taken.
    #[serde(default)]
    pub scope: UniqueScope,
    /// What happens to a second job.
    #[serde(default)]
    pub on_conflict: OnConflict,
}

/// For how long a job keeps its unique key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UniqueScope {
    /// Until the job has ended.
    #[default]
    Active,
    /// For the day of its creation, in UTC.
    Day,
    /// Forever.
    Forever,
}

/// What happens to a job whose unique key is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The existing job is returned.
    #[default]
    Return,
    /// The existing job is cancelled if it has not started; otherwise it is returned.
    Replace,
    /// The call is refused.
    Reject,
}

/// Who is told of the end of a job. Exactly one of `webhook` and `command` names a table `[jobs.notify.NAME]`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OnComplete {
    /// A table with a `url`.
    pub webhook: Option<String>,
    /// A table with a `command`.
    pub command: Option<String>,
    /// The states that are reported; by default all final ones except `skipped`.
    pub on: Option<Vec<NotifyState>>,
}

/// A state of a job that can be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyState {
    /// The job ended well.
    Succeeded,
    /// The job failed.
    Failed,
    /// The job was cancelled.
    Cancelled,
    /// The job did not start in time.
    Expired,
    /// The job waits for a person.
    Waiting,
}
