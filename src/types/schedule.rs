//! Schedules: what creates jobs at given times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config_values::ConfigDuration;
use super::ids::{JobId, ScheduleId};
use super::job_request::JobRequest;
use super::time::Timestamp;

/// A new schedule: `schedule.create`. Exactly one of `cron` and `every` is given.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NewSchedule {
    /// Short name for people.
    pub name: String,
    /// The content of each job. It has no `idempotency_key` and no `run_at_ms`.
    pub job: Box<JobRequest>,
    /// Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`.
    pub cron: Option<String>,
    /// A slot after each interval since the creation, at least `1m`.
    pub every: Option<ConfigDuration>,
    /// IANA name of the zone of `cron`; by default the zone of the daemon's machine at creation.
    pub timezone: Option<String>,
    /// Random delay of each slot, below this time.
    pub jitter: Option<ConfigDuration>,
    /// What happens while a job of the schedule is not over.
    #[serde(default)]
    pub overlap: Overlap,
    /// What happens to slots that were missed, because the machine slept or the daemon did not run.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Missed slots that are older do not fire; 24 hours by default, at most 31 days.
    pub catch_up_window: Option<ConfigDuration>,
    /// No slot after this time.
    pub until_ms: Option<Timestamp>,
    /// After so many failures in a row the schedule is disabled; 5 by default, 0 for never.
    pub max_failures: Option<u32>,
    /// Whether it fires.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

fn enabled() -> bool {
    true
}

/// What happens at a slot while a job of the schedule is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// A job in the state `skipped` tells of the slot.
    #[default]
    Skip,
    /// The job waits for the earlier one. At most one waits; a further slot is skipped.
    Queue,
    /// The earlier job is cancelled.
    Cancel,
}

/// What happens to missed slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// One job for the newest of them.
    #[default]
    Last,
    /// No job.
    None,
    /// A job for each of the newest ten.
    All,
}

/// A schedule as the methods return it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Schedule {
    /// Its id.
    pub schedule_id: ScheduleId,
    /// Short name for people.
    pub name: String,
    /// The content of each job. Lists and events leave out its prompt, system prompt and schema.
    pub job: Box<JobRequest>,
    /// The pattern.
    pub cron: Option<String>,
    /// The interval.
    pub every: Option<ConfigDuration>,
    /// IANA name of the zone in which `cron` counts.
    pub timezone: String,
    /// Random delay of each slot, below this time.
    pub jitter: ConfigDuration,
    /// What happens while a job of the schedule is not over.
    pub overlap: Overlap,
    /// What happens to missed slots.
    pub catch_up: CatchUp,
    /// Missed slots that are older do not fire.
    pub catch_up_window: ConfigDuration,
    /// No slot after this time.
    pub until_ms: Option<Timestamp>,
    /// After so many failures in a row the schedule is disabled; 0 for never.
    pub max_failures: u32,
    /// Whether it fires.
    pub enabled: bool,
    /// Time of its creation.
    pub created_at_ms: Timestamp,
    /// When it fires next, with its random delay; absent if it is disabled or has no further slot.
    pub next_fire_ms: Option<Timestamp>,
    /// The newest slot that fired.
    pub last_slot_ms: Option<Timestamp>,
    /// Its newest job.
    pub last_job_id: Option<JobId>,
    /// Failures in a row since it was enabled.
    pub failures: u32,
    /// Why it was disabled, or why its last slot made no job.
    pub error: Option<String>,
}

impl Schedule {
    /// Removes what can be long, for lists and events.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        (self.job.prompt, self.job.system_prompt, self.job.output_schema) = (None, None, None);
        self
    }
}

/// What happened to a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScheduleChange {
    /// It was created.
    #[serde(rename = "schedule.created")]
    Created,
    /// Its content was changed, or it was enabled or disabled by a client.
    #[serde(rename = "schedule.updated")]
    Updated,
    /// It was deleted.
    #[serde(rename = "schedule.deleted")]
    Deleted,
    /// A slot made a job.
    #[serde(rename = "schedule.fired")]
    Fired,
    /// A slot was skipped, because an earlier job is not over.
    #[serde(rename = "schedule.skipped")]
    Skipped,
    /// A slot could make no job.
    #[serde(rename = "schedule.failed")]
    Failed,
    /// It was disabled after too many failures.
    #[serde(rename = "schedule.disabled")]
    Disabled,
}

/// Changes of a schedule: `schedule.update`. Absent fields stay as they are.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleUpdate {
    /// Id of the schedule.
    pub schedule_id: ScheduleId,
    /// Short name for people.
    pub name: Option<String>,
    /// The content of each later job, in place of the whole earlier one.
    pub job: Option<Box<JobRequest>>,
    /// A pattern, in place of the earlier pattern or interval.
    pub cron: Option<String>,
    /// An interval, in place of the earlier pattern or interval.
    pub every: Option<ConfigDuration>,
    /// IANA name of the zone.
    pub timezone: Option<String>,
    /// Random delay of each slot; `0s` for none.
    pub jitter: Option<ConfigDuration>,
    /// What happens while a job of the schedule is not over.
    pub overlap: Option<Overlap>,
    /// What happens to missed slots.
    pub catch_up: Option<CatchUp>,
    /// Missed slots that are older do not fire.
    pub catch_up_window: Option<ConfigDuration>,
    /// No slot after this time; 0 removes the end.
    pub until_ms: Option<Timestamp>,
    /// After so many failures in a row the schedule is disabled; 0 for never.
    pub max_failures: Option<u32>,
    /// Whether it fires. To enable it also sets the count of failures to 0; slots before that are not missed.
    pub enabled: Option<bool>,
    /// A repeated call with the same key returns the reply of the first call.
    pub idempotency_key: Option<String>,
}

impl ScheduleUpdate {
    /// No change of this schedule.
    #[must_use]
    pub const fn unchanged(schedule_id: ScheduleId) -> Self {
        Self {
            schedule_id,
            name: None,
            job: None,
            cron: None,
            every: None,
            timezone: None,
            jitter: None,
            overlap: None,
            catch_up: None,
            catch_up_window: None,
            until_ms: None,
            max_failures: None,
            enabled: None,
            idempotency_key: None,
        }
    }
}
