//! The judgement of a Bash command: agentd's own lexer splits it into parts, and a second parser must
//! agree before anything is allowed.

mod evaluate;
mod lex;
pub(super) mod paths;
pub(super) mod programs;
mod read_only;

pub(crate) mod fuzz;

pub(super) use evaluate::pattern::{CommandPattern, PatternMatch, is_complete};
pub(super) use evaluate::{Grant, ParsedLine, PartOutcome};
pub(super) use paths::resolve::Folders;
pub use paths::resolve::Repository;
#[cfg(test)]
pub(super) use read_only::worst_disk;
