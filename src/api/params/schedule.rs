//! Parameters and replies of schedules.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::ScheduleId;
use types::schedule::Schedule;
use types::time::Timestamp;

/// Reply with one schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleReply {
    /// The schedule.
    pub schedule: Schedule,
}

/// Selects one schedule.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleParams {
    /// Id of the schedule.
    pub schedule_id: ScheduleId,
}

/// `schedule.delete`, `schedule.trigger`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleChangeParams {
    /// Id of the schedule.
    pub schedule_id: ScheduleId,
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `schedule.list`: oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleListReply {
    /// All schedules, without the prompts of their jobs.
    pub schedules: Vec<Schedule>,
}

/// `schedule.next`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleNextParams {
    /// Five fields of cron, or `@hourly`, `@daily`, `@weekly`, `@monthly`.
    pub cron: String,
    /// IANA name of a zone; by default that of the daemon's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Number of times, 1 to 1,000.
    pub count: u32,
}

/// Reply of `schedule.next`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleNextReply {
    /// The next times, in order; fewer than asked for if the pattern has no more within four years.
    pub times_ms: Vec<Timestamp>,
}
