//! Tool calls as editors show them: kind and place. Pure.

use std::path::Path;

use serde_json::Value;

use crate::acp::schema::{CallState, Location, ToolCall, ToolKind};
use types::call_summary::call_title;
use types::session::PermissionRequest;
use types::subagent::TASK;
use types::tool::ProposedPlan;

pub(in crate::acp) fn kind(tool: &str) -> ToolKind {
    match tool {
        "Read" | "ReadBlob" | "NotebookRead" | "MemoryRead" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "ApplyPatch" | "NotebookEdit" | "MemoryWrite" => ToolKind::Edit,
        "LS" | "Glob" | "Grep" | "KnowledgeSearch" | "ToolSearch" => ToolKind::Search,
        "Bash" | "BashOutput" | "KillBash" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        ProposedPlan::TOOL => ToolKind::SwitchMode,
        TASK | "TodoWrite" | "TodoRead" => ToolKind::Think,
        _ => ToolKind::Other,
    }
}

/// The call that a request is about. A call of a sub-agent is not part of this session, so that it is shown as a call of
/// its own, under the id of the request.
pub(in crate::acp) fn requested_call(request: &PermissionRequest) -> ToolCall {
    let title = call_title(&request.tool, &request.input, request.cwd.as_ref());
    let (id, title) = match request.child_session_id {
        Some(_) => (request.request_id.to_string(), format!("Sub-agent: {title}")),
        None => (request.call_id.to_string(), title),
    };
    ToolCall {
        tool_call_id: id,
        title: Some(title),
        name: Some(request.tool.clone()),
        kind: Some(kind(&request.tool)),
        status: Some(CallState::Pending),
        raw_input: Some(request.input.clone()),
        ..ToolCall::default()
    }
}

/// The file that the call is about.
pub(in crate::acp) fn locations(input: &Value, cwd: &str) -> Vec<Location> {
    let path = ["file_path", "notebook_path", "path"].into_iter().find_map(|name| input.get(name)?.as_str());
    let line = input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    let location = |path| Location { path: Path::new(cwd).join(path).display().to_string(), line };
    path.filter(|path| !path.is_empty()).map(location).into_iter().collect()
}

/// A text as a code block of Markdown, with a fence that is longer than any in the text.
pub(in crate::acp) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn call_location_is_absolute() {
        let check = |input: Value, path: &str, line| {
            assert_eq!(locations(&input, "/w"), [Location { path: path.into(), line }], "{input}");
        };
        check(json!({"file_path": "a.rs"}), "/w/a.rs", None);
        check(json!({"file_path": "/x/a.rs", "offset": 7}), "/x/a.rs", Some(7));
        assert_eq!(locations(&json!({"file_path": 3}), "/w"), []);
        assert_eq!(kind("mcp__a__b"), ToolKind::Other);
    }
}
