//! The ApplyPatch tool: the patch format for which OpenAI's models are trained, for several files at once.
//!
//! - `parse`: parses the text of a patch; `hunks`: finds the places of hunks in a file.
//! - `plan`: computes and checks every file; `apply`: the tool, which then changes the files.
//! - `changed_files`: the files of a patch for hooks.

mod apply;
mod changed_files;
mod hunks;
mod parse;
mod plan;

#[cfg(test)]
mod tests;

pub(crate) use apply::{DESCRIPTION, Input, prepare, run};
pub use changed_files::PatchedFile;
pub(crate) use changed_files::changed_files;

pub(crate) mod fuzz;
