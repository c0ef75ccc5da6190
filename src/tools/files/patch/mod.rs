//! The ApplyPatch tool: the patch format for which OpenAI's models are trained, for several files at once.
//!
//! - `parse`: parses the text of a patch; `seek`: finds the place of a hunk in a file.
//! - `apply`: the tool; it computes and checks everything before it changes the first file.

mod apply;
mod parse;
mod seek;

#[cfg(test)]
mod tests;

pub(in crate::tools) use apply::{DESCRIPTION, Input, prepare, run};

#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::tools) mod fuzz;
