//! Converts events into readable output: pure, with just enough state to avoid repetitions.

mod calls;
mod ends;
mod facts;
mod notices;
mod requests;
mod retries;
mod servers;

use std::collections::{HashMap, HashSet};

use crate::terminal::escape;
use crate::terminal::format::format_ms;
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::feedback;
use crate::ui::render::calls::{CallResult, Calls};
pub(crate) use crate::ui::render::calls::{HIDDEN_KEY, OpenCall};
use crate::ui::render::ends::{error, turn_completed};
use crate::ui::render::notices::plain_event;
pub(crate) use crate::ui::render::notices::untrusted_parts;
pub(crate) use crate::ui::render::requests::asked_summary;
use crate::ui::render::retries::Retries;
use crate::ui::render::servers::ServerLines;
use crate::ui::summary::one_line;
use types::event::{Envelope, Event};
use types::ids::{ItemId, PermissionId};
use types::message::{Block, split_own_command};
use types::session::{Item, ItemKind, ItemStatus, Subtype};
use types::time::Timestamp;
use types::todo::{Todo, TodoStatus};

/// Maximum lines of an input. If it is longer, its beginning and its end are shown.
const MAX_INPUT_LINES: usize = 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPiece {
    /// More streamed text: escaped, or unchanged for a pipe.
    Text(String),
    /// End of streamed text.
    Break,
    Line(StyledLine),
    /// Lines of which some are hidden.
    Folded {
        shown: Vec<StyledLine>,
        /// All lines, for the pager.
        full: Vec<StyledLine>,
    },
}

/// Converts a session's events into pieces, in order.
#[derive(Default)]
pub struct Transcript {
    /// Number of shown bytes of each unfinished message.
    shown: HashMap<ItemId, usize>,
    /// The answers of binary feedback that were shown, while none is chosen.
    candidates: Vec<ItemId>,
    /// Whether an answer was chosen. If so, the next message repeats it.
    is_chosen: bool,
    request_summaries: HashMap<PermissionId, String>,
    calls: Calls,
    /// Errors that were already shown. The result of the turn repeats them.
    errors: HashSet<String>,
    /// Whether to show user input.
    echo: bool,
    /// Whether the output goes into a pipe, so that streamed text is not escaped.
    is_raw: bool,
    /// Unfinished thinking text.
    thought: String,
    /// The time at which the thinking began.
    thought_since: Option<Timestamp>,
    /// The client that stopped the turn.
    stopped_by: Option<String>,
    retries: Retries,
    servers: ServerLines,
    /// Whether the running turn is a command whose answer was shown.
    is_command_answered: bool,
    /// The message whose thinking was shown.
    thinker: Option<ItemId>,
}

impl Transcript {
    /// Creates a transcript that also shows user input, for a client that attaches.
    pub fn with_input() -> Self {
        let mut transcript = Self { echo: true, ..Self::default() };
        transcript.calls.has_plans = true;
        transcript
    }

    /// Sets that the text of answers is not escaped, because a pipe receives it.
    pub fn with_raw_text(mut self) -> Self {
        self.is_raw = true;
        self
    }

    /// Sets that a key of the view shows hidden lines.
    pub fn with_pager(mut self) -> Self {
        (self.calls.has_pager, self.calls.has_plans) = (true, true);
        self
    }

