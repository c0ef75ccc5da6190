//! Tool calls as lines: one for a call, with the end of its output; one for several reads.

use std::collections::HashMap;

use serde_json::Value;

use crate::terminal::escape;
use crate::terminal::format::format_ms;
use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::diff::{Diff, FileName};
use crate::ui::markdown;
use crate::ui::render::OutputPiece;
use crate::ui::summary::{call_summary, one_line};
use types::ids::CallId;
use types::subagent::TASK;
use types::time::Timestamp;
use types::tool::{FileChange, MCP_PREFIX, ProposedPlan, ToolStatus};

/// Shown lines of output of a call that succeeded, and of a call that failed.
const OUTPUT_LINES: usize = 3;
const FAILED_LINES: usize = 8;

/// Shown lines of a diff. Further lines are hidden.
const DIFF_LINES: usize = 12;

/// Maximum lines of output that are kept for the pager.
const MAX_FULL_LINES: usize = 5_000;

/// Maximum columns of one line of output.
const OUTPUT_COLUMNS: usize = 400;

/// The text for the model if a command printed nothing.
const NO_OUTPUT: &str = "(no output)";

/// The key that shows hidden lines.
pub(crate) const HIDDEN_KEY: &str = "Ctrl-O";

/// A call that has no result yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(crate) call_id: CallId,
    /// The call in one line, escaped.
    pub(crate) summary: String,
    /// The time at which the call started to run; `None` while it waits.
    pub(crate) started_at: Option<Timestamp>,
    /// The last line of its output so far, escaped.
    pub(crate) progress: String,
    tool: String,
    input: Value,
    /// Lines about the answer to the call's permission request.
    notes: Vec<StyledLine>,
}

pub(super) struct CallResult<'a> {
    pub(super) tool: &'a str,
    pub(super) status: ToolStatus,
    pub(super) output: &'a str,
    pub(super) detail: Option<&'a Value>,
    pub(super) duration_ms: u64,
}

#[derive(Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
    /// Summaries of calls from their permission requests.
    summaries: HashMap<CallId, String>,
    /// Changes of files by calls that have no result yet.
    changes: HashMap<CallId, FileChange>,
    /// Summaries and durations in milliseconds of reads that have ended but are not shown yet. Several reads
    /// become one line.
    reads: Vec<(String, u64)>,
    /// Whether a key can show hidden lines.
    pub(super) has_pager: bool,
    /// Whether a completed plan is shown in full. A client that shows each request already needs no second copy.
    pub(super) has_plans: bool,
    /// Width of the terminal; 0 if it is not known.
    pub(super) columns: usize,
}

/// The width of Markdown if the width of the terminal is not known.
const DEFAULT_COLUMNS: usize = 80;

impl Calls {
    pub(super) fn open_calls(&self) -> &[OpenCall] {
        &self.open
    }

    pub(super) fn add_request(&mut self, call_id: CallId, tool: &str, input: &Value) {
        let summary = call_summary(tool, input);
        self.open.push(OpenCall {
            call_id,
            summary,
            started_at: None,
            progress: String::new(),
            tool: tool.to_owned(),
            input: input.clone(),
            notes: Vec::new(),
        });
    }

    /// Stores the summary of a call that waits for an answer. A client that attached after the call began has no other
    /// source for it.
    pub(super) fn remember_summary(&mut self, call_id: CallId, tool: &str, input: &Value) {
        self.summaries.insert(call_id, call_summary(tool, input));
    }

    fn find(&mut self, call_id: CallId) -> Option<&mut OpenCall> {
        self.open.iter_mut().find(|call| call.call_id == call_id)
    }

    pub(super) fn started(&mut self, call_id: CallId, time: Timestamp) {
        if let Some(call) = self.find(call_id) {
            call.started_at = Some(time);
        }
    }

    pub(super) fn set_progress(&mut self, call_id: CallId, text: &str) {
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        if let (Some(call), Some(line)) = (self.find(call_id), line) {
            call.progress = one_line(line.trim_end(), 200);
        }
    }

