//! Jupyter notebooks (`.ipynb`, nbformat 4): shown as cells (T1), changed cell by cell (T17).
//!
//! - `shape`: the text as cells, each with its place in the text.
//! - `show`: what Read tells of them; `change`: the new text of the file; `edit`: the tool.

mod change;
mod edit;
mod shape;
mod show;

#[cfg(test)]
mod tests;

pub(in crate::tools) use edit::{DESCRIPTION, Input, prepare, run};
pub(in crate::tools) use show::{Window, read};

#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::tools) mod fuzz;

use std::path::Path;

/// Whether a file is taken for a notebook: by its name, since inside it is JSON like any other.
pub(in crate::tools) fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("ipynb"))
}
