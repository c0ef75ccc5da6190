//! Layer 1: may this call run? Rules as people write them, and the judgement over them. Pure: no
//! I/O, no clock; whoever asks has resolved paths before (`tools::jail`).
//!
//! Deny beats ask beats allow, whatever the scope. What no rule names is left to the mode.

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
