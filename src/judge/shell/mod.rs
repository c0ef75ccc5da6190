//! The judgement of a Bash command: agentd's own lexer splits it into parts, and a second parser must
//! agree before anything is allowed.

mod evaluate;
mod lex;
pub(super) mod paths;
pub(super) mod programs;
mod read_only;
mod work_budget;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;

pub(super) use evaluate::pattern::{CommandPattern, Found};
pub(super) use evaluate::{Grant, Outcome, ParsedLine};
pub(super) use paths::resolve::Folders;
