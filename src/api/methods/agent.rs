//! The methods about agent files.

use super::{READS, methods};
use crate::params as p;

methods! {
    /// Returns the agents that sessions in a folder can use: those of the trusted project, of the user, and the
    /// built-in ones. The tool Task starts each of them as a sub-agent.
    List = "agent.list", p::AgentListParams => p::AgentListReply, READS;
}