    /// Stores a line until the result of the call is shown. Returns the line if the call is not known.
    pub(super) fn add_note(&mut self, call_id: CallId, line: StyledLine) -> Option<StyledLine> {
        match self.find(call_id) {
            Some(call) => {
                call.notes.push(line);
                None
            }
            None => Some(line),
        }
    }

    /// Stores a change until the result of its call is shown, also of a call that began before the client attached.
    pub(super) fn add_change(&mut self, call_id: CallId, change: &FileChange) {
        self.changes.insert(call_id, change.clone());
    }

    /// Shows the end of a call. A read is stored instead, because several reads become one line.
    pub(super) fn complete_call(&mut self, call_id: CallId, result: &CallResult<'_>) -> Vec<OutputPiece> {
        let index = self.open.iter().position(|call| call.call_id == call_id);
        let call = index.map(|index| self.open.remove(index));
        let is_fine = result.status == ToolStatus::Completed;
        let notes = call.as_ref().map(|call| call.notes.clone()).unwrap_or_default();
        let change = self.changes.remove(&call_id);
        let change = change.as_ref();
        let requested = self.summaries.remove(&call_id);
        let summary = match (&call, requested, change) {
            (Some(call), ..) => call.summary.clone(),
            (None, Some(requested), _) => requested,
            (None, None, Some(change)) => {
                escape::line(&format!("{} {}", result.tool, change.path.display())).into_owned()
            }
            (None, None, None) => escape::line(result.tool).into_owned(),
        };
        // The todo list itself is shown, so its call is not.
        // The same is true of questions and their answers.
        if is_fine && matches!(result.tool, "TodoWrite" | "AskUser") {
            return Vec::new();
        }
        if is_fine && is_read(result.tool) && notes.is_empty() {
            self.reads.push((with_hits(summary, result), result.duration_ms));
            return Vec::new();
        }
        let mut pieces = self.take_reads();
        let mut head = vec![head_line(&summary, result, change)];
        head.extend(notes);
        if let Some(call) = call.as_ref().filter(|call| call.tool == ProposedPlan::TOOL) {
            pieces.push(self.plan(head, &call.input, is_fine));
            return pieces;
        }
        let arguments = call.as_ref().map(|call| long_arguments(&call.tool, &call.input)).unwrap_or_default();
        let (body, shown, is_end) = match change {
            Some(change) => (diff_lines(&change.diff), DIFF_LINES, false),
            None => (output_lines(result), shown_lines(result), true),
        };
        // In the pager, also show the arguments that do not fit into the call's line.
        if arguments.is_empty() {
            pieces.push(self.fold_rows(head, body, shown, is_end));
        } else {
            let (shown, _) = self.visible_rows(&head, &body, shown, is_end);
            let full =
                head.into_iter().chain(arguments).chain(indent_rows(body, body_lead(is_end))).collect();
            pieces.push(OutputPiece::Folded { shown, full });
        }
        pieces
    }

    /// A plan and its answer. A plan that was not approved is folded.
    fn plan(&self, head: Vec<StyledLine>, input: &Value, is_approved: bool) -> OutputPiece {
        let columns = if self.columns == 0 { DEFAULT_COLUMNS } else { self.columns };
        let text = escape::text(ProposedPlan::text(input)).into_owned();
        let plan = markdown::lines(&text, columns.saturating_sub(4).max(10));
        let plan = indent_rows(plan, "  │ ");
        let (mut shown, mut full) = (head.clone(), head);
        if is_approved && self.has_plans {
            shown.extend(plan.iter().cloned());
        } else if self.has_pager {
            let more = format!("  └ + {} lines of the plan · {HIDDEN_KEY}", plan.len());
            shown.push(StyledLine::new(Tone::Dim, more));
        }
        full.extend(plan);
        OutputPiece::Folded { shown, full }
    }

