//! Judges tool calls: it parses permission rules and computes the verdict of a prepared call.
//! It is pure: it does no I/O and reads no clock. The caller has resolved the paths
//! (`tools::fs::jail`).
//!
//! Deny rules override ask rules, and ask rules override allow rules, in every scope. If no rule
//! matches, the approval mode decides.

mod bash;
mod decide;
mod domain;
mod file_facts;
mod glob;
mod policy;
mod rule;
mod rules;
mod shell;
mod suggest;
mod within;
mod written;
mod written_path;

#[cfg(test)]
mod against_bash;
#[cfg(test)]
mod cases;

pub use shell::fuzz::command;

pub use decide::{explain, file_reads, is_unreadable, judge};
pub use file_facts::{
    FileFacts, FileRead, LinkUse, NameRule, Obstacle, ObstacleKind, ReadKind, Selection, TreeSearch,
};
pub use policy::{BypassGuard, Policy, key_folders};
pub use rule::{BadRule, Rule, stored_rule_note};
pub use rules::Rules;
pub use shell::Repository;
pub use within::is_within;

#[cfg(test)]
mod properties;
