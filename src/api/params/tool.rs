//! Parameters and replies of the namespace `tool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `tool.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolListParams {
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Tools of a page, at most 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Reply of `tool.list`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolListReply {
    /// By name.
    pub tools: Vec<ToolView>,
    /// For the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A tool as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// Its name in calls, rules and events.
    pub name: String,
    /// What it does, as the model is told.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
    /// Every call of it changes nothing. Each Bash command is judged by itself: `tool.started` says which are read-only.
    pub read_only: bool,
    /// Its calls may run beside each other.
    pub concurrency_safe: bool,
}