    /// The reads that were not shown yet, as one line.
    pub(super) fn take_reads(&mut self) -> Vec<OutputPiece> {
        let line = self.reads_line();
        self.reads.clear();
        line.into_iter().map(OutputPiece::Line).collect()
    }

    /// The line of the reads that were not shown yet.
    pub(super) fn reads_line(&self) -> Option<StyledLine> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (summary, _) in &self.reads {
            let (tool, rest) = summary.split_once(' ').unwrap_or((summary, ""));
            match groups.last_mut() {
                Some((last, rests)) if *last == tool => rests.push(rest),
                _ => groups.push((tool, vec![rest])),
            }
        }
        let ms = self.reads.iter().map(|(_, ms)| ms).sum();
        let mut line = StyledLine::new(Tone::Tool, "● ");
        for (nth, (tool, rests)) in groups.iter().enumerate() {
            let gap = if nth > 0 { " · " } else { "" };
            line = line
                .and(Tone::Dim, gap)
                .and(Tone::Tool, *tool)
                .and(Tone::Plain, format!(" {}", rests.join(", ")));
        }
        (!groups.is_empty()).then(|| with_time(line, ms))
    }

    /// Joins head and body. Hides the rows of the body beyond `most`.
    fn fold_rows(
        &self,
        head: Vec<StyledLine>,
        body: Vec<StyledLine>,
        most: usize,
        is_end: bool,
    ) -> OutputPiece {
        let (shown, is_cut) = self.visible_rows(&head, &body, most, is_end);
        let full: Vec<StyledLine> = head.into_iter().chain(indent_rows(body, body_lead(is_end))).collect();
        if is_cut {
            OutputPiece::Folded { shown, full }
        } else {
            OutputPiece::Folded { full: shown.clone(), shown }
        }
    }

    /// The shown lines, and whether some are missing.
    fn visible_rows(
        &self,
        head: &[StyledLine],
        body: &[StyledLine],
        most: usize,
        is_end: bool,
    ) -> (Vec<StyledLine>, bool) {
        let hidden = body.len().saturating_sub(most);
        let visible_rows = if is_end { &body[hidden..] } else { &body[..body.len() - hidden] };
        let mut shown = head.to_vec();
        shown.extend(indent_rows(visible_rows.to_vec(), body_lead(is_end)));
        // With `most` 0 the call shows no output at all, so no line reports the hidden lines.
        if hidden > 0 && most > 0 {
            let key = if self.has_pager { format!(" · {HIDDEN_KEY}") } else { String::new() };
            let s = if hidden == 1 { "" } else { "s" };
            shown.push(StyledLine::new(Tone::Dim, format!("  └ + {hidden} line{s}{key}")));
        } else if let (true, Some((_, lead))) =
            (is_end && !visible_rows.is_empty(), shown.last_mut().and_then(|l| l.0.first_mut()))
        {
            *lead = "  └ ".into();
        }
        (shown, hidden > 0)
    }
}

fn body_lead(is_output: bool) -> &'static str {
    if is_output { "  │ " } else { "  " }
}

fn indent_rows(body: Vec<StyledLine>, lead: &str) -> Vec<StyledLine> {
    body.into_iter().map(|line| line.with_lead(Tone::Dim, lead)).collect()
}

fn is_read(tool: &str) -> bool {
    matches!(tool, "Read" | "Grep" | "Glob" | "LS")
}

fn with_hits(summary: String, result: &CallResult<'_>) -> String {
    let name = if result.tool == "Grep" { "matches" } else { "count" };
    let count = result.detail.and_then(|detail| detail.get(name)).and_then(Value::as_u64);
    match count.filter(|_| matches!(result.tool, "Grep" | "Glob")) {
        Some(1) => format!("{summary} (1 hit)"),
        Some(count) => format!("{summary} ({count} hits)"),
        None => summary,
    }
}

