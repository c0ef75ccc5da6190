//! One self-contained HTML page of a conversation. The page needs no script and makes no request. All text
//! of models, users and files is hostile: raw HTML is shown as text, and links lead only to web pages.

use std::fmt::Write as _;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use crate::history::page::{PageHeader, PageItem, UsageTable, input_text};
use types::message::Block;
use types::session::{CallStatus, ItemKind};
use types::tool::FileChange;

const STYLE: &str = include_str!("page.css");

/// Escapes text for HTML, also inside an attribute in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are not allowed in HTML, and could reorder the text.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Converts Markdown to HTML. Raw HTML becomes text, pictures become links, and only web and mail links stay.
pub(super) fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let events = Parser::new_ext(text, options).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(
            Tag::Image { link_type, dest_url, title, id } | Tag::Link { link_type, dest_url, title, id },
        ) => Event::Start(Tag::Link { link_type, dest_url: web_link(dest_url), title, id }),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        // A paragraph surrounds raw HTML, so that its text is visible.
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    });
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events);
    out
}

fn web_link(link: CowStr<'_>) -> CowStr<'_> {
    let lower = link.trim().to_ascii_lowercase();
    let is_web = ["https://", "http://", "mailto:"].iter().any(|start| lower.starts_with(start));
    if is_web { link } else { "#".into() }
}

/// The beginning of the page.
pub(super) fn render_start(header: &PageHeader) -> String {
    let title = escape(&header.title);
    let facts: Vec<String> = header
        .facts()
        .into_iter()
        .map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<dl>{}</dl>\n</header>\n<main>\n",
        facts.concat()
    )
}

/// The end of the page, with the costs.
pub(super) fn render_end(total: &UsageTable) -> String {
    let rows: Vec<String> = total
        .rows
        .iter()
        .map(|row| {
            let cells: Vec<String> = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            format!("<tr>{}</tr>", cells.concat())
        })
        .collect();
    let heads: Vec<String> =
        UsageTable::COLUMN_TITLES.iter().map(|head| format!("<th>{head}</th>")).collect();
    format!(
        "</main>\n<footer>\n<h2>Costs</h2>\n<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>\n\
         </footer>\n</body>\n</html>\n",
        heads.concat(),
        rows.concat()
    )
}

/// One entry of the conversation.
pub(super) fn render_entry(entry: &PageItem) -> String {
    let item = &entry.item;
    let id = escape(&item.item_id.to_string());
    let mut out = String::new();
    match item.kind {
        ItemKind::ToolCall | ItemKind::Plan => tool_call(entry, &id, &mut out),
        kind => {
            let (class, who) = match kind {
                ItemKind::UserMessage => ("user", "User"),
                ItemKind::AssistantMessage => ("assistant", "Assistant"),
                ItemKind::Error => ("notice", "Error"),
                _ => ("notice", "Notice"),
            };
            let state = item.status.name();
            let note = if state == "completed" { String::new() } else { format!(" <em>{state}</em>") };
            let mut body = String::new();
            for block in &item.content {
                message_block(block, entry, &mut body);
            }
            if item.content.is_empty() {
                body.push_str(&markdown(item.text.as_deref().unwrap_or_default()));
            }
            // An answer that contains only calls has no text. Its calls are separate entries.
            if body.is_empty() && item.kind == ItemKind::AssistantMessage {
                return out;
            }
            let _ = write!(out, "<article class=\"{class}\" id=\"{id}\"><h2>{who}{note}</h2>\n{body}");
            out.push_str("</article>\n");
        }
    }
    out
}

fn message_block(block: &Block, entry: &PageItem, out: &mut String) {
    match block {
        Block::Text { text } => out.push_str(&markdown(text)),
        Block::Thinking { text, .. } if !text.trim().is_empty() => {
            let _ = writeln!(
                out,
                "<details class=\"thinking\"><summary>Thinking</summary>{}</details>",
                markdown(text)
            );
        }
        Block::Image(picture) => match entry.pictures.get(&picture.blob.blob_id) {
            Some(data) => {
                let name = escape(picture.name.as_deref().unwrap_or("picture"));
                let _ = writeln!(out, "<figure><img alt=\"{name}\" src=\"{}\"></figure>", escape(data));
            }
            None => {
                let _ = writeln!(out, "<p class=\"media\">Picture, {} bytes</p>", picture.blob.bytes);
            }
        },
        Block::Document(document) => {
            let name = escape(document.name.as_deref().unwrap_or("document"));
            let _ = writeln!(out, "<p class=\"media\">Document {name}, {} bytes</p>", document.blob.bytes);
        }
        // Calls are separate entries.
        Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolCall(_)
        | Block::ToolResult { .. } => {}
    }
}

fn tool_call(entry: &PageItem, id: &str, out: &mut String) {
    let Some(call) = &entry.item.call else { return };
    let (class, state) = match call.status {
        CallStatus::Completed => ("done", "completed"),
        CallStatus::Failed => ("failed", "failed"),
        CallStatus::Denied => ("failed", "denied"),
        CallStatus::Cancelled => ("failed", "cancelled"),
        CallStatus::Unknown => ("failed", "outcome unknown"),
        CallStatus::Pending | CallStatus::AwaitingPermission | CallStatus::Running => {
            ("open", "not complete")
        }
    };
    let (tool, input) = (escape(&call.tool), escape(&input_text(&call.input)));
    let _ = writeln!(
        out,
        "<article class=\"tool {class}\" id=\"{id}\"><h3><code>{tool}</code> <em>{state}</em></h3>"
    );
    if entry.changes.is_empty() {
        let _ = writeln!(out, "<pre class=\"input\">{input}</pre>");
    } else {
        // The diff below shows the written content.
        let _ =
            writeln!(out, "<details><summary>Input</summary><pre class=\"input\">{input}</pre></details>");
    }
    for change in &entry.changes {
        diff(change, out);
    }
    let text = entry.item.text.as_deref().unwrap_or_default();
    if !text.trim().is_empty() {
        let open = if text.lines().count() <= 12 { " open" } else { "" };
        let _ =
            writeln!(out, "<details{open}><summary>Output</summary><pre>{}</pre></details>", escape(text));
    }
    out.push_str("</article>\n");
}

fn diff(change: &FileChange, out: &mut String) {
    let path = escape(&change.path.to_string_lossy());
    let _ = write!(
        out,
        "<details class=\"diff\" open><summary>{path} <b class=\"add\">+{}</b> <b class=\"del\">−{}</b></summary><pre>",
        change.added, change.removed
    );
    for line in change.diff.lines() {
        let class = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => "file",
            [b'+', ..] => "add",
            [b'-', ..] => "del",
            [b'@', b'@', ..] => "hunk",
            _ => "",
        };
        let _ = write!(out, "<span class=\"{class}\">{}</span>", escape(line));
    }
    out.push_str("</pre></details>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_markdown_stays_text_without_requests() {
        let page = markdown(
            "<script>alert(1)</script>\n\nx <img src=x onerror=alert(1)> ![p](https://evil/x.png) [a](javascript:alert(1)) \
             [b](data:text/html,x) [ok](https://example.org)",
        );
        for bad in ["<script", "<img", "javascript:", "data:text", "onerror=alert(1)>"] {
            assert!(!page.contains(bad), "{bad}: {page}");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("href=\"https://example.org\""), "{page}");
        assert_eq!(escape("<a href=\"x\">'&\u{7}"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\u{fffd}");
    }
}
