//! The conversation above the view: its lines, and the text that the model has not finished.

use crate::terminal::style::{StyledLine, Tone};
use crate::ui::markdown::MarkdownStream;
use crate::ui::render::{OutputPiece, Transcript};
use types::ids::Seq;

/// Lines that the pager keeps; older ones are in the terminal's scrollback.
const MAX_RECORD_LINES: usize = 50_000;

pub(in crate::ui::attach) struct Scrollback {
    pub(super) transcript: Transcript,
    /// Completed lines that have not been written to the terminal yet.
    pub(super) history: Vec<StyledLine>,
    /// The lines above a new conversation, while they are incomplete. The history is not written before they
    /// are complete.
    pub(super) start_lines: Vec<StyledLine>,
    /// All lines with nothing hidden, for the pager.
    pub(super) record: Vec<StyledLine>,
    unfinished: UnfinishedText,
    /// The last answer of the model, as it was written.
    pub(super) last_answer: Option<String>,
    /// Events up to this seq are omitted, because the conversation is long. 0 if none are omitted.
    pub(in crate::ui::attach) left_out: Seq,
}

/// The text that the model has not finished.
enum UnfinishedText {
    Markdown(Box<MarkdownStream>),
    /// The last line of a text that is shown as it was written.
    Raw(String),
}

impl Scrollback {
    pub(super) fn new(transcript: Transcript, is_raw: bool) -> Self {
        let unfinished = match is_raw {
            true => UnfinishedText::Raw(String::new()),
            false => UnfinishedText::Markdown(Box::default()),
        };
        Self {
            transcript,
            history: Vec::new(),
            start_lines: Vec::new(),
            record: Vec::new(),
            unfinished,
            last_answer: None,
            left_out: 0,
        }
    }

    /// The rows of the model's unfinished text.
    pub(super) fn tail(&self, columns: usize) -> Vec<StyledLine> {
        match &self.unfinished {
            UnfinishedText::Markdown(text) => text.frame(columns),
            UnfinishedText::Raw(text) if text.is_empty() => Vec::new(),
            UnfinishedText::Raw(text) => StyledLine::new(Tone::Plain, text.as_str()).wrap(columns),
        }
    }

    /// Appends the parts of a rendered event.
    pub(super) fn push_pieces(&mut self, pieces: Vec<OutputPiece>, columns: usize) {
        for piece in pieces {
            match piece {
                OutputPiece::Text(text) => self.push_text(&text, columns),
                OutputPiece::Break => self.finish_text(columns),
                OutputPiece::Line(line) => self.push_line(&line, columns),
                OutputPiece::Folded { shown, full } => {
                    self.finish_text(columns);
                    self.record_lines(full);
                    // Do not wrap diffs and output between words.
                    self.history.extend(shown.iter().flat_map(|line| line.hard_wrap(columns)));
                }
            }
        }
    }

    /// Appends a line, wrapped to the terminal.
    pub(super) fn push_line(&mut self, line: &StyledLine, columns: usize) {
        self.finish_text(columns);
        self.record_lines([line.clone()]);
        self.history.extend(line.wrap(columns));
    }

    pub(super) fn record_lines(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        self.record.extend(lines);
        if self.record.len() > MAX_RECORD_LINES {
            self.record.drain(..MAX_RECORD_LINES / 5);
        }
    }

    fn push_text(&mut self, text: &str, columns: usize) {
        let lines = match &mut self.unfinished {
            UnfinishedText::Markdown(markdown) => markdown.push(text, columns),
            UnfinishedText::Raw(unfinished) => {
                unfinished.push_str(text);
                let end = unfinished.rfind('\n').map_or(0, |end| end + 1);
                let complete: String = unfinished.drain(..end).collect();
                complete.lines().map(|line| StyledLine::new(Tone::Plain, line)).collect()
            }
        };
        self.record_lines(lines.iter().cloned());
        self.history.extend(lines);
    }

    pub(super) fn finish_text(&mut self, columns: usize) {
        let lines = match &mut self.unfinished {
            UnfinishedText::Markdown(markdown) => markdown.finish(columns),
            UnfinishedText::Raw(text) if text.is_empty() => Vec::new(),
            UnfinishedText::Raw(text) => vec![StyledLine::new(Tone::Plain, std::mem::take(text))],
        };
        self.record_lines(lines.iter().cloned());
        self.history.extend(lines);
    }

    /// Completed rows for the terminal.
    pub(super) fn take_history(&mut self) -> Vec<StyledLine> {
        if self.start_lines.is_empty() { std::mem::take(&mut self.history) } else { Vec::new() }
    }

    /// Moves the lines above a new conversation into the history: the `complete` lines if given, otherwise
    /// the shown ones.
    pub(super) fn finish_start_lines(&mut self, complete: Option<Vec<StyledLine>>, columns: usize) {
        let shown = std::mem::take(&mut self.start_lines);
        if shown.is_empty() {
            return;
        }
        let rows = complete.unwrap_or(shown).into_iter().flat_map(|line| line.wrap(columns));
        self.history.splice(0..0, rows);
    }

    /// The rows above a new conversation, while they are incomplete.
    pub(super) fn start_rows(&self, columns: usize) -> Vec<StyledLine> {
        self.start_lines.iter().flat_map(|line| line.wrap(columns)).collect()
    }
}