/// The line with the call, how it ended, and its duration.
fn head_line(summary: &str, result: &CallResult<'_>, change: Option<&FileChange>) -> StyledLine {
    let exit_code = result.detail.and_then(|detail| detail.get("exit_code")).and_then(Value::as_i64);
    let (tone, end) = match (result.status, exit_code) {
        (ToolStatus::Completed, _) => (Tone::Tool, String::new()),
        (ToolStatus::Failed, Some(code)) if code != 0 => (Tone::Bad, format!("exit {code}")),
        (ToolStatus::Failed, _) => (Tone::Bad, "failed".into()),
        (ToolStatus::Denied, _) => (Tone::Warn, "denied".into()),
        (ToolStatus::Cancelled, _) => (Tone::Warn, "cancelled".into()),
        (ToolStatus::Unknown, _) => (Tone::Warn, "outcome unknown".into()),
    };
    let (tool, rest) = summary.split_once(' ').unwrap_or((summary, ""));
    let mut line =
        StyledLine::new(tone, "● ").and(Tone::Tool, tool).and(Tone::Plain, format!(" {rest}").trim_end());
    if let Some(change) = change {
        line = line
            .and(Tone::Good, format!(" +{}", change.added))
            .and(Tone::Bad, format!(" −{}", change.removed));
    }
    if !end.is_empty() {
        line = line.and(Tone::Dim, " · ").and(tone, end);
    }
    with_time(line, result.duration_ms)
}

fn with_time(line: StyledLine, ms: u64) -> StyledLine {
    // Show no short duration, because it does not matter to the user.
    if ms < 100 { line } else { line.and(Tone::Dim, format!("  {}", format_ms(ms))) }
}

/// The maximum number of output lines that are shown.
fn shown_lines(result: &CallResult<'_>) -> usize {
    let is_command =
        matches!(result.tool, "Bash" | "BashOutput" | TASK) || result.tool.starts_with(MCP_PREFIX);
    match result.status {
        ToolStatus::Failed => FAILED_LINES,
        ToolStatus::Completed if is_command => OUTPUT_LINES,
        ToolStatus::Unknown | ToolStatus::Cancelled => OUTPUT_LINES,
        // Show no text of a denial, because it is meant for the model.
        ToolStatus::Completed | ToolStatus::Denied => 0,
    }
}

fn output_lines(result: &CallResult<'_>) -> Vec<StyledLine> {
    if result.status == ToolStatus::Denied {
        return Vec::new();
    }
    let lines = result.output.lines().map(str::trim_end).skip_while(|line| line.is_empty());
    let mut lines: Vec<StyledLine> = lines
        .take(MAX_FULL_LINES)
        .map(|line| StyledLine::new(Tone::Plain, cut(&escape::line(line), OUTPUT_COLUMNS)))
        .collect();
    while lines.last().is_some_and(|line| line.plain().is_empty()) {
        lines.pop();
    }
    if matches!(lines.as_slice(), [only] if only.plain() == NO_OUTPUT) {
        lines.clear();
    }
    lines
}

/// The arguments of a call, if its line cannot show them completely.
fn long_arguments(tool: &str, input: &Value) -> Vec<StyledLine> {
    let command = input.get("command").and_then(Value::as_str).filter(|_| tool == "Bash");
    let text = match command {
        Some(command) if command.trim_end().contains('\n') || command.len() > 150 => command.to_owned(),
        None if input.to_string().len() > 150 && !is_edit(tool) => {
            serde_json::to_string_pretty(input).unwrap_or_default()
        }
        _ => return Vec::new(),
    };
    text.lines().map(|line| StyledLine::new(Tone::Dim, format!("    {}", escape::line(line)))).collect()
}

/// Whether a call is an edit, whose diff shows the same as its arguments.
fn is_edit(tool: &str) -> bool {
    matches!(tool, "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "ApplyPatch")
}

fn diff_lines(text: &str) -> Vec<StyledLine> {
    Diff::parse(text).lines(FileName::Hidden)
}
