//! How a Bash command is judged (P3, S23): read by a lexer of our own, part by part, with a second
//! parser that must agree before anything is allowed.

mod braces;
mod collect;
mod condense;
mod exempt;
mod files;
mod follow;
mod hatch;
mod lex;
mod meter;
mod pattern;
mod places;
mod private;
mod programs;
mod runners;
mod safe;
mod script;
mod second;
mod shape;
mod sight;
mod special;
mod spelled;
mod table;
mod through;
mod weigh;
mod word;
mod wrappers;
mod written;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzz;

pub(super) use pattern::{CommandPattern, Found};
pub(super) use places::Folders;
pub(super) use weigh::{Grant, Outcome, ParsedLine};
