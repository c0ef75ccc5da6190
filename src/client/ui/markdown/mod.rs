//! Markdown as lines of a terminal, while it streams. Pure.
//!
//! [`MarkdownStream`] cuts the text into units: paragraphs, headings, items of lists, tables, lines of code.
//! A unit whose end is known is returned once and never changes, so that it may go to the scrollback. The
//! text after the last complete unit is laid out again for each frame.

mod block;
mod code;
mod table;

use pulldown_cmark::{Event, Options, Parser, Tag};

use crate::terminal::style::StyledLine;
use crate::ui::markdown::code::{CodeBlock, Fence};

/// The Markdown extensions that models use.
pub(super) const OPTIONS: Options =
    Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Maximum bytes of a unit. A longer unit is cut at the end of a line.
const MAX_UNIT_BYTES: usize = 32 << 10;

/// The unfinished Markdown of one message.
#[derive(Default)]
pub(crate) struct MarkdownStream {
    /// Text whose units are not complete.
    pending: String,
    /// The open code block, whose complete lines were returned already.
    code: Option<(Fence, CodeBlock)>,
    /// Whether the last returned unit was followed by an empty line.
    is_blank_due: bool,
    /// Whether a unit of this message was returned.
    has_begun: bool,
}

impl MarkdownStream {
    /// Adds text. Returns the lines of all units that are complete now. Lines of code may be wider than
    /// `columns`; all other lines are wrapped.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<StyledLine> {
        self.pending.push_str(text);
        let mut lines = Vec::new();
        // A unit ends only at the end of a line.
        if !text.contains('\n') {
            return lines;
        }
        loop {
            if self.code.is_some() {
                if !self.push_code(&mut lines) {
                    return lines;
                }
            } else if !self.open_code(&mut lines) {
                let Some(end) = first_end(&self.pending) else { return lines };
                let unit: String = self.pending.drain(..end).collect();
                self.emit(&unit, columns, &mut lines);
            }
        }
    }

    /// Ends the message. Returns the remaining lines.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut lines = self.tail(columns);
        if lines.iter().all(|line| line.plain().is_empty()) {
            lines.clear();
        }
        *self = Self::default();
        lines
    }

    /// The lines of the unfinished text.
    pub(crate) fn tail(&self, columns: usize) -> Vec<StyledLine> {
        if let Some((fence, code)) = &self.code {
            let rest = self.pending.trim_end_matches('\n');
            let is_shown = !rest.is_empty() && !fence.is_closed_by(rest);
            return if is_shown { vec![code.unfinished(rest)] } else { Vec::new() };
        }
        let mut lines = Vec::new();
        let mut rest = Self { pending: String::new(), code: None, ..*self };
        rest.emit_all(&self.pending, columns, &mut lines);
        lines
    }

    /// The last lines of the unfinished text, for a frame. Only the end of an endless paragraph is laid out,
    /// because laying out the whole paragraph would take longer than a frame lasts.
    pub(crate) fn frame(&self, columns: usize) -> Vec<StyledLine> {
        if self.code.is_some() || self.pending.len() <= MAX_UNIT_BYTES || self.pending.contains('\n') {
            return self.tail(columns);
        }
        let from = self.pending.ceil_char_boundary(self.pending.len() - MAX_UNIT_BYTES / 4);
        let mut lines = Vec::new();
        let mut rest = Self { pending: String::new(), code: None, ..*self };
        rest.emit_all(&self.pending[from..], columns, &mut lines);
        lines
    }

    /// Opens a code block if the pending text begins with its first line.
    fn open_code(&mut self, lines: &mut Vec<StyledLine>) -> bool {
        let start = self.pending.len() - self.pending.trim_start_matches('\n').len();
        let Some(end) = self.pending[start..].find('\n').map(|at| start + at) else { return false };
        let Some(fence) = Fence::from_line(&self.pending[start..end]) else { return false };
        self.pending.drain(..=end);
        self.is_blank_due = true;
        self.push_due_blank(lines);
        let code = CodeBlock::new(fence.language());
        self.code = Some((fence, code));
        true
    }

    /// Returns the complete lines of the open code block. Returns false if the end of the block has not
    /// arrived.
    fn push_code(&mut self, lines: &mut Vec<StyledLine>) -> bool {
        let Some((fence, code)) = &mut self.code else { return true };
        while let Some(end) = self.pending.find('\n') {
            let line: String = self.pending.drain(..=end).collect();
            let line = line.trim_end_matches('\n');
            if fence.is_closed_by(line) {
                self.code = None;
                self.is_blank_due = true;
                return true;
            }
            lines.push(code.line(line));
        }
        false
    }

    /// Adds the lines of one unit, after an empty line if one is due.
    fn emit(&mut self, unit: &str, columns: usize, lines: &mut Vec<StyledLine>) {
        let body = unit.trim_matches('\n');
        if body.trim().is_empty() {
            self.is_blank_due |= self.has_begun && !unit.is_empty();
            return;
        }
        self.is_blank_due |= unit.starts_with('\n') && self.has_begun;
        self.push_due_blank(lines);
        lines.extend(block::lines(body, columns));
        self.is_blank_due = ends_with_blank(unit);
    }

    /// Emits all units of a text, whether complete or not.
    fn emit_all(&mut self, text: &str, columns: usize, lines: &mut Vec<StyledLine>) {
        let mut from = 0;
        for end in unit_starts(text).into_iter().skip(1).chain([text.len()]) {
            if let Some(unit) = text.get(from..end).filter(|unit| !unit.is_empty()) {
                self.emit(unit, columns, lines);
            }
            from = end.max(from);
        }
    }

    /// Adds the empty line that separates a unit from the one before it, if it is due.
    fn push_due_blank(&mut self, lines: &mut Vec<StyledLine>) {
        if std::mem::take(&mut self.is_blank_due) && self.has_begun {
            lines.push(StyledLine::default());
        }
        self.has_begun = true;
    }
}

