//! Tool calls as editors show them: kind, title and place. Pure.

use std::path::Path;

use serde_json::Value;

use crate::acp::schema::{Location, ToolKind};
use types::subagent::TASK;
use types::tool::{MCP_PREFIX, ProposedPlan};

/// Maximum characters of a title. The complete input is in `rawInput`.
const MAX_TITLE_CHARS: usize = 500;

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

/// The call in a few words. For a command the command itself, because the model's description of it may be wrong.
pub(in crate::acp) fn title(tool: &str, input: &Value, cwd: &str) -> String {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = |name: &str| {
        let path = Path::new(text(name));
        path.strip_prefix(cwd).unwrap_or(path).display().to_string()
    };
    let title = match tool {
        "Bash" => text("command").to_owned(),
        "Read" | "Write" | "Edit" | "MultiEdit" => format!("{tool} {}", path("file_path")),
        "NotebookRead" | "NotebookEdit" => format!("{tool} {}", path("notebook_path")),
        "LS" => format!("List {}", path("path")),
        "Glob" | "Grep" => match text("path") {
            "" => format!("{tool} {}", text("pattern")),
            _ => format!("{tool} {} in {}", text("pattern"), path("path")),
        },
        "WebFetch" => format!("Fetch {}", text("url")),
        TASK => format!("{}: {}", text("subagent_type"), text("description")),
        "TodoWrite" => "Update the todo list".to_owned(),
        "AskUser" => {
            let question = input.pointer("/questions/0/question").and_then(Value::as_str);
            question.unwrap_or("Ask the user").to_owned()
        }
        ProposedPlan::TOOL => "Present the plan".to_owned(),
        _ => match tool.strip_prefix(MCP_PREFIX).and_then(|rest| rest.split_once("__")) {
            Some((server, name)) => format!("{server}: {name}"),
            None => tool.to_owned(),
        },
    };
    let title = title.trim();
    match title.char_indices().nth(MAX_TITLE_CHARS) {
        Some((end, _)) => format!("{}…", &title[..end]),
        None if title.is_empty() => tool.to_owned(),
        None => title.to_owned(),
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
    fn call_title_names_command_or_file() {
        let check = |tool, input: Value, expected: &str| assert_eq!(title(tool, &input, "/w"), expected);
        check("Bash", json!({"command": "make\ntest", "description": "nothing"}), "make\ntest");
        check("Edit", json!({"file_path": "/w/a/b.rs"}), "Edit a/b.rs");
        check("Read", json!({"file_path": "/etc/x"}), "Read /etc/x");
        check("Grep", json!({"pattern": "fn", "path": "/w/src"}), "Grep fn in src");
        check("mcp__db__query", json!({}), "db: query");
        check("Task", json!({"subagent_type": "explore", "description": "find it"}), "explore: find it");
        check("Bash", json!({"command": 4}), "Bash");
        check("New", json!("text"), "New");
        let long = title("Bash", &json!({"command": "é".repeat(600)}), "/w");
        assert_eq!(long.chars().count(), MAX_TITLE_CHARS + 1);
    }

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
