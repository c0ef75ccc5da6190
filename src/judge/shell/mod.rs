//! How a Bash command is judged (P3, S23): read by a lexer of our own, part by part, with a second
//! parser that must agree before anything is allowed.

mod evaluate;
mod lex;
pub(super) mod paths;
pub(super) mod programs;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;

pub(super) use evaluate::pattern::{CommandPattern, Found};
pub(super) use evaluate::{Grant, Outcome, ParsedLine};
pub(super) use paths::resolve::Folders;
