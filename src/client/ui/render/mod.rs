//! Converts events into readable output: pure, with just enough state to avoid repetitions.

use std::collections::{HashMap, HashSet};

use crate::client::terminal::escape;
use crate::client::terminal::format::{all_tokens, cost, tokens, took};
use crate::client::terminal::style::{Line, Tone, cut};
use crate::client::ui::feedback;
use crate::client::ui::question;
use crate::client::ui::summary::{call_summary, cut_diff, one_line};
use crate::types::background::{BackgroundEnd, BackgroundState, BashId, KilledBy};
use crate::types::compaction::CompactStage;
use crate::types::event::{Envelope, Event, SettledBy};
use crate::types::ids::{CallId, ItemId, PermissionId};
use crate::types::mcp::{McpState, McpStatus};
use crate::types::message::{Block, input_line};
use crate::types::permission::{Decision, RequestKind, Scope};
use crate::types::session::{Item, ItemKind, ItemStatus, PermissionRequest, Subtype, TurnResult};
use crate::types::todo::{Todo, TodoStatus};
use crate::types::tool::ToolStatus;
use crate::types::turn_options::TurnOptions;

/// Maximum number of diff lines if the user does not have to approve the diff.
const DIFF_LINES: usize = 24;

/// One part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// More streamed text, escaped.
    Text(String),
    /// End of streamed text.
    Break,
    /// A whole line.
    Line(Line),
}

/// Converts a session's events into pieces, in order.
#[derive(Default)]
pub struct Transcript {
    /// Number of shown bytes of each unfinished message.
    shown: HashMap<ItemId, usize>,
    /// The answers of which none was chosen yet; they were shown.
    candidates: Vec<ItemId>,
    /// One of them was chosen: the next message repeats it.
    is_chosen: bool,
    /// Calls whose diff was shown with a request.
    diffs: HashSet<CallId>,
    asked: HashMap<PermissionId, String>,
    calls: HashMap<CallId, String>,
    /// Several calls run together, so their results name their call.
    among_others: bool,
    /// Errors that were already shown; the result repeats them.
    errors: HashSet<String>,
    /// Whether to show user input.
    echo: bool,
    /// Unfinished thinking text; only whole lines are shown.
    thought: String,
    /// The message whose thinking was shown.
    thinker: Option<ItemId>,
}

impl Transcript {
    /// For a client that attaches: user input is shown too.
    #[must_use]
    pub fn with_input() -> Self {
        Self { echo: true, ..Self::default() }
    }

    /// Records that the diff of this call was shown with its permission request.
    pub fn diff_was_shown(&mut self, call: CallId) {
        self.diffs.insert(call);
    }

    /// The output for an event. Thinking is always shown; a client that does not want it excludes it
    /// from the subscription.
    pub fn on(&mut self, envelope: &Envelope) -> Vec<Piece> {
        if let Event::MessageThinkingDelta { text, .. } = &envelope.event {
            self.thought.push_str(text);
            self.thinker = envelope.item_id;
            return Vec::new();
        }
        let mut pieces = lines(thought(&std::mem::take(&mut self.thought)));
        if let Event::MessageCompleted { item, .. } = &envelope.event
            && self.thinker.take() != Some(item.item_id)
        {
            let thoughts = item.content.iter().filter_map(|block| match block {
                Block::Thinking { text, .. } => Some(text.as_str()),
                _ => None,
            });
            pieces.extend(thoughts.flat_map(|text| lines(thought(text))));
        }
        pieces.extend(self.event(envelope));
        pieces
    }

