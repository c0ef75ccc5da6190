//! Rules that outlive a session. The user's data folder has one file per workspace and one for all
//! workspaces. The files are never in a workspace, because a tool may write there.
//!
//! A file is read again after each change on disk, so that every verdict uses its current content. It is
//! replaced as a whole (temporary file, sync, rename). A file that is damaged or that other users can write is
//! an error and stays unchanged. While it is invalid, every call needs a permission request.

mod file;
mod policies;

pub use file::{Policy, PolicyEntry};
pub use policies::{Policies, PolicyError, PolicyScope};
