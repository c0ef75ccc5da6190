//! Layer 1: may this call run? Rules as users write them, and the verdict that follows from them. Pure:
//! no I/O, no clock; the caller has resolved the paths (`tools::jail`).
//!
//! Deny beats ask beats allow, whatever the scope. If no rule matches, the approval mode decides.

mod bash;
mod decide;
mod glob;
mod rule;
mod shell;
mod suggest;

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod cases;

#[cfg(any(test, feature = "fuzzing"))]
pub use shell::fuzz::command;

pub use decide::{BypassGuard, Policy, Repository, explain, is_unreadable, judge, key_folders};
pub use rule::{BadRule, Rule, Rules};

#[cfg(test)]
mod properties;
