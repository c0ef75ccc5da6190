//! Values of the index of a workspace that clients see: questions, results, jobs, events.

mod event;
mod index;
mod query;
mod result;

pub use event::*;
pub use index::*;
pub use query::*;
pub use result::*;
