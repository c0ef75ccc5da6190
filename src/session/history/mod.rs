//! Operations that create a session with a history, or write one out: fork, export, import.

mod export;
mod fork;
mod html;
mod import;
mod lines;
mod markdown;
mod neutral;
mod new_session;
mod page;

pub use export::ExportFormat;
pub use fork::ForkRequest;
