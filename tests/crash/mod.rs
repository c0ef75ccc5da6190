//! The crash matrix: the daemon dies at every point of the table in RELIABILITY.md, by abort and by
//! SIGKILL. After each crash the tests check every guarantee. The kill loop sends SIGKILL at random
//! moments in many rounds on one state folder. The upgrade loop stops and replaces the daemon as planned.

mod client_log;
mod invariants;
mod job_files;
pub mod job_kill_loop;
pub mod kill_loop;
mod matrix;
pub mod night;
mod rows_audit;
mod rows_calls;
mod rows_compaction;
mod rows_daemon;
mod rows_job_messages;
mod rows_jobs;
mod rows_model;
mod rows_questions;
mod rows_rewind;
mod rows_subagents;
mod rows_turns;
mod rows_unsandboxed;
mod scenario;
mod test_clock;
mod tolerant_client;
pub mod upgrade_loop;

/// Defines one test for each crash mode: abort, and SIGKILL from outside.
macro_rules! matrix_ways {
    ($($name:ident => $scenario:ident,)*) => {
        mod daemon_aborts_itself {
            $(#[tokio::test] async fn $name() { super::$scenario(crate::support::daemon::CrashMode::Abort).await; })*
        }
        mod daemon_is_killed {
            $(#[tokio::test] async fn $name() { super::$scenario(crate::support::daemon::CrashMode::Kill).await; })*
        }
    };
}
use matrix_ways;
