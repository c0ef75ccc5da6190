//! The graph of level structure: entities and relations from syntax trees and headings, without a model.
//!
//! - `languages.rs` is one table: which nodes of which grammar define, contain, call or import something.
//! - `outline.rs` walks a tree with this table. `markdown.rs` makes the same outline from headings and links.
//! - `imports.rs` reads the names out of a declaration that imports.
//! - `records.rs` turns an outline into records for the store.

mod imports;
mod languages;
mod markdown;
mod outline;
mod records;

pub use languages::language_of_path;
pub use outline::{CutPoint, Mention, Outline, Symbol, outline};
pub use records::{Records, Span, records};

#[cfg(test)]
mod tests;