    fn event(&mut self, envelope: &Envelope) -> Vec<Piece> {
        match &envelope.event {
            Event::MessageTextDelta { text, .. } => {
                if let Some(item) = envelope.item_id {
                    *self.shown.entry(item).or_default() += text.len();
                }
                vec![Piece::Text(escape::text(text).into_owned())]
            }
            Event::MessageCompleted { item, candidate: true, .. } => self.candidate(item),
            // The chosen answer was shown when it was written.
            Event::MessageCompleted { .. } if std::mem::take(&mut self.is_chosen) => Vec::new(),
            Event::MessageCompleted { item, superseded, .. } => self.message(item, *superseded),
            Event::FeedbackRequested { request_id, .. } => lines(vec![feedback::shown(*request_id)]),
            Event::FeedbackCompleted { by, .. } => {
                let number = self.candidates.iter().position(|known| Some(*known) == envelope.item_id);
                let origin = envelope.origin.as_ref().map(|origin| origin.client.as_str());
                self.is_chosen = number.is_some();
                self.candidates.clear();
                lines(vec![feedback::chosen(number.map(|number| number + 1), *by, origin)])
            }
            Event::QuestionRequested { question } => lines(question::shown(question)),
            Event::QuestionResolved { kind, choice, answers, by, .. } => {
                let how = match by {
                    SettledBy::Submit => "continued by a further input".to_string(),
                    SettledBy::Abort => "no longer asked".into(),
                    SettledBy::Answer
                    | SettledBy::Timeout
                    | SettledBy::NoApprover
                    | SettledBy::Rule
                    | SettledBy::Mode => match choice {
                        Some(choice) => choice.name().into(),
                        None => answers.iter().map(question::answer_text).collect::<Vec<_>>().join(" · "),
                    },
                };
                let who = envelope.origin.as_ref().map(|o| format!(" by {}", escape::line(&o.client)));
                let what = kind.name().replace('_', " ");
                lines(vec![
                    Line::new(Tone::Dim, format!("  └ {what}: "))
                        .and(Tone::Plain, how)
                        .and(Tone::Dim, who.unwrap_or_default()),
                ])
            }
            Event::ToolRequested { call_id, tool, input, .. } => {
                let summary = call_summary(tool, input);
                let line = tool_line("●", &summary);
                self.calls.insert(*call_id, summary);
                self.among_others = self.calls.len() > 1;
                vec![Piece::Break, Piece::Line(line)]
            }
            Event::ToolCompleted { call_id, tool, status, output, duration_ms, .. } => {
                let summary = self.calls.remove(call_id).unwrap_or_else(|| escape::line(tool).into_owned());
                let what = if self.among_others { cut(&summary, 60) + " " } else { String::new() };
                let last = match (tool.as_str(), status) {
                    (_, ToolStatus::Failed) => last_lines(output, 2),
                    ("Bash", _) | (_, ToolStatus::Denied) => last_lines(output, 1),
                    _ => String::new(),
                };
                lines(vec![completed(&what, *status, &last, *duration_ms)])
            }
            Event::FileChanged { call_id, change } => {
                let path = change.path.display().to_string();
                let mut shown = vec![
                    Line::new(Tone::Dim, "  └ changed ")
                        .and(Tone::Plain, escape::line(&path))
                        .and(Tone::Good, format!(" +{}", change.added))
                        .and(Tone::Bad, format!(" −{}", change.removed)),
                ];
                if !self.diffs.remove(call_id) {
                    shown.extend(cut_diff(&change.diff, DIFF_LINES));
                }
                lines(shown)
            }
            Event::ToolBlocked { blocked, output, duration_ms, .. } => {
                let what = match &blocked.what {
                    Some(what) => format!("{}: {}", blocked.by.name(), escape::line(what)),
                    None => blocked.by.name().into(),
                };
                lines(vec![
                    Line::new(Tone::Dim, "  └ ").and(Tone::Warn, "stopped by the sandbox").and(
                        Tone::Dim,
                        format!(" ({}, {what}): {}", took(*duration_ms), last_lines(output, 1)),
                    ),
                ])
            }
            Event::McpStatus(McpStatus { server, state: McpState::Failed | McpState::Untrusted, error }) => {
                let why = error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                let text = format!("MCP server {server} is not available{why}");
                lines(vec![Line::new(Tone::Warn, escape::line(&text).into_owned())])
            }
            Event::TodoUpdated { todos } => lines(todo_lines(todos)),
            Event::PermissionRequested { request, .. } => {
                let summary = asked_summary(request);
                self.asked.insert(request.request_id, summary);
                Vec::new()
            }
            Event::PermissionResolved { request_id, .. } => {
                let what = self.asked.remove(request_id).unwrap_or_default();
                let who = envelope.origin.as_ref().map(|o| o.client.as_str());
                lines(vec![resolved(&what, &envelope.event, who)])
            }
            Event::PermissionExpired { request_id, on_timeout, .. } => {
                let what = self.asked.get(request_id).cloned().unwrap_or_default();
                lines(vec![
                    Line::new(Tone::Dim, format!("  └ {} ", cut(&what, 60)))
                        .and(Tone::Warn, "no user answered in time: ")
                        .and(Tone::Plain, on_timeout.name().replace('_', " ")),
                ])
            }
            Event::Error { kind, message, .. } => {
                self.errors.insert(message.clone());
                lines(vec![error(kind, message)])
            }
            Event::CommandCompleted { name, arguments, text } => {
                let mut pieces = Vec::new();
                if self.echo {
                    let slash = if name == "#" { "" } else { "/" };
                    let line = format!("{slash}{name} {arguments}");
                    pieces.extend(lines(said_by_user(line.trim_end(), &[])));
                }
                pieces.extend([Piece::Break, Piece::Text(escape::text(text).into_owned()), Piece::Break]);
                pieces
            }
            Event::TurnCompleted { result } => {
                let said = std::mem::take(&mut self.errors);
                lines(turn_completed(result, &said))
            }
            event => lines(plain_event(event, self.echo)),
        }
    }

