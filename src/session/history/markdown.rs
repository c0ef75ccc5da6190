//! A conversation as Markdown.

use std::fmt::Write as _;

use crate::history::page::{PageHeader, PageItem, UsageTable, input_text};
use types::message::Block;
use types::session::ItemKind;

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
    let _ = write!(out, "## {heading}\n\n");
    if let Some(call) = &item.call {
        out.push_str(&fenced("json", &input_text(&call.input)));
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
            Block::Text { text } => _ = write!(out, "{}\n\n", text.trim_end()),
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
        let _ = write!(out, "{}\n\n", item.text.as_deref().unwrap_or_default().trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_is_longer_than_backticks_of_text() {
        assert_eq!(fenced("", "a"), "```\na\n```\n\n");
        assert!(fenced("", "x ```` y").starts_with("`````\n"));
    }
}
