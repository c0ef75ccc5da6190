//! Tool calls in a few words, from their arguments alone.

use std::path::Path;

use serde_json::Value;

use super::subagent::TASK;
use super::tool::{MCP_PREFIX, ProposedPlan};

/// Maximum characters of a title.
const MAX_TITLE_CHARS: usize = 500;
/// Maximum characters of a summary.
const MAX_SUMMARY_CHARS: usize = 160;

/// The call in a few words, at most 500 characters. For a command the command itself, with all its lines, because the
/// model's description of it may be wrong. Paths in `cwd` are relative to it.
#[must_use]
pub fn call_title(tool: &str, input: &Value, cwd: &Path) -> String {
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
    match title.trim() {
        "" => tool.to_owned(),
        title => shorten(title, MAX_TITLE_CHARS),
    }
}

/// The first line of [`call_title`], at most 160 characters. `…` marks missing text.
#[must_use]
pub fn call_summary(tool: &str, input: &Value, cwd: &Path) -> String {
    let title = call_title(tool, input, cwd);
    let first = title.lines().next().unwrap_or_default().trim_end();
    let more = if first.len() < title.len() { " …" } else { "" };
    shorten(&format!("{first}{more}"), MAX_SUMMARY_CHARS)
}

fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn title_names_command_or_file() {
        let check = |tool, input: Value, expected: &str| {
            assert_eq!(call_title(tool, &input, "/w".as_ref()), expected)
        };
        check("Bash", json!({"command": "make\ntest", "description": "nothing"}), "make\ntest");
        check("Edit", json!({"file_path": "/w/a/b.rs"}), "Edit a/b.rs");
        check("Read", json!({"file_path": "/etc/x"}), "Read /etc/x");
        check("Grep", json!({"pattern": "fn", "path": "/w/src"}), "Grep fn in src");
        check("mcp__db__query", json!({}), "db: query");
        check("Task", json!({"subagent_type": "explore", "description": "find it"}), "explore: find it");
        check("Bash", json!({"command": 4}), "Bash");
        check("New", json!("text"), "New");
        let long = call_title("Bash", &json!({"command": "é".repeat(600)}), "/w".as_ref());
        assert_eq!(long.chars().count(), MAX_TITLE_CHARS + 1);
    }

    #[test]
    fn summary_is_one_short_line() {
        let summary = |command: &str| call_summary("Bash", &json!({ "command": command }), "/w".as_ref());
        assert_eq!(summary("make\ntest"), "make …");
        assert_eq!(summary("make"), "make");
        assert_eq!(summary(&"x".repeat(400)).chars().count(), MAX_SUMMARY_CHARS + 1);
    }
}
