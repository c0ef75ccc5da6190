//! The parts of a Markdown text that is not for display: which lines are code.

mod fences;
mod spans;

pub(crate) use fences::{FenceLine, Fences};
pub(crate) use spans::{end_of_span, without_code};
