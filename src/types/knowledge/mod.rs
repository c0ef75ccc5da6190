//! Values of the index of a workspace as clients receive them: queries, results, jobs, events.

mod event;
mod index;
mod query;
mod result;

pub use event::*;
pub use index::*;
pub use query::*;
pub use result::*;