/// The lines of a complete message.
pub(crate) fn lines(text: &str, columns: usize) -> Vec<StyledLine> {
    let mut stream = MarkdownStream::default();
    let mut lines = stream.push(text, columns);
    // If the text has no line end, `push` has found no complete unit.
    lines.extend(stream.finish(columns));
    lines
}

/// Whether the last line is complete and empty, so that it ends a paragraph.
fn ends_with_blank(text: &str) -> bool {
    let mut ends = text.rsplit('\n');
    let is_blank = |line: Option<&str>| line.is_some_and(|line| line.trim().is_empty());
    is_blank(ends.next()) && is_blank(ends.next())
}

/// End of the first complete unit of a text, if there is one.
fn first_end(text: &str) -> Option<usize> {
    // Leave out an unfinished line, because it could still change its kind: `#` into `#5`.
    let whole = &text[..=text.rfind('\n')?];
    let starts = unit_starts(whole);
    if let Some(second) = starts.get(1) {
        return Some(*second);
    }
    // Cut a unit that does not end. Otherwise the parser would read all of it again with each new line.
    if whole.len() > MAX_UNIT_BYTES {
        return Some(whole.len());
    }
    let is_whole = match first_block_end(whole)? {
        BlockEnd::Line => true,
        BlockEnd::BlankLine => ends_with_blank(whole),
        BlockEnd::NextBlock => false,
    };
    is_whole.then_some(whole.len())
}

/// What ends a block.
enum BlockEnd {
    /// The end of its line: a heading, a rule.
    Line,
    /// An empty line: a paragraph, a table.
    BlankLine,
    /// Only the start of the next block: a list, or code that is not fenced.
    NextBlock,
}

/// What ends the first block of a text; `None` if the text has no block.
fn first_block_end(text: &str) -> Option<BlockEnd> {
    match Parser::new_ext(text, OPTIONS).next()? {
        Event::Start(Tag::Heading { .. }) | Event::Rule => Some(BlockEnd::Line),
        Event::Start(Tag::List(_) | Tag::Item | Tag::CodeBlock(_)) => Some(BlockEnd::NextBlock),
        _ => Some(BlockEnd::BlankLine),
    }
}

/// Start positions of a text's units: its blocks, and the items of its lists.
fn unit_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut depth, mut list) = (0, false);
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        // Indentation before a block belongs to that block.
        let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
        match event {
            Event::Start(Tag::List(_)) if depth == 0 => {
                (depth, list) = (1, true);
            }
            Event::Start(tag) => {
                if depth == 0 || depth == 1 && list && matches!(tag, Tag::Item) {
                    starts.push(start);
                }
                depth += 1;
            }
            Event::End(_) => {
                depth -= 1;
                list &= depth > 0;
            }
            _ if depth == 0 => starts.push(start),
            _ => {}
        }
    }
    starts.dedup();
    starts
}

#[cfg(test)]
mod tests;
