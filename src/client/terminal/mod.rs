//! Output to a terminal: escaped text, formats, styles, tables.

pub(super) mod confirm;
pub mod escape;
pub(super) mod format;
pub(super) mod hidden_input;
pub(super) mod line_input;
pub(super) mod out;
pub(super) mod style;
pub(super) mod table;
pub(super) mod template;
mod word_wrap;
