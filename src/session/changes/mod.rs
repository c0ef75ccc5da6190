//! All that a session changed in files (`session.diff`): from what a file held before the session's
//! first change of it to what it held after the last.
//!
//! - `script`: a unified diff as edits that can be put one behind the other, without the file itself;
//! - `net`: the events of a session, file by file.
//!
//! It is worked out from the journal alone: so it is the same after a restart, and whatever became of
//! the files since.

mod cumulative_diff;
mod edit_script;
pub use cumulative_diff::cumulative_diff;
