//! All file changes of a session (`session.diff`): from a file's content before the session's first change to
//! its content after the last one.
//!
//! - `edit_script`: a unified diff as edits that can be merged without the file itself;
//! - `cumulative_diff`: the changes of a session, file by file.
//!
//! The result is computed from the journal only. So it is the same after a restart, and later changes of the
//! files do not influence it.

mod cumulative_diff;
mod edit_script;
pub use cumulative_diff::cumulative_diff;
