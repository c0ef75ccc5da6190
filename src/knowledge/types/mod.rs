//! Plain values of the index: documents, chunks, entities, relations, progress, errors.

mod document;
mod error;
mod graph;
mod index;

pub use document::*;
pub use error::*;
pub use graph::*;
pub use index::*;
