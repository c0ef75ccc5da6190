//! One `…Params` and one `…Reply` per method. Clients outside this repository depend on their serialised forms.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod agent;
mod answer;
mod command;
mod daemon;
mod history;
mod input;
mod knowledge;
mod mcp;
mod memory;
mod model;
mod permission;
mod queue;
mod reading;
mod session;
mod tool;
mod turn;
mod turn_options;
mod workspace;

pub use agent::*;
pub use answer::*;
pub use command::*;
pub use daemon::*;
pub use history::*;
pub use input::*;
pub use knowledge::*;
pub use mcp::*;
pub use memory::{
    MemoryListParams, MemoryListReply, MemoryRemoveParams, MemoryRemoveReply, MemorySetParams, MemorySetReply,
};
pub use model::*;
pub use permission::*;
pub use queue::*;
pub use reading::*;
pub use session::*;
pub use tool::*;
pub use turn::*;
pub use workspace::*;

/// Parameters of a method that has none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}

/// A reply without content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}
