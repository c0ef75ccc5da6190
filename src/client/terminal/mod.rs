//! Output to a terminal: escaped text, formats, styles.

pub mod escape;
pub(super) mod format;
pub(super) mod out;
pub(super) mod style;
