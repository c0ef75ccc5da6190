//! Jobs: unattended work with one result. `decide` is the state machine of one job, and pure. `queue` chooses what
//! starts next, and is pure too. `runner` is the one task that owns all jobs: it decides, writes, and starts attempts.
//! [`Jobs`] is the handle for all others.

mod artifacts;
mod command;
mod counts;
mod create;
mod decide;
mod error;
mod handle;
pub mod notify;
mod queue;
mod record;
pub mod retention;
mod runner;
pub mod schedule;
mod services;
mod session_events;
mod settings;
mod task;
pub mod template;
pub mod unarchived;
mod worktree;

pub use command::{Cancelled, Created, NewJob};
pub use create::FiredSlot;
pub use error::JobsError;
pub use handle::{JobUpdate, Jobs};
pub use notify::NotifyTarget;
pub use record::{Cancelling, Creator, JobRecord, Spent, UniqueKey, WorktreePlace};
pub use runner::JobRunner;
pub use settings::{JobSettings, KeepJobs};
pub use store::{JobQuery, JobWrite};
