//! Plain values of the index that no client receives: chunks, entities, outcomes, errors.

mod document;
mod error;
mod graph;
mod index;

pub use document::*;
pub use error::*;
pub use graph::*;
pub use index::*;
