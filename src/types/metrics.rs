//! Counters of a daemon since its start.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::job::JobCounts;
use super::usage::Usage;

/// Counters of a daemon. Unless stated otherwise, they count since its start and only grow. The keys of its maps come
/// from fixed lists, so that the number of counters is limited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metrics {
    /// Time since the start of the daemon, in milliseconds.
    pub uptime_ms: u64,
    /// Sessions in memory now.
    pub sessions_loaded: u64,
    /// Clients attached to sessions now.
    pub subscribers: u64,
    /// Turns that started.
    pub turns_started: u64,
    /// Ended turns, by result.
    pub turns_completed: BTreeMap<String, u64>,
    /// Turns that took more than 30 s, without the time that they waited for users.
    pub slow_turns: u64,
    /// Total duration of all ended turns, in milliseconds.
    pub turn_ms: u64,
    /// The part of `turn_ms` that turns spent waiting for models.
    pub model_ms: u64,
    /// The part of `turn_ms` that turns spent running tools.
    pub tools_ms: u64,
    /// The part of `turn_ms` that turns spent waiting for users.
    pub permission_ms: u64,
    /// Booked model calls, including lost attempts.
    pub model_calls: u64,
    /// Model calls without an answer, for which the provider may still charge.
    pub lost_attempts: u64,
    /// Answers that came from the response cache. They count as model calls without cost.
    pub response_cache_hits: u64,
    /// Model calls whose input the provider read partly from its prompt cache.
    pub prompt_cache_hits: u64,
    /// Failed model calls that were retried.
    pub retries: u64,
    /// Tokens and searches of all model calls.
    pub usage: Usage,
    /// Model calls by the service tier that the provider reported.
    pub calls_by_service_tier: BTreeMap<String, u64>,
    /// Cost of the calls whose price is known, in millionths of a dollar.
    pub cost_usd_micros: u64,
    /// Calls whose price is unknown.
    pub unpriced_calls: u64,
    /// Ended tool calls, by status.
    pub tool_calls: BTreeMap<String, u64>,
    /// Permission requests that were raised.
    pub permission_requests: u64,
    /// Errors of turns.
    pub errors: u64,
    /// Jobs that are not over now, and those that ended since the start, by state.
    pub jobs: JobCounts,
    /// Transactions written to the database.
    pub database_writes: u64,
    /// Transactions that could not be written.
    pub database_write_errors: u64,
}
