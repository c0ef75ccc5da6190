//! The methods about notes of the model.

use super::{CHANGES, READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// The notes about the project in a folder, or one of them with its text.
    List = "memory.list", p::MemoryListParams => p::MemoryListReply, READS.errors(&[Code::NotFound]);
    /// Write a note about the project in a folder, or replace it. Later sessions know its first line.
    Set = "memory.set", p::MemorySetParams => p::MemorySetReply, CHANGES.errors(&[Code::Conflict]);
    /// Remove a note about the project in a folder.
    Remove = "memory.remove", p::MemoryRemoveParams => p::MemoryRemoveReply,
        CHANGES.errors(&[Code::NotFound, Code::Conflict]);
}
