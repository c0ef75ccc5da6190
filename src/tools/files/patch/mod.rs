//! ApplyPatch (T5): the patch format that OpenAI's models are trained on, for several files at once.
//!
//! - `parse`: the text of a patch, taken apart; `seek`: where its parts belong in a file.
//! - `apply`: the tool: everything is worked out and checked before the first file is touched.

mod apply;
mod parse;
mod seek;

#[cfg(test)]
mod tests;

pub(in crate::tools) use apply::{DESCRIPTION, Input, prepare, run};

#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::tools) mod fuzz;
