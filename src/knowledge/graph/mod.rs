//! The graph of level structure: entities and relations from syntax trees and headings, without a model.
//!
//! - `languages.rs` is one table: which nodes of which grammar define, contain, call or import something.
//! - `walk.rs` walks a tree with this table and makes an outline. `markdown.rs` makes the same outline from headings
//!   and links.
//! - `work_limit.rs` ends the work on a file that takes too long. `lines.rs` finds the lines of a text once.
//! - `node_text.rs` reads names and comments from the texts of nodes.
//! - `imports.rs` reads the names in a declaration that imports.
//! - `records.rs` turns an outline into records for the store.

mod imports;
mod languages;
mod lines;
mod markdown;
mod node_text;
mod outline;
mod records;
mod walk;
mod work_limit;

pub use languages::{has_grammar, language_of_path};
pub use outline::{CutPoint, Mention, Outline, Symbol};
pub use records::{ChunkSpan, StructureRecords, records};
pub use walk::outline;
pub use work_limit::WorkLimit;

#[cfg(test)]
mod tests;
