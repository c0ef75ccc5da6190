//! The methods about tools.

use super::{READS, methods};
use crate::params as p;

methods! {
    /// Returns the tools that sessions offer their models, by name: the purpose, the JSON Schema of the input, whether
    /// the tool changes anything, and whether its calls run in parallel.
    List = "tool.list", p::ToolListParams => p::ToolListReply, READS;
}
