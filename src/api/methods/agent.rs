//! The methods about agent files.

use super::{READS, methods};
use crate::params as p;

methods! {
    /// The agents that sessions in a folder can use: those of the trusted project, of the user, and the
    /// built-in ones. Each is a type of sub-agent for the tool Task.
    List = "agent.list", p::AgentListParams => p::AgentListReply, READS;
}
