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

pub(crate) use edit::{DESCRIPTION, Input, prepare, run};
pub(crate) use show::{CellWindow, read};

pub(crate) mod fuzz;
