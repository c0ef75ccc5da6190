//! The context window: stages that make the conversation fit the window. Each stage is a pure function
//! from the messages to an edit, which the session writes into its journal.
//!
//! The stages run before a model call if the request would exceed the threshold, in the order of
//! [`types::compaction::CompactStage`]. They shrink the request well below the threshold, so that edits
//! are rare. Each edit changes the beginning of later requests, and providers cache only unchanged beginnings.

pub(super) mod collapse;
pub(super) mod history;
pub(super) mod microcompact;
pub(super) mod result_budget;
pub(super) mod shorten;
pub(super) mod size;
pub(super) mod snip;
pub(super) mod summary;

#[cfg(test)]
mod tests;

use types::blob::Blob;
use types::compaction::WindowEdit;

/// The edit of one stage, and the blobs that its texts refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StageEdit {
    pub edit: WindowEdit,
    pub blobs: Vec<Blob>,
}
