//! Operations on the history of a session: fork, rewind, export, import.

mod copy;
mod fork;

pub use fork::ForkRequest;
