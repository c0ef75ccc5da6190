//! Jupyter notebooks (`.ipynb`, nbformat 4): shown as cells by Read, changed cell by cell by NotebookEdit.
//!
//! - `shape`: the text as cells, each with its range in the text.
//! - `show`: the answer of Read; `change`: the new text of the file; `edit`: the tool.

mod change;
mod edit;
mod shape;
mod show;

#[cfg(test)]
mod tests;

pub(in crate::tools) use edit::{DESCRIPTION, Input, prepare, run};
pub(in crate::tools) use show::{CellWindow, read};

#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::tools) mod fuzz;
