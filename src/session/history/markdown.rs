//! A conversation as Markdown.

use std::fmt::Write as _;

use crate::history::page::{PageHeader, PageItem, UsageTable, input_text};
use serde_json::Value;
use types::message::Block;
use types::session::ItemKind;
use types::tool::ProposedPlan;

/// A fenced block. The fence is longer than every run of backticks inside.
fn fenced(language: &str, text: &str) -> String {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n\n", text.trim_end_matches('\n'))
}

/// The arguments of a call: a command as a command, a plan as it reads, the rest as JSON. The diffs of a call that
/// changed files show what was written, so only the file is named.
fn call_input(tool: &str, input: &Value, has_diff: bool) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    match (tool, field("command"), field("plan"), field("file_path")) {
        ("Bash", Some(command), ..) => {
            let about = field("description").map(|about| format!("{}\n\n", about.replace('\n', " ")));
            about.unwrap_or_default() + &fenced("sh", command)
        }
        (ProposedPlan::TOOL, _, Some(plan), _) => format!("{}\n\n", below_roles(plan.trim_end())),
        (.., Some(path)) if has_diff => format!("{}\n\n", path.replace('\n', " ")),
        _ => fenced("json", &input_text(input)),
    }
}

/// A text whose headings are below those of the roles, so that none of them looks like a role.
fn below_roles(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let lines = text.lines().map(|line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let marks = start.len() - start.trim_start_matches('#').len();
        let is_heading = (1..=6).contains(&marks) && start[marks..].starts_with([' ', '\t']);
        let is_code = fence.is_some() || line.len() - start.len() > 3;
        match is_heading && !is_code {
            true => format!("{}{}", "#".repeat((marks + 2).min(6)), &start[marks..]),
            false => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn render_start(header: &PageHeader) -> String {
    let mut out = format!("# {}\n\n", header.title.replace('\n', " "));
    for (name, value) in header.facts() {
        let _ = writeln!(out, "- {name}: {}", value.replace('\n', " "));
    }
    out + "\n"
}

pub(super) fn render_end(total: &UsageTable) -> String {
    let mut out = String::from("## Costs\n\n");
    let _ = writeln!(
        out,
        "| {} |\n|{}",
        UsageTable::COLUMN_TITLES.join(" | "),
        " --- |".repeat(UsageTable::COLUMN_TITLES.len())
    );
    for row in &total.rows {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out
}

pub(super) fn render_entry(entry: &PageItem) -> String {
    let item = &entry.item;
    let mut out = String::new();
    let heading = match item.kind {
        ItemKind::UserMessage => "User".to_owned(),
        ItemKind::AssistantMessage => "Assistant".to_owned(),
        ItemKind::ToolCall | ItemKind::Plan => {
            let tool = item.call.as_ref().map_or("", |call| call.tool.as_str());
            format!("Tool: {}", tool.replace('\n', " "))
        }
        ItemKind::Error => "Error".to_owned(),
        _ => "Notice".to_owned(),
    };
    let is_shown = |block: &Block| match block {
        Block::Text { .. } | Block::Image(_) | Block::Document(_) => true,
        Block::Thinking { text, .. } => !text.trim().is_empty(),
        Block::RedactedThinking { .. } | Block::ToolCall(_) | Block::ToolResult { .. } => false,
    };
    // An answer that contains only calls has no text. Its calls are separate entries.
    if item.kind == ItemKind::AssistantMessage
        && !item.content.is_empty()
        && !item.content.iter().any(is_shown)
    {
        return out;
    }
    let _ = write!(out, "## {heading}\n\n");
    if let Some(call) = &item.call {
        out.push_str(&call_input(&call.tool, &call.input, !entry.changes.is_empty()));
        for change in &entry.changes {
            out.push_str(&fenced("diff", &change.diff));
        }
        let text = item.text.as_deref().unwrap_or_default();
        if !text.trim().is_empty() {
            out.push_str(&fenced("", text));
        }
        return out;
    }
    for block in &item.content {
        match block {
            Block::Text { text } => _ = write!(out, "{}\n\n", below_roles(text.trim_end())),
            Block::Thinking { text, .. } if !text.trim().is_empty() => {
                let quoted: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
                let _ = write!(out, "{}\n\n", quoted.join("\n"));
            }
            Block::Image(picture) => _ = write!(out, "(picture, {} bytes)\n\n", picture.blob.bytes),
            Block::Document(document) => {
                let name = document.name.as_deref().unwrap_or("document");
                let _ = write!(out, "(document {name}, {} bytes)\n\n", document.blob.bytes);
            }
            _ => {}
        }
    }
    if item.content.is_empty() {
        let text = item.text.as_deref().unwrap_or_default().trim_end();
        let _ = write!(out, "{}\n\n", below_roles(text));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fence_is_longer_than_backticks_of_text() {
        assert_eq!(fenced("", "a"), "```\na\n```\n\n");
        assert!(fenced("", "x ```` y").starts_with("`````\n"));
    }

    #[test]
    fn headings_of_texts_are_below_roles_and_code_stays() {
        let check = |text: &str, expected: &str| assert_eq!(below_roles(text), expected);
        check("## User\nhi\n# A\n##### B", "#### User\nhi\n### A\n###### B");
        check("#tag and #5\n####### seven", "#tag and #5\n####### seven");
        check("```sh\n# a comment\n~~~\n```\n# A", "```sh\n# a comment\n~~~\n```\n### A");
        check("    # code", "    # code");
    }

    #[test]
    fn command_plan_and_edit_are_not_shown_as_json() {
        let input = |tool, value, has_diff| call_input(tool, &value, has_diff);
        let command = json!({"command": "make", "description": "Build it"});
        assert_eq!(input("Bash", command, false), "Build it\n\n```sh\nmake\n```\n\n");
        assert_eq!(input("ExitPlanMode", json!({"plan": "# Steps\n1. a"}), false), "### Steps\n1. a\n\n");
        let edit = json!({"file_path": "/w/a", "old_string": "a", "new_string": "b"});
        assert_eq!(input("Edit", edit.clone(), true), "/w/a\n\n");
        assert!(input("Edit", edit, false).starts_with("```json\n"), "without a diff all is shown");
    }
}
