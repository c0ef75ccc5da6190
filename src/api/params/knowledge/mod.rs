//! Parameters of the methods about the index of a workspace. Each parameter may also be written in camelCase.

mod documents;
mod graph;
mod index;
mod query;

pub use documents::*;
pub use graph::*;
pub use index::*;
pub use query::*;
