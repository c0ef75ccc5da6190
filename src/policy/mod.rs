//! Layer 2: rules that outlive a session, one file for each workspace and one for all of them, among
//! the user's data (P5). Never in a workspace: what lies there, a tool may have written.
//!
//! A file is read again whenever it has changed on disk, so that every verdict counts with what is
//! there. It is replaced whole (temporary file, sync, rename). One that cannot be trusted, because it is
//! damaged or others may write it, is an error and stays as it is: whoever asks for rules must then
//! let nothing pass.

mod file;
mod policies;

pub use file::{Entry, Policy};
pub use policies::{Place, Policies, PolicyError};