    /// Sets the width of the terminal, for text that is laid out here.
    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.calls.columns = columns;
    }

    /// The state of the attempts to reach the model, while it fails; for a view that repaints it in place.
    pub(crate) fn retry_line(&self) -> Option<StyledLine> {
        self.retries.line()
    }

    /// The calls that have no result yet, in their order.
    pub(crate) fn open_calls(&self) -> &[OpenCall] {
        self.calls.open_calls()
    }

    /// The line of the reads that are not shown yet, because more reads may follow.
    pub(crate) fn reads_line(&self) -> Option<StyledLine> {
        self.calls.reads_line()
    }

    /// The output for an event. Thinking is always shown; a client that does not want it excludes it
    /// from the subscription.
    pub fn render_event(&mut self, envelope: &Envelope) -> Vec<OutputPiece> {
        if let Event::MessageThinkingDelta { text, .. } = &envelope.event {
            self.thought_since.get_or_insert(envelope.at_ms);
            self.thought.push_str(text);
            self.thinker = envelope.item_id;
            return lines(self.retries.finish(self.calls.has_pager).into_iter().collect());
        }
        let ms = self.thought_since.take().map(|since| envelope.at_ms.0.saturating_sub(since.0));
        let text = std::mem::take(&mut self.thought);
        let mut pieces = self.thought(&text, ms);
        if let Event::MessageCompleted { item, .. } = &envelope.event
            && self.thinker.take() != Some(item.item_id)
        {
            let thoughts = item.content.iter().filter_map(|block| match block {
                Block::Thinking { text, .. } => Some(text.as_str()),
                _ => None,
            });
            let thoughts: Vec<OutputPiece> = thoughts.flat_map(|text| self.thought(text, None)).collect();
            pieces.extend(thoughts);
        }
        let news = self.event(envelope);
        // Several attempts become one line, whose number is known once another event follows.
        let is_attempt = matches!(envelope.event, Event::Retry { .. } | Event::Heartbeat { .. });
        let is_news = news.iter().any(|piece| !matches!(piece, OutputPiece::Break))
            || matches!(envelope.event, Event::ToolRequested { .. });
        if is_news && !is_attempt {
            if let Event::Error { message, .. } = &envelope.event {
                self.retries.end_with(message);
            }
            pieces.extend(lines(self.retries.finish(self.calls.has_pager).into_iter().collect()));
        }
        pieces.extend(news);
        // Any other output ends a group of reads.
        let is_shown = |piece: &OutputPiece| !matches!(piece, OutputPiece::Break);
        if pieces.iter().any(is_shown) {
            let reads = self.calls.take_reads();
            if !reads.is_empty() {
                return std::iter::once(OutputPiece::Break).chain(reads).chain(pieces).collect();
            }
        }
        pieces
    }

    /// An input. If it is long and a key can show hidden lines, its middle is hidden.
    fn user_message(&self, full: Vec<StyledLine>) -> Vec<OutputPiece> {
        if !self.calls.has_pager || full.len() <= MAX_INPUT_LINES {
            return lines(full);
        }
        let ends = MAX_INPUT_LINES / 2;
        let hidden = full.len() - 2 * ends;
        let mut shown = full[..ends].to_vec();
        shown.push(StyledLine::new(Tone::Dim, format!("  + {hidden} lines · {HIDDEN_KEY}")));
        shown.extend_from_slice(&full[full.len() - ends..]);
        vec![OutputPiece::Break, OutputPiece::Folded { shown, full }]
    }

    /// Thinking text, in a style different from the answer. It is folded to one line if a key can show hidden
    /// lines.
    fn thought(&self, text: &str, ms: Option<i64>) -> Vec<OutputPiece> {
        let full = thought(text);
        let Some(first) = full.first() else { return Vec::new() };
        if !self.calls.has_pager {
            return lines(full);
        }
        let time = ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms >= 1_000);
        let time = time.map(|ms| format!(" {} s", ms / 1_000)).unwrap_or_default();
        let first = first.plain();
        let excerpt = cut(first.trim_start_matches([' ', '┊']).trim_matches('*'), 80);
        let more =
            if full.len() > 1 { format!(" · + {} · {HIDDEN_KEY}", full.len() - 1) } else { String::new() };
        let shown = vec![StyledLine::new(Tone::Dim, format!("┊ thought{time} · {excerpt}{more}"))];
        vec![OutputPiece::Break, OutputPiece::Folded { shown, full }]
    }

    fn text_piece(&self, text: &str) -> OutputPiece {
        OutputPiece::Text(if self.is_raw { text.to_owned() } else { escape::text(text).into_owned() })
    }

    fn event(&mut self, envelope: &Envelope) -> Vec<OutputPiece> {
        match &envelope.event {
            Event::MessageTextDelta { text, .. } => {
                if let Some(item) = envelope.item_id {
                    *self.shown.entry(item).or_default() += text.len();
                }
                vec![self.text_piece(text)]
            }
            Event::MessageCompleted { item, candidate: true, .. } => self.candidate(item),
            // The chosen answer was shown while it was written.
            Event::MessageCompleted { .. } if std::mem::take(&mut self.is_chosen) => Vec::new(),
            Event::MessageCompleted { item, superseded, .. } => self.message(item, *superseded),
            Event::McpStatus(status) => lines(self.servers.render(status)),
            Event::TodoUpdated { todos } => lines(todo_lines(todos)),
            Event::TurnAborting { .. } => {
                self.stopped_by = envelope.origin.as_ref().map(|origin| origin.client.clone());
                lines(plain_event(&envelope.event, self.echo))
            }
            Event::Error { kind, message, .. } => {
                self.errors.insert(message.clone());
                lines(vec![error(kind, message)])
            }
            Event::CommandCompleted { name, arguments, text } => {
                self.is_command_answered = true;
                let mut pieces = Vec::new();
                if self.echo {
                    let slash = if name == "#" { "" } else { "/" };
                    let line = format!("{slash}{name} {arguments}");
                    pieces.extend(lines(user_message_lines(line.trim_end(), &[])));
                }
                // The text is not Markdown, because its lines are laid out already.
                if self.calls.has_pager {
                    pieces.extend(lines(facts::answer_lines(name, text)));
                } else {
                    pieces.extend([OutputPiece::Break, self.text_piece(text), OutputPiece::Break]);
                }
                pieces
            }
            Event::TurnCompleted { result } => {
                let shown_errors = std::mem::take(&mut self.errors);
                let by = self.stopped_by.take();
                // The answer of a command was shown, and no work was done.
                let is_answered = std::mem::take(&mut self.is_command_answered);
                if is_answered && result.subtype == Subtype::Success && result.model_calls == 0 {
                    return Vec::new();
                }
                lines(turn_completed(result, &shown_errors, by.as_deref()))
            }
            Event::Retry { attempt, max, delay_ms, reason, .. } => {
                let line = self.retries.add(*attempt, *max, *delay_ms, reason);
                // A view with a pager repaints the line in its place. Elsewhere the first attempt is shown at once.
                lines(line.filter(|_| !self.calls.has_pager).into_iter().collect())
            }
            Event::Heartbeat { .. } if self.retries.is_open() => Vec::new(),
            Event::ToolRequested { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolCompleted { .. }
            | Event::FileChanged { .. }
            | Event::ToolBlocked { .. } => self.call_event(envelope),
            Event::FeedbackRequested { .. }
            | Event::FeedbackCompleted { .. }
            | Event::QuestionRequested { .. }
            | Event::QuestionResolved { .. }
            | Event::PermissionRequested { .. }
            | Event::PermissionResolved { .. }
            | Event::PermissionExpired { .. } => self.request_event(envelope),
            event => lines(plain_event(event, self.echo)),
        }
    }

    fn call_event(&mut self, envelope: &Envelope) -> Vec<OutputPiece> {
        match &envelope.event {
            Event::ToolRequested { call_id, tool, input, .. } => {
                self.calls.add_request(*call_id, tool, input);
                vec![OutputPiece::Break]
            }
            Event::ToolStarted { call_id, .. } => {
                self.calls.started(*call_id, envelope.at_ms);
                Vec::new()
            }
            Event::ToolProgress { call_id, text, .. } => {
                self.calls.set_progress(*call_id, text);
                Vec::new()
            }
            Event::ToolCompleted { call_id, tool, status, output, detail, duration_ms, .. } => {
                let result = CallResult {
                    tool,
                    status: *status,
                    output,
                    detail: detail.as_ref(),
                    duration_ms: *duration_ms,
                };
                with_break(self.calls.complete_call(*call_id, &result))
            }
            Event::FileChanged { call_id, change } => {
                self.calls.add_change(*call_id, change);
                Vec::new()
            }
            Event::ToolBlocked { call_id, blocked, output, duration_ms, .. } => {
                let what = match &blocked.what {
                    Some(what) => format!("{}: {}", blocked.by.name(), escape::line(what)),
                    None => blocked.by.name().into(),
                };
                let line = StyledLine::new(Tone::Dim, "  └ ")
                    .and(Tone::Warn, "stopped by the sandbox")
                    .and(Tone::Dim, format!(" ({}, {what}): {}", format_ms(*duration_ms), last_line(output)));
                lines(self.calls.add_note(*call_id, line).into_iter().collect())
            }
            _ => Vec::new(),
        }
    }

    /// The end of one of two answers.
    fn candidate(&mut self, item: &Item) -> Vec<OutputPiece> {
        let shown = self.shown.remove(&item.item_id).unwrap_or(0);
        let rest = item.text.as_deref().unwrap_or_default().get(shown..).unwrap_or_default();
        self.candidates.push(item.item_id);
        let mut pieces = vec![self.text_piece(rest), OutputPiece::Break];
        pieces.extend(lines(feedback::end_of_answer(self.candidates.len(), item)));
        pieces
    }

    fn message(&mut self, item: &Item, superseded: bool) -> Vec<OutputPiece> {
        let text = item.text.as_deref().unwrap_or_default();
        match item.kind {
            ItemKind::UserMessage if self.echo => {
                let full = match &item.command {
                    Some(command) => user_message_lines(&command.line(), &item.content),
                    None => user_message_lines(&shown_input(text), &item.content),
                };
                self.user_message(full)
            }
            ItemKind::Notice => {
                let text = "  (cut at the output limit: the model is asked to continue)";
                lines(vec![StyledLine::new(Tone::Dim, text)])
            }
            ItemKind::UserMessage
            | ItemKind::ToolCall
            | ItemKind::Plan
            | ItemKind::Compaction
            | ItemKind::Reasoning
            | ItemKind::Error => Vec::new(),
            ItemKind::AssistantMessage => {
                let shown = self.shown.remove(&item.item_id).unwrap_or(0);
                if superseded {
                    // Text that was not shown yet is dropped, because the retry repeats it. Shown text
                    // is marked as interrupted in place, also in output that contains only the answer.
                    let mark = "[interrupted, tried again: what follows takes its place]";
                    return match shown {
                        0 => Vec::new(),
                        _ => vec![OutputPiece::Break, OutputPiece::Text(mark.into()), OutputPiece::Break],
                    };
                }
                let rest = text.get(shown..).unwrap_or_default();
                let mut pieces = vec![self.text_piece(rest), OutputPiece::Break];
                if item.status == ItemStatus::Interrupted {
                    pieces
                        .push(OutputPiece::Line(StyledLine::new(Tone::Dim, "  (the answer was cut short)")));
                }
                pieces
            }
        }
    }
}

