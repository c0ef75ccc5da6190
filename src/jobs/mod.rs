//! Jobs: unattended work with one result. `decide` is the state machine of one job, and pure. `queue` chooses what
//! starts next, and is pure too. `runner` is the one task that owns all jobs: it decides, writes, and starts attempts.

#![warn(missing_docs)]

pub mod notify;
mod settings;

pub use notify::NotifyTarget;
pub use settings::{JobSettings, KeepJobs};
