//! Values of the index of a workspace as clients receive them: queries, results, jobs, events.

mod document;
mod event;
mod graph;
mod index;
mod query;
mod query_params;
mod result;

pub use document::*;
pub use event::*;
pub use graph::*;
pub use index::*;
pub use query::*;
pub use query_params::*;
pub use result::*;