/// Thinking text, in a style different from the answer.
fn thought(text: &str) -> Vec<StyledLine> {
    let shown = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    shown.map(|line| StyledLine::new(Tone::Dim, format!("  ┊ {}", escape::line(line)))).collect()
}

fn with_break(pieces: Vec<OutputPiece>) -> Vec<OutputPiece> {
    if pieces.is_empty() { pieces } else { std::iter::once(OutputPiece::Break).chain(pieces).collect() }
}

fn lines(lines: Vec<StyledLine>) -> Vec<OutputPiece> {
    if lines.is_empty() {
        return Vec::new();
    }
    std::iter::once(OutputPiece::Break).chain(lines.into_iter().map(OutputPiece::Line)).collect()
}

/// The todo list, one line for each entry.
pub(crate) fn todo_lines(todos: &[Todo]) -> Vec<StyledLine> {
    if todos.is_empty() {
        return vec![StyledLine::new(Tone::Dim, "  └ the todo list is empty")];
    }
    let line = |todo: &Todo| {
        let tone = match todo.status {
            TodoStatus::Pending => Tone::Plain,
            TodoStatus::InProgress => Tone::Bold,
            TodoStatus::Completed => Tone::Dim,
        };
        StyledLine::new(tone, format!("    {} {}", todo.status.mark(), one_line(todo.display_text(), 200)))
    };
    todos.iter().map(line).collect()
}

