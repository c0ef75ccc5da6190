//! The methods about tools.

use super::{READS, methods};
use crate::params as p;

methods! {
    /// The tools that sessions offer their models, by name: what each does, the JSON Schema of its input,
    /// whether it changes nothing, and whether its calls run in parallel.
    List = "tool.list", p::ToolListParams => p::ToolListReply, READS;
}
