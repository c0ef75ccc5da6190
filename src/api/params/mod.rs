//! One `…Params` and one `…Reply` per method. Clients outside this repository depend on their serialised forms.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

mod agent;
mod answer;
mod command;
mod daemon;
mod history;
mod input;
mod job;
mod knowledge;
mod mcp;
mod memory;
mod model;
mod pages;
mod permission;
mod queue;
mod reading;
mod schedule;
mod session;
mod tool;
mod turn;
mod turn_options;
mod workspace;
mod worktree;

pub use agent::*;
pub use answer::*;
pub use command::*;
pub use daemon::*;
pub use history::*;
pub use input::*;
pub use job::*;
pub use knowledge::*;
pub use mcp::*;
pub use memory::{
    MemoryListParams, MemoryListReply, MemoryRemoveParams, MemoryRemoveReply, MemorySetParams, MemorySetReply,
};
pub use model::*;
pub use pages::{ListPage, Page, PageParams};
pub use permission::*;
pub use queue::*;
pub use reading::*;
pub use schedule::*;
pub use session::*;
pub use tool::*;
pub use turn::*;
pub use workspace::*;
pub use worktree::*;

/// Parameters of a method that has none.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct NoParams {}

/// The id of a subscription, which its notifications name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SubscriptionId(pub String);

/// An OpenRPC document.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenRpcDocument(pub Box<RawValue>);

impl JsonSchema for OpenRpcDocument {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OpenRpcDocument".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "description": "An OpenRPC document, version 1.3."})
    }
}

/// A reply without content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {}