    /// The end of one of two answers.
    fn candidate(&mut self, item: &Item) -> Vec<Piece> {
        let shown = self.shown.remove(&item.item_id).unwrap_or(0);
        let rest = item.text.as_deref().unwrap_or_default().get(shown..).unwrap_or_default();
        self.candidates.push(item.item_id);
        let mut pieces = vec![Piece::Text(escape::text(rest).into_owned()), Piece::Break];
        pieces.extend(lines(feedback::end_of_answer(self.candidates.len(), item)));
        pieces
    }

    fn message(&mut self, item: &Item, superseded: bool) -> Vec<Piece> {
        let text = item.text.as_deref().unwrap_or_default();
        match item.kind {
            ItemKind::UserMessage if self.echo => match &item.command {
                Some(command) => lines(said_by_user(&command.line(), &item.content)),
                None => lines(said_by_user(text, &item.content)),
            },
            ItemKind::Notice => {
                let text = "  (cut at the output limit: the model is asked to go on)";
                lines(vec![Line::new(Tone::Dim, text)])
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
                        0 => lines(vec![Line::new(Tone::Warn, format!("  {mark}"))]),
                        _ => vec![Piece::Break, Piece::Text(mark.into()), Piece::Break],
                    };
                }
                let rest = text.get(shown..).unwrap_or_default();
                let mut pieces = vec![Piece::Text(escape::text(rest).into_owned()), Piece::Break];
                if item.status == ItemStatus::Interrupted {
                    pieces.push(Piece::Line(Line::new(Tone::Dim, "  (the answer was cut short)")));
                }
                pieces
            }
        }
    }
}

/// Thinking text, visibly different from the answer.
fn thought(text: &str) -> Vec<Line> {
    let shown = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    shown.map(|line| Line::new(Tone::Dim, format!("  ┊ {}", escape::line(line)))).collect()
}

fn lines(lines: Vec<Line>) -> Vec<Piece> {
    if lines.is_empty() {
        return Vec::new();
    }
    std::iter::once(Piece::Break).chain(lines.into_iter().map(Piece::Line)).collect()
}

/// The request in one line.
pub(in crate::client) fn asked_summary(request: &PermissionRequest) -> String {
    let summary = call_summary(&request.tool, &request.input);
    match request.kind {
        RequestKind::Tool => summary,
        RequestKind::Plan => "carry out the plan".into(),
        RequestKind::Sandbox => format!("again, OUTSIDE THE SANDBOX: {summary}"),
    }
}

/// The todo list, one line for each entry.
pub(in crate::client) fn todo_lines(todos: &[Todo]) -> Vec<Line> {
    if todos.is_empty() {
        return vec![Line::new(Tone::Dim, "  └ the todo list is empty")];
    }
    let line = |todo: &Todo| {
        let tone = match todo.status {
            TodoStatus::Pending => Tone::Plain,
            TodoStatus::InProgress => Tone::Bold,
            TodoStatus::Completed => Tone::Dim,
        };
        Line::new(tone, format!("    {} {}", todo.status.mark(), one_line(todo.shown(), 200)))
    };
    todos.iter().map(line).collect()
}

fn tool_line(mark: &str, summary: &str) -> Line {
    let (tool, rest) = summary.split_once(' ').unwrap_or((summary, ""));
    Line::new(Tone::Tool, format!("{mark} {tool}")).and(Tone::Plain, format!(" {rest}"))
}

