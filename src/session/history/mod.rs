//! Fork and import, which create a session with a history, and export, which writes a history out.

mod export;
mod fork;
mod highlight;
mod html;
mod import;
mod lines;
mod markdown;
mod neutral;
mod new_session;
mod page;

pub use fork::ForkRequest;
