//! Parameters and replies of the namespace `tool`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use types::tool::ToolLimits;

/// `tool.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolListParams {
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Tools per page, at most 500; 100 by default.
    pub limit: Option<u32>,
}

/// Reply of `tool.list`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolListReply {
    /// Tools of this page, sorted by name.
    pub tools: Vec<ToolView>,
    /// Cursor of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// A tool as clients see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolView {
    /// Its name in calls, rules and events.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
    /// Whether none of its calls changes anything. Each Bash command is judged separately, and `tool.started` reports
    /// whether it is read-only.
    pub read_only: bool,
    /// Whether its calls may run in parallel.
    pub concurrency_safe: bool,
    /// Permission need, time limit and output limit.
    #[serde(flatten)]
    pub limits: ToolLimits,
    /// Maximum bytes of one result for the model. A longer result is cut, and its full text is kept as a blob. The
    /// maximum is lower for a small context window.
    pub max_output_bytes: u64,
}
