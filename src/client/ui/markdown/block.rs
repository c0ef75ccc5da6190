//! Lays out one unit of Markdown.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::markdown::OPTIONS;
use crate::ui::markdown::code::{CodeBlock, INDENT};
use crate::ui::markdown::table::Table;

/// Maximum columns of prose, because longer rows are hard to read.
const MAX_PROSE_COLUMNS: usize = 100;

/// The lines of a unit. All text is escaped here, after entities like `&#27;` were decoded.
pub(super) fn lines(source: &str, columns: usize) -> Vec<StyledLine> {
    let mut layout = Layout { columns: columns.max(4), ..Layout::default() };
    for event in Parser::new_ext(source, OPTIONS) {
        layout.event(event);
    }
    layout.flush();
    layout.lines
}

#[derive(Default)]
struct Layout {
    columns: usize,
    lines: Vec<StyledLine>,
    /// The paragraph that is being read.
    text: StyledLine,
    tones: Vec<Tone>,
    /// Leads of the enclosing blocks: the lead of the next row, and the lead of all further rows.
    leads: Vec<(StyledLine, StyledLine)>,
    /// Next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    table: Option<Table>,
    code: Option<(String, String)>,
    /// Targets of open links, each with the text that its link contains so far.
    links: Vec<(String, String)>,
    has_gap: bool,
}

impl Layout {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.push(None, &text),
            Event::Code(text) => self.push(Some(Tone::Code), &text),
            Event::InlineHtml(text) => self.push(Some(Tone::Dim), &text),
            Event::Html(text) => {
                for line in text.lines() {
                    self.push(Some(Tone::Dim), line);
                    self.flush();
                }
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.push(Some(Tone::Code), &text),
            Event::FootnoteReference(text) => self.push(None, &text),
            Event::SoftBreak => self.push(None, " "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                let columns = self.columns.min(MAX_PROSE_COLUMNS);
                let rule = "─".repeat(columns.saturating_sub(self.indent()));
                self.emit_wrapped(StyledLine::new(Tone::Dim, rule));
            }
            Event::TaskListMarker(is_done) => self.push(None, if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn push(&mut self, tone: Option<Tone>, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
            return;
        }
        if let Some((_, link_text)) = self.links.last_mut() {
            link_text.push_str(text);
        }
        let tone = tone.or(self.tones.last().copied()).unwrap_or(Tone::Plain);
        let shown = escape::escape_decoded(text).into_owned();
        match self.text.0.last_mut() {
            Some((last, piece)) if *last == tone => piece.push_str(&shown),
            _ => self.text.0.push((tone, shown)),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { .. } => {
                self.gap();
                self.tones.push(Tone::Bold);
            }
            Tag::BlockQuote(_) => {
                self.flush();
                let bar = StyledLine::new(Tone::Dim, "│ ");
                self.leads.push((bar.clone(), bar));
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',']).next().unwrap_or_default().to_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                self.has_gap = false;
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush();
                self.has_gap = false;
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".into(),
                };
                let blank = StyledLine::new(Tone::Plain, " ".repeat(mark.len()));
                self.leads.push((StyledLine::new(Tone::Plain, mark), blank));
            }
            Tag::Emphasis => self.tones.push(Tone::Emphasis),
            Tag::Strong => self.tones.push(Tone::Bold),
            Tag::Strikethrough => {
                self.tones.push(Tone::Dim);
                // The marks stay, because the text would read as valid without colours.
                self.push(None, "~~");
            }
            Tag::Link { dest_url, .. } => {
                self.tones.push(Tone::Link);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Image { dest_url, .. } => {
                self.push(Some(Tone::Dim), "[image] ");
                self.tones.push(Tone::Link);
                self.links.push((dest_url.into_string(), String::new()));
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.has_gap = true;
            }
            TagEnd::Heading(_) => {
                self.tones.pop();
                self.flush();
                self.has_gap = true;
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                self.leads.pop();
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::CodeBlock => {
                let Some((language, text)) = self.code.take() else { return };
                let mut code = CodeBlock::new(&language);
                // Within a list, the item's own indentation sets the code apart, so remove the indentation of
                // code.
                let inner = if self.leads.is_empty() { "" } else { INDENT };
                for line in text.trim_end_matches('\n').split('\n') {
                    let mut line = code.line(line);
                    if !inner.is_empty() {
                        line.0.retain(|(_, piece)| piece != INDENT);
                    }
                    self.emit(line);
                }
                self.has_gap = true;
            }
            TagEnd::Strikethrough => {
                self.push(None, "~~");
                self.tones.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong => {
                self.tones.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.tones.pop();
                if let Some((target, link_text)) = self.links.pop() {
                    let is_same = link_text == target || format!("mailto:{link_text}") == target;
                    if !is_same && !target.is_empty() && !target.starts_with('#') {
                        self.push(Some(Tone::Dim), &format!(" ({target})"));
                    }
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let room = self.columns.saturating_sub(self.indent());
                if let Some(table) = self.table.take() {
                    for line in table.lines(room) {
                        self.emit(line);
                    }
                }
                self.has_gap = true;
            }
            _ => {}
        }
    }

    /// Columns that the leads take.
    fn indent(&self) -> usize {
        self.leads.iter().map(|(_, rest)| rest.width()).sum()
    }

    /// Adds an empty line between two paragraphs of one unit.
    fn gap(&mut self) {
        self.flush();
        if std::mem::take(&mut self.has_gap) && !self.lines.is_empty() {
            self.emit(StyledLine::default());
        }
    }

    fn flush(&mut self) {
        if !self.text.0.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.emit_wrapped(text);
        }
    }

    /// Writes a line after the leads, in rows that fit.
    fn emit_wrapped(&mut self, line: StyledLine) {
        let room = self.columns.min(MAX_PROSE_COLUMNS).saturating_sub(self.indent()).max(4);
        line.wrap(room).into_iter().for_each(|row| self.emit(row));
    }

    /// Writes a row after the leads.
    fn emit(&mut self, row: StyledLine) {
        let mut shown = StyledLine::default();
        for (first, rest) in &mut self.leads {
            shown.0.extend(first.0.iter().cloned());
            first.clone_from(rest);
        }
        shown.0.extend(row.0);
        self.lines.push(shown);
    }
}
