//! Operations that create a session with a history, or write one out: fork, export, import.

mod fork;
mod new_session;

pub use fork::ForkRequest;