/// The text of an input. A shell command that the user ran is one line, because its output was shown when it ended.
fn shown_input(text: &str) -> String {
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some((command, end, next)) = split_own_command(rest) {
        lines.push(format!("! {command} ({end})"));
        rest = next;
    }
    lines.extend((!rest.is_empty()).then(|| rest.to_owned()));
    lines.join("\n")
}

fn user_message_lines(text: &str, content: &[Block]) -> Vec<StyledLine> {
    let shown = escape::text(text);
    let mark = |n: usize| if n == 0 { "› " } else { "  " };
    let text_lines =
        shown.lines().enumerate().map(|(n, line)| StyledLine::new(Tone::User, format!("{}{line}", mark(n))));
    let attachment_lines = content.iter().filter_map(|block| match block {
        Block::Image(picture) => Some(("image", picture.name.as_deref())),
        Block::Document(document) => Some(("file", document.name.as_deref())),
        _ => None,
    });
    let attachment_lines = attachment_lines.map(|(what, name)| {
        StyledLine::new(Tone::Dim, format!("  [{what} {}]", escape::line(name.unwrap_or("without a name"))))
    });
    text_lines.chain(attachment_lines).collect()
}

/// The last line of a tool's output, which is the most useful one.
fn last_line(output: &str) -> String {
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    cut(&escape::line(last.unwrap_or_default()), 140)
}

#[cfg(test)]
mod tests;
