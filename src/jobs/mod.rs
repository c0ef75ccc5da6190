//! Jobs: unattended work with one result. `decide` is the state machine of one job, and pure. `queue` chooses what
//! starts next, and is pure too. `runner` is the one task that owns all jobs: it decides, writes, and starts attempts.

#![warn(missing_docs)]

mod decide;
pub mod notify;
mod queue;
mod record;
mod settings;
pub mod template;

pub use notify::NotifyTarget;
pub use record::JobRecord;
pub use settings::{JobSettings, KeepJobs};
