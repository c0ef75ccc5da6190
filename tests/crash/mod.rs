//! The crash matrix: the daemon dies at every point of the table in RELIABILITY.md, by its own hand
//! and by SIGKILL, and after each what was promised is checked. And the kill loop: SIGKILL at random
//! moments, round after round, on one state folder.

mod invariants;
pub mod kill_loop;
mod matrix;
mod pilot;
mod rows_audit;
mod rows_calls;
mod rows_daemon;
mod rows_model;
mod rows_outside;
mod rows_questions;
mod rows_turns;
mod story;
mod witness;

/// A test for each way to die: by its own hand, and by SIGKILL from outside.
macro_rules! matrix_ways {
    ($($name:ident => $story:ident,)*) => {
        mod by_its_own_hand {
            $(#[tokio::test] async fn $name() { super::$story(crate::support::daemon::CrashMode::Abort).await; })*
        }
        mod killed_from_outside {
            $(#[tokio::test] async fn $name() { super::$story(crate::support::daemon::CrashMode::Kill).await; })*
        }
    };
}
use matrix_ways;