/// Changed options as text, one for each.
fn options_text(options: &TurnOptions) -> Vec<String> {
    let mut news = Vec::new();
    news.extend(options.model.as_ref().map(|model| format!("model: {}", escape::line(model))));
    news.extend(options.mode.as_ref().map(|mode| format!("mode: {}", mode.name())));
    news.extend(options.budgets.as_ref().map(|_| "new limits".to_string()));
    news.extend(options.tools.as_ref().map(|_| "other tools".to_string()));
    let dirs = options.additional_dirs.as_ref();
    news.extend(dirs.map(|dirs| format!("also in: {}", escape::line(&dirs.join(", ")))));
    news.extend(options.thinking.map(|thinking| format!("thinking: {thinking}")));
    news.extend(options.sampling.temperature.map(|it| format!("temperature: {it}")));
    news.extend(options.sampling.top_p.map(|it| format!("top_p: {it}")));
    news.extend(options.safe_mode.map(|is_on| format!("safe mode: {}", if is_on { "on" } else { "off" })));
    let prompts = options.system_prompt.as_ref().or(options.append_system_prompt.as_ref());
    news.extend(prompts.map(|_| "another system prompt".to_string()));
    news.extend(options.fallback_model.as_ref().map(|model| format!("fallback: {}", escape::line(model))));
    news.extend(options.stop.as_ref().map(|_| "other stop sequences".to_string()));
    news.extend(options.metadata.as_ref().map(|_| "other metadata".to_string()));
    news.extend(options.output_schema.as_ref().map(|_| "another output schema".to_string()));
    news
}

/// Events that need no state.
fn plain_event(event: &Event, echo: bool) -> Vec<Line> {
    let dim = |text: String| vec![Line::new(Tone::Dim, text)];
    let warn = |text: String| vec![Line::new(Tone::Warn, format!("  {text}"))];
    match event {
        Event::SessionUpdated { title, titled_by: _, options } => {
            let mut news = Vec::new();
            news.extend(title.as_ref().map(|t| format!("title: {}", escape::line(t))));
            news.extend(options_text(options));
            // A client that follows a turn sees changes of its settings; it knows the title.
            if echo || options.mode.is_some() { dim(format!("  {}", news.join(", "))) } else { Vec::new() }
        }
        Event::SessionEnded { reason } => {
            vec![Line::new(Tone::Warn, format!("the session was ended: {}", escape::line(reason)))]
        }
        Event::WorkspaceTrustRequired { parts, .. } => dim(format!(
            "  this folder is not trusted (agentctl trust): left out are {}",
            escape::line(&parts.join(", "))
        )),
        Event::TurnSteered { input } if echo => {
            dim(format!("  for the running turn: {}", one_line(&input_line(input), 80)))
        }
        Event::TurnParked {} => dim("  the daemon stops; the turn goes on with the next".into()),
        Event::TurnResumed { delay_ms: 0, .. } => dim("  the daemon was restarted; the turn goes on".into()),
        Event::TurnResumed { delay_ms, resumes } => dim(format!(
            "  the daemon was restarted; the turn goes on in {} (resume {resumes})",
            took(*delay_ms)
        )),
        Event::HistoryRepaired { changes, .. } => {
            dim(format!("  the record was repaired: {}", escape::line(&changes.join("; "))))
        }
        Event::TurnAborting { subtype: Subtype::PermissionDenied, .. } => dim("  the turn ends…".into()),
        Event::TurnAborting { .. } => dim("  aborting…".into()),
        Event::PermissionRuleAdded { kind, rule } => {
            dim(format!("  rule added: {} {}", kind.name(), escape::line(rule)))
        }
        Event::PermissionRuleRemoved { kind, rule } => {
            dim(format!("  rule taken back: {} {}", kind.name(), escape::line(rule)))
        }
        Event::Retry { attempt, max, delay_ms, reason, .. } => warn(format!(
            "{}: attempt {} failed, next {}",
            one_line(reason, 160),
            attempt_of(*attempt, *max),
            if *delay_ms == 0 { "at once".to_string() } else { format!("in {}", took(*delay_ms)) },
        )),
        Event::ToolSummary { text, .. } => dim(format!("  {}", one_line(text, 160))),
        Event::BudgetWarning { budget, used, limit } => {
            warn(format!("{} of {limit} {} are used", used, budget.name()))
        }
        Event::Heartbeat { reason, attempt, remaining_ms } => dim(format!(
            "  still waiting after attempt {attempt} ({}): {} left",
            one_line(reason, 100),
            took(*remaining_ms)
        )),
        Event::StreamIdle { silent_ms } => {
            warn(format!("the model has been silent for {}", took(*silent_ms)))
        }
        Event::ModelSwitched { from, to, reason, .. } => warn(format!(
            "the turn goes on with {} instead of {}: {}",
            escape::line(to),
            escape::line(from),
            reason.words()
        )),
        Event::ToolBackground { bash_id, command: Some(command), end: None, .. } => {
            dim(format!("  {bash_id} runs in the background: {}", one_line(command, 120)))
        }
        Event::ToolBackground { bash_id, state, end: Some(end), .. } => {
            vec![background_ended(*bash_id, *state, end)]
        }
        Event::CompactStarted { stage: CompactStage::Autocompact, .. } => {
            dim("  the conversation is summarised, to fit the context window…".into())
        }
        Event::CompactCompleted { stage: CompactStage::ToolResults, edit: None, .. } => Vec::new(),
        Event::CompactCompleted { error: Some(error), .. } => {
            warn(format!("the conversation was not compacted: {}", escape::line(error)))
        }
        Event::CompactCompleted { stage, tokens_before, tokens_after, .. } => dim(format!(
            "  ── context compacted ({}): {} → {} tokens ──",
            stage.name(),
            tokens(*tokens_before),
            tokens(*tokens_after)
        )),
        Event::SessionCleared {} => dim("  ─ the conversation starts again ─".into()),
        Event::TurnOutputRejected { attempt, max, errors, .. } => warn(format!(
            "the answer does not satisfy the schema ({}); correction {attempt} of {max}",
            one_line(&errors.join("; "), 160)
        )),
        Event::MediaWithheld { count, reason } => warn(format!(
            "the provider refused what it was shown: {count} pictures and documents are told of in words from now on ({})",
            one_line(reason, 160)
        )),
        Event::Notice { text, .. } => dim(format!("  {}", escape::line(text))),
        _ => Vec::new(),
    }
}

