//! What a daemon has done since it started, in numbers (Q36).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::usage::Usage;

/// Numbers of a daemon. Unless said otherwise they count since its start and only grow; what they count
/// by is a closed list, so that they never become many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metrics {
    /// How long it runs.
    pub uptime_ms: u64,
    /// Sessions in memory now.
    pub sessions_loaded: u64,
    /// Clients attached to sessions now.
    pub subscribers: u64,
    /// Turns that began.
    pub turns_started: u64,
    /// Turns that ended, by how.
    pub turns_completed: BTreeMap<String, u64>,
    /// Turns that took more than 30 s, without the time they waited for people.
    pub slow_turns: u64,
    /// Duration of all turns that ended.
    pub turn_ms: u64,
    /// Of that, spent waiting for models.
    pub model_ms: u64,
    /// Spent running tools.
    pub tools_ms: u64,
    /// Spent waiting for people.
    pub permission_ms: u64,
    /// Model calls that were booked, lost attempts included.
    pub model_calls: u64,
    /// Model calls of which no answer came, and that may be charged all the same.
    pub lost_attempts: u64,
    /// Failed model calls that were tried again.
    pub retries: u64,
    /// Tokens and searches of all model calls.
    pub usage: Usage,
    /// Cost of the calls whose price is known.
    pub cost_usd_micros: u64,
    /// Calls whose price is unknown.
    pub unpriced_calls: u64,
    /// Tool calls that ended, by how.
    pub tool_calls: BTreeMap<String, u64>,
    /// Permission requests that were raised.
    pub permission_requests: u64,
    /// Errors of turns.
    pub errors: u64,
    /// Transactions that were written to the database.
    pub database_writes: u64,
    /// Transactions that could not be written.
    pub database_write_errors: u64,
}
