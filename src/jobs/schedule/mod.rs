//! Schedules: what creates jobs at given times.

mod decide;
#[cfg(test)]
mod decide_tests;
mod pattern;
mod timing;
#[cfg(test)]
mod timing_tests;

pub use pattern::{CronPattern, PatternError};
pub use timing::{Slots, Timing, Zone};
