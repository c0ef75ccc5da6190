//! ToolSearch: brings definitions of deferred tools into the next requests of the session.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::error::ToolError;
use crate::mcp_context::McpContext;
use crate::session_tools::prepare_session_change;
use types::mcp::{McpTool, TOOL_SEARCH};
use types::tool::{PreparedCall, ToolOutcome};

/// Maximum number of tools that one search brings in.
const MAX_MATCHES: usize = 10;
/// Maximum number of names that a search without a result shows.
const MAX_NAMES: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Words of what the tool should do, or `select:NAME,NAME` for known names.
    query: String,
}

pub(super) const DESCRIPTION: &str = "Finds tools of MCP servers and makes them callable. Their definitions are not \
    listed here, because there are many. Search with a few words of what you need (for example: github issue \
    create), or with select:NAME for a known name; then call the tools that were found. An empty query lists all names.";

pub(super) fn prepare(input: &Input) -> Result<PreparedCall, ToolError> {
    let shown: String = input.query.chars().take(80).collect();
    Ok(prepare_session_change(TOOL_SEARCH, format!("Search tools: {shown}")))
}

pub(super) fn run(input: &Input, mcp: &McpContext) -> ToolOutcome {
    let tools = &mcp.catalog.tools;
    let found = find(&input.query, tools);
    if found.is_empty() {
        let names: Vec<&str> = tools.iter().take(MAX_NAMES).map(|tool| tool.name.as_str()).collect();
        let more = tools.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text =
            format!("No tool was brought in. The {} tools are: {}{more}", tools.len(), names.join(", "));
        return ToolOutcome { detail: Some(json!({ "loaded": [] })), ..ToolOutcome::completed(text) };
    }
    let mut text = String::from("These tools can be called from now on:");
    for tool in &found {
        let line = tool.description.lines().next().unwrap_or_default();
        let _ = write!(text, "\n- {}: {line}", tool.name);
    }
    let names: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
    ToolOutcome { detail: Some(json!({ "loaded": names })), ..ToolOutcome::completed(text) }
}

/// The tools that fit best, the best first.
fn find<'t>(query: &str, tools: &'t [McpTool]) -> Vec<&'t McpTool> {
    if let Some(names) = query.trim().strip_prefix("select:") {
        let names = names.split(',').map(str::trim);
        return names
            .filter_map(|name| tools.iter().find(|tool| tool.name == name || tool.tool == name))
            .collect();
    }
    let query = query.to_lowercase();
    let words: Vec<&str> =
        query.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).collect();
    let score = |tool: &McpTool| {
        let (name, description) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        let of_word = |word: &&str| match (name.contains(*word), description.contains(*word)) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        };
        words.iter().map(of_word).sum::<u32>()
    };
    let mut scored: Vec<(u32, &McpTool)> = tools.iter().map(|tool| (score(tool), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    // The sort is stable: tools with equal scores keep the order of their names.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MAX_MATCHES).map(|(_, tool)| tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, description: &str) -> McpTool {
        McpTool {
            name: format!("mcp__s__{name}"),
            server: "s".into(),
            tool: name.into(),
            description: description.into(),
            input_schema: json!({}),
            digest: String::new(),
        }
    }

    #[test]
    fn tool_search_finds_by_words_and_by_name() {
        let tools =
            [tool("read_file", "Reads"), tool("issue_create", "Creates an issue"), tool("x", "about issues")];
        let names =
            |query: &str| find(query, &tools).iter().map(|tool| tool.tool.clone()).collect::<Vec<_>>();
        assert_eq!(names("create issue"), ["issue_create", "x"]);
        assert_eq!(names("select:mcp__s__x, read_file"), ["x", "read_file"]);
        assert!(names("").is_empty() && names("zebra").is_empty());
    }
}