/// An attempt and the maximum number of attempts; 0 means no limit.
fn attempt_of(attempt: u32, max: u32) -> String {
    if max == 0 { attempt.to_string() } else { format!("{attempt} of {max}") }
}

/// How a background task ended.
pub(in crate::client) fn background_ended(
    bash_id: BashId,
    state: BackgroundState,
    end: &BackgroundEnd,
) -> Line {
    let how = match (state, end.killed_by, end.exit_code) {
        (BackgroundState::Exited, _, Some(0)) => return Line::new(Tone::Dim, format!("  {bash_id} ended")),
        (BackgroundState::Exited, _, Some(code)) => format!("ended with exit code {code}"),
        (BackgroundState::Exited, _, None) | (BackgroundState::Running, ..) => "ended".into(),
        (BackgroundState::Killed, Some(KilledBy::Tool), _) => "was ended by the model".into(),
        (BackgroundState::Killed, Some(KilledBy::Abort), _) => "was aborted".into(),
        (BackgroundState::Killed, Some(KilledBy::Shutdown), _) => "was ended: the daemon stopped".into(),
        (BackgroundState::Killed, Some(KilledBy::Session) | None, _) => "was ended".into(),
        (BackgroundState::TimedOut, ..) => "was ended: its time was over".into(),
        (BackgroundState::Lost, ..) => "was lost: the daemon died".into(),
    };
    Line::new(Tone::Warn, format!("  {bash_id} {how}"))
}

fn error(kind: &str, message: &str) -> Line {
    Line::new(Tone::Bad, format!("  {}: {}", escape::line(kind), escape::line(message)))
}

