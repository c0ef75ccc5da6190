//! The methods about notes of the model.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the notes about the project in a folder, or one of them with its text.
    List = "memory.list", p::MemoryListParams => p::MemoryListReply, READS.errors(&[Code::NotFound]);
    /// Writes a note about the project in a folder, or replaces it, and returns the note. Later sessions know its first
    /// line.
    Set = "memory.set", p::MemorySetParams => p::MemorySetReply, CHANGES.errors(&[Code::Conflict]);
    /// Removes a note about the project in a folder and returns its name.
    Remove = "memory.remove", p::MemoryRemoveParams => p::MemoryRemoveReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict]);
}
