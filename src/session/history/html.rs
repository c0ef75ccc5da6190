//! One self-contained HTML page of a conversation. The page needs no script and makes no request. All text
//! of models, users and files is hostile: raw HTML is shown as text, and links lead only to web pages.

use std::fmt::Write as _;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html};

use serde_json::Value;

use crate::history::highlight;
use crate::history::page::{PageHeader, PageItem, UsageTable, escape, input_text};
use types::message::Block;
use types::session::{CallStatus, ItemKind};
use types::tool::{FileChange, ProposedPlan};

/// Output with more lines is folded.
const MAX_OPEN_LINES: usize = 12;

const STYLE: &str = include_str!("page.css");

/// Converts Markdown to HTML. Raw HTML becomes text, pictures become links, and only web and mail links stay.
pub(super) fn markdown(text: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut code: Option<(String, String)> = None;
    let mut events: Vec<Event<'_>> = Vec::new();
    for event in Parser::new_ext(text, options) {
        // A code block is written here, because its words are coloured.
        match (&mut code, event) {
            (None, Event::Start(Tag::CodeBlock(kind))) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some((language, String::new()));
            }
            (Some((language, text)), Event::End(TagEnd::CodeBlock)) => {
                let html = format!("<pre><code>{}</code></pre>\n", highlight::code(language, text));
                events.push(Event::Html(html.into()));
                code = None;
            }
            (Some((_, text)), Event::Text(more)) => text.push_str(&more),
            (Some(_), _) => {}
            (None, event) => events.push(safe_event(event)),
        }
    }
    let mut out = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut out, events.into_iter());
    out
}

/// An event without raw HTML and without links to anything but the web.
fn safe_event(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(raw),
        Event::Start(
            Tag::Image { link_type, dest_url, title, id } | Tag::Link { link_type, dest_url, title, id },
        ) => Event::Start(Tag::Link { link_type, dest_url: web_link(dest_url), title, id }),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Link),
        // A paragraph surrounds raw HTML, so that its text is visible.
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    }
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
            let note = match state {
                "completed" => String::new(),
                state => format!(" <span class=\"state\">{state}</span>"),
            };
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
            // The role is no heading, so that no heading in the text looks like a role.
            let _ = write!(
                out,
                "<article class=\"{class}\" id=\"{id}\"><div class=\"role\">{who}{note}</div>\n\
                 <div class=\"text\">{body}</div></article>\n"
            );
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
    let tool = escape(&call.tool);
    let _ = writeln!(
        out,
        "<article class=\"tool {class}\" id=\"{id}\"><div class=\"call\"><code>{tool}</code> \
         <span class=\"state\">{state}</span></div>"
    );
    let input = input_html(&call.tool, &call.input);
    if entry.changes.is_empty() {
        out.push_str(&input);
    } else {
        // The diff below shows the written content.
        let _ = writeln!(out, "<details><summary>Input</summary>{input}</details>");
    }
    for change in &entry.changes {
        diff(change, out);
    }
    let text = entry.item.text.as_deref().unwrap_or_default();
    if !text.trim().is_empty() {
        let count = text.lines().count();
        let (open, summary) = match count {
            0..=MAX_OPEN_LINES => (" open", "Output".to_owned()),
            _ => ("", format!("Output, {count} lines")),
        };
        let _ =
            writeln!(out, "<details{open}><summary>{summary}</summary><pre>{}</pre></details>", escape(text));
    }
    out.push_str("</article>\n");
}

/// The arguments of a call: a command as a command, a plan as it reads, the rest as JSON.
fn input_html(tool: &str, input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    match (tool, field("command"), field("plan")) {
        ("Bash", Some(command), _) => {
            let about = field("description").unwrap_or_default();
            let about = if about.is_empty() { String::new() } else { format!("<p>{}</p>", escape(about)) };
            let others: Vec<String> = input
                .as_object()
                .into_iter()
                .flatten()
                .filter(|(name, _)| !matches!(name.as_str(), "command" | "description"))
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!("<p class=\"media\">{}</p>", escape(&others.join(" · "))),
            };
            format!("{about}<pre class=\"command\">{}</pre>{others}\n", highlight::code("sh", command))
        }
        (ProposedPlan::TOOL, _, Some(plan)) => format!("<div class=\"text\">{}</div>\n", markdown(plan)),
        _ => {
            let text = input_text(input);
            let language = if text.starts_with(['{', '[']) { "json" } else { "" };
            format!("<pre class=\"input\">{}</pre>\n", highlight::code(language, &text))
        }
    }
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
    fn text_of_an_answer_keeps_its_own_headings_and_styles() {
        let heading = markdown("## User\n\n*so* it is\n\n| a |\n|---|\n| b |\n");
        assert!(heading.contains("<h2>User</h2>") && heading.contains("<em>so</em>"), "{heading}");
        // No rule of the page's own parts fits elements of an answer.
        for rule in
            ["article h2", "article h3", "\nem{", "\nh1{", "\ntable{", "\nth{", "text-transform:uppercase;}"]
        {
            assert!(!STYLE.contains(rule), "{rule}");
        }
    }

    #[test]
    fn input_of_call_is_readable() {
        let cases = [
            (
                "Bash",
                serde_json::json!({"command": "echo '<b>'", "description": "Say it", "timeout": 5}),
                vec!["<p>Say it</p>", "<pre class=\"command\">", "timeout: 5"],
            ),
            ("Bash", serde_json::json!({"command": "ls\nls"}), vec!["<pre class=\"command\">"]),
            ("ExitPlanMode", serde_json::json!({"plan": "# Do <i>"}), vec!["<h1>Do &lt;i&gt;</h1>"]),
            (
                "Grep",
                serde_json::json!({"pattern": "a", "path": "b"}),
                vec!["<pre class=\"input\">", "pattern"],
            ),
        ];
        for (tool, input, parts) in cases {
            let html = input_html(tool, &input);
            for part in parts {
                assert!(html.contains(part), "{part}: {html}");
            }
            assert!(
                !html.contains("<b>") && !html.contains("<i>") && !html.contains("&quot;command"),
                "{html}"
            );
        }
    }

    #[test]
    fn code_in_an_answer_is_coloured() {
        let page = markdown("```rust\nfn a() {} // <script>\n```\n\n    indented <b>\n");
        assert!(page.contains("<span class=\"k\">fn</span>"), "{page}");
        assert!(page.contains("<pre><code>indented &lt;b&gt;"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

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