/// Errors in `said` were shown already and are not repeated.
fn turn_completed(result: &TurnResult, said: &HashSet<String>) -> Vec<Line> {
    let news = result.errors.iter().filter(|e| !said.contains(&e.message));
    let mut shown: Vec<Line> = news.map(|e| error(&e.kind, &e.message)).collect();
    let good = result.subtype.name() == "success";
    let word = if good { "done".to_string() } else { result.subtype.name().replace('_', " ") };
    let calls = result.model_calls;
    shown.push(Line::new(if good { Tone::Dim } else { Tone::Warn }, format!("─ {word}")).and(
        Tone::Dim,
        format!(
            " · {} · {calls} model call{} · {} tokens · {}",
            took(result.duration_ms),
            if calls == 1 { "" } else { "s" },
            tokens(all_tokens(&result.usage)),
            cost(result.cost_usd_micros, result.cost_at_least_usd_micros),
        ),
    ));
    shown
}

fn said_by_user(text: &str, content: &[Block]) -> Vec<Line> {
    let shown = escape::text(text);
    let mark = |n: usize| if n == 0 { "› " } else { "  " };
    let said = shown.lines().enumerate().map(|(n, line)| Line::new(Tone::User, format!("{}{line}", mark(n))));
    let given = content.iter().filter_map(|block| match block {
        Block::Image(picture) => Some(("image", picture.name.as_deref())),
        Block::Document(document) => Some(("file", document.name.as_deref())),
        _ => None,
    });
    let given = given.map(|(what, name)| {
        Line::new(Tone::Dim, format!("  [{what} {}]", escape::line(name.unwrap_or("without a name"))))
    });
    said.chain(given).collect()
}

fn completed(what: &str, status: ToolStatus, said: &str, ms: u64) -> Line {
    let (tone, word) = match status {
        ToolStatus::Completed => (Tone::Good, "done"),
        ToolStatus::Failed => (Tone::Bad, "failed"),
        ToolStatus::Denied => (Tone::Warn, "denied"),
        ToolStatus::Cancelled => (Tone::Warn, "cancelled"),
        ToolStatus::Unknown => (Tone::Warn, "outcome unknown"),
    };
    let line = Line::new(Tone::Dim, format!("  └ {what}")).and(tone, word);
    let line = if ms > 0 { line.and(Tone::Dim, format!(" ({})", took(ms))) } else { line };
    if said.is_empty() { line } else { line.and(Tone::Dim, format!(": {said}")) }
}

/// The end of a tool's output, which is the most useful part, in one line.
fn last_lines(output: &str, count: usize) -> String {
    let said: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let end = &said[said.len().saturating_sub(count)..];
    cut(&escape::line(&end.join(" · ")), 140)
}

fn resolved(what: &str, event: &Event, who: Option<&str>) -> Line {
    let mut line = Line::new(Tone::Dim, format!("  └ {} ", cut(what, 60)));
    let Event::PermissionResolved { decision, scope, grant, feedback, by, rule, updated_input, stop, .. } =
        event
    else {
        return line;
    };
    let granted = escape::line(grant.as_deref().unwrap_or("this call")).into_owned();
    let (tone, word) = match (by, decision, scope) {
        (SettledBy::Abort | SettledBy::Submit, ..) => (Tone::Dim, "no longer asked".to_string()),
        (_, Decision::Deny, _) if *stop => (Tone::Warn, "denied, and the turn ended".into()),
        (_, Decision::Deny, _) => (Tone::Warn, "denied".into()),
        (SettledBy::Rule | SettledBy::Mode, ..) => {
            (Tone::Good, format!("allowed by {}", one_line(rule.as_deref().unwrap_or("a rule"), 80)))
        }
        _ if updated_input.is_some() => (Tone::Good, "allowed once, changed".into()),
        (_, Decision::Allow, Scope::Once) => (Tone::Good, "allowed once".into()),
        (_, Decision::Allow, Scope::Session) => (Tone::Good, format!("allowed for the session: {granted}")),
        (_, Decision::Allow, Scope::Project) => (Tone::Good, format!("allowed in this folder: {granted}")),
    };
    line = line.and(tone, word);
    if matches!(by, SettledBy::Timeout | SettledBy::NoApprover) {
        line = line.and(Tone::Dim, " for want of an answer");
    }
    if let Some(who) = who {
        line = line.and(Tone::Dim, format!(" by {}", escape::line(who)));
    }
    if let Some(input) = updated_input {
        line = line.and(Tone::Dim, format!(": {}", one_line(&input.to_string(), 120)));
    }
    if let Some(words) = feedback {
        line = line.and(Tone::Dim, format!(": {}", one_line(words, 120)));
    }
    line
}

#[cfg(test)]
mod tests;
