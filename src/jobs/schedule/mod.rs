//! Schedules: what creates jobs at given times. `pattern` and `timing` tell the slots, `decide` which of them fire; all
//! three are pure. `runner` is the one task that owns all schedules. [`Schedules`] is the handle for all others.

mod command;
mod decide;
#[cfg(test)]
mod decide_tests;
mod handle;
mod pattern;
mod record;
mod runner;
mod timing;
#[cfg(test)]
mod timing_tests;

pub use handle::Schedules;
pub use pattern::{CronPattern, PatternError};
pub use record::ScheduleRecord;
pub use runner::ScheduleRunner;
pub use timing::{Slots, Timing, Zone};
