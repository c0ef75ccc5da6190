//! The methods about slash commands.

use super::{READS, methods};
use crate::fault::Code;
use crate::params as p;

methods! {
    /// Returns the slash commands of a session or a folder: the built-in ones, the user's, and those of a trusted
    /// project.
    List = "command.list", p::CommandListParams => p::CommandListReply, READS.errors(&[Code::NotFound]);
}
