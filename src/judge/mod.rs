//! Layer 1: may this call run? Rules as users write them, and the verdict that follows from them. Pure:
//! no I/O, no clock; the caller has resolved the paths (`tools::jail`).
//!
//! Deny beats ask beats allow, whatever the scope. If no rule matches, the approval mode decides.

mod bash;
mod decide;
mod glob;
mod policy;
mod rule;
mod shell;
mod suggest;

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod cases;

#[cfg(any(test, feature = "fuzzing"))]
pub use shell::fuzz::command;

pub use decide::{explain, is_unreadable, judge};
pub use policy::{BypassGuard, Policy, key_folders};
pub use rule::{BadRule, Rule, Rules};
pub use shell::Repository;

#[cfg(test)]
mod properties;
