//! State and logic of the conversation: events and keys in, history lines and effects out. Pure.

mod completion;
mod composer;
mod copy;
mod effect;
mod events;
mod keys;
mod list_keys;
mod model_list;
mod overlay;
mod progress;
mod question_keys;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::connection::remote::Machine;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
pub(super) use crate::ui::attach::app::completion::{Menu, MenuEntry};
pub(super) use crate::ui::attach::app::effect::{Effect, OlderInputs, Point, SecretFiles, Submission};
pub(super) use crate::ui::attach::app::events::{own_text, own_words};
use crate::ui::attach::app::overlay::Overlay;
pub(super) use crate::ui::attach::app::progress::{Activity, Progress};
use crate::ui::editor::Editor;
use crate::ui::markdown::MarkdownStream;
use crate::ui::pager::Pager;
use crate::ui::question_list::OptionCursor;
use crate::ui::render::{OpenCall, Transcript};
use crate::ui::request_list::{Choice, RequestList};
use crate::ui::request_timing::{Pending, Phase, RequestTiming};
use types::ids::{ItemId, PermissionId, QuestionId, Seq, SessionId, TurnId};
use types::permission::Mode;
use types::question::{Question, UserAnswer};
use types::session::{SessionState, SessionView};
use types::slash_command::CommandView;
use types::time::Timestamp;
use types::todo::Todo;

/// Lines that the pager keeps; older ones are in the terminal's scrollback.
const MAX_RECORD_LINES: usize = 50_000;

/// A user who pressed a key within this time is assumed to look at the terminal.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(10);

/// Display options and limits of the client, independent of the session.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientSetup {
    /// `ClientPaths::flags`, for undo commands.
    pub(crate) flags: Vec<String>,
    /// Whether Markdown is shown as it was written.
    pub(crate) is_raw: bool,
    /// Whether words replace symbols, and nothing is animated.
    pub(crate) is_plain: bool,
    /// If set, the program ends with this turn and takes no other input.
    pub(crate) one_turn: Option<TurnId>,
    /// Whether the session does not exist yet. The first input creates it.
    pub(crate) is_new: bool,
    /// Where the session's files are.
    pub(crate) machine: Machine,
}

/// Words that are sent with an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerFeedback {
    pub(super) request: PermissionId,
    pub(super) choice: Choice,
}

pub(super) struct App {
    pub(super) session: SessionView,
    pub(super) setup: ClientSetup,
    transcript: Transcript,
    /// Completed lines that have not been written to the scrollback yet.
    history: Vec<StyledLine>,
    /// The lines above a new conversation, while they are incomplete. The history is not written before they
    /// are complete.
    start_lines: Vec<StyledLine>,
    /// All lines with nothing hidden, for the pager.
    record: Vec<StyledLine>,
    /// The unfinished text of the model.
    text: MarkdownStream,
    /// The unfinished line, if Markdown is shown as it was written.
    raw_text: String,
    /// Size of the terminal.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The wall clock at the last update.
    pub(super) clock: Timestamp,
    pub(super) progress: Progress,
    pub(super) todos: Vec<Todo>,
    pub(super) requests: RequestList,
    /// Time at which the open request or question was made.
    pub(super) waits_since: Option<Timestamp>,
    /// Names of the agents that work as sub-agents, by session.
    agents: HashMap<SessionId, String>,
    /// Open questions, for example about a call with an unknown outcome after a restart.
    pub(super) questions: std::collections::VecDeque<Question>,
    /// Answers to the first questions, while the model waits for the answers to all of its questions.
    pub(super) answers: Vec<UserAnswer>,
    /// The cursor in the options of the question, and the marked options.
    pub(super) options: OptionCursor,
    /// The open choice between two answers of the model.
    pub(super) feedback: Option<(QuestionId, Vec<ItemId>)>,
    pub(super) editor: Editor,
    /// Set while the user types words that are sent with this answer.
    pub(super) feedback_target: Option<AnswerFeedback>,
    /// The request whose arguments are being edited.
    pub(super) editing: Option<PermissionId>,
    /// Inputs that wait for the turn to end.
    pub(super) queue: Vec<(TurnId, String)>,
    /// Inputs that the running turn receives after its step.
    pub(super) steered: Vec<String>,
    pub(super) notice: String,
    /// Warnings, which are shown on demand.
    pub(super) warnings: Vec<String>,
    /// What is wrong with the connection to the daemon, in a few words; `None` while it works.
    pub(super) lost: Option<&'static str>,
    /// Whether the last key was Ctrl-B, so that `d` detaches.
    prefix: bool,
    timing: RequestTiming,
    /// The time at which the user opened the page that confirms a rule.
    page_opened: Option<Instant>,
    /// The answer to a question that Enter confirms, and its key.
    confirming: Option<(char, PendingConfirmation)>,
    /// Whether the input is a single key that was typed before the request accepted keys. If no other key
    /// follows, the key was meant as an answer and is dropped.
    has_early_key: bool,
    /// A note, while the user chooses its place.
    noting: Option<String>,
    /// An input that mentions likely secrets, while the user decides about them.
    consenting: Option<Submission>,
    /// The draft of the input line, while the user answers a question or request.
    set_aside: String,
    /// The request that this client answered with a lasting grant.
    granted: Option<PermissionId>,
    pub(super) overlay: Option<Overlay>,
    pub(super) pager: Option<Pager>,
    pub(super) menu: Option<Menu>,
    commands: Option<Vec<CommandView>>,
    files: Option<Vec<String>>,
    /// Effects that run at the next pass of the loop, because no key returns them.
    wanted: Vec<Effect>,
    /// Whether the last key was Esc on an empty line.
    is_esc_armed: bool,
    /// Whether the last key was Ctrl-C on an empty line.
    is_leave_armed: bool,
    /// The running shell command of the user.
    pub(super) shell: Option<String>,
    shell_output: Vec<String>,
    /// Whether the terminal has the focus; `None` until the terminal reports it.
    has_focus: Option<bool>,
    last_key: Option<Instant>,
    alert: Option<String>,
    /// The last answer of the model, as it was written.
    last_answer: Option<String>,
    older_inputs: OlderInputs,
    /// The mode that Shift-Tab has requested, until the daemon answers.
    asked_mode: Option<Mode>,
    /// Events up to this seq are omitted, because the conversation is long. 0 if none are omitted.
    pub(super) left_out: Seq,
}

/// An answer that waits for its confirmation.
struct PendingConfirmation {
    effect: Effect,
    /// The line that is shown instead of the keys.
    line: StyledLine,
}

impl App {
    pub(super) fn new(session: SessionView, setup: ClientSetup) -> Self {
        let transcript = match setup.one_turn {
            Some(_) => Transcript::default(),
            None => Transcript::with_input(),
        };
        Self {
            progress: Progress::new(&session),
            session,
            setup,
            transcript: transcript.with_pager(),
            history: Vec::new(),
            start_lines: Vec::new(),
            record: Vec::new(),
            text: MarkdownStream::default(),
            raw_text: String::new(),
            columns: 80,
            rows: 24,
            clock: Timestamp(0),
            todos: Vec::new(),
            requests: RequestList::default(),
            waits_since: None,
            agents: HashMap::new(),
            questions: Default::default(),
            answers: Vec::new(),
            options: OptionCursor::default(),
            feedback: None,
            editor: Editor::default(),
            feedback_target: None,
            editing: None,
            queue: Vec::new(),
            steered: Vec::new(),
            notice: String::new(),
            warnings: Vec::new(),
            lost: None,
            prefix: false,
            timing: RequestTiming::default(),
            page_opened: None,
            confirming: None,
            has_early_key: false,
            noting: None,
            consenting: None,
            set_aside: String::new(),
            granted: None,
            overlay: None,
            pager: None,
            menu: None,
            commands: None,
            files: None,
            wanted: Vec::new(),
            is_esc_armed: false,
            is_leave_armed: false,
            shell: None,
            shell_output: Vec::new(),
            has_focus: None,
            last_key: None,
            alert: None,
            last_answer: None,
            older_inputs: OlderInputs::default(),
            asked_mode: None,
            left_out: 0,
        }
    }

    /// Begins with a later part of the conversation. Events up to `seq` are omitted, and the inputs in
    /// `queue` wait.
    pub(super) fn omit_earlier(&mut self, seq: Seq, queue: Vec<(TurnId, String)>) {
        (self.left_out, self.queue) = (seq, queue);
        let name = match self.session.number {
            0 => String::new(),
            number => format!(" {number}"),
        };
        let text =
            format!("⋯ earlier messages are left out here · Ctrl-O shows them, or agentctl logs{name}");
        self.history.extend(StyledLine::new(Tone::Dim, text).wrap(self.columns));
    }

    /// Sets the mode of a session that does not exist yet.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        (self.session.summary.mode, self.asked_mode) = (mode, None);
    }

    /// Shows the failure of a call.
    pub(super) fn show_failure(&mut self, message: String) {
        self.asked_mode = None;
        self.notice = message;
    }

    /// Adds the lines of the omitted part.
    pub(super) fn add_earlier(&mut self, lines: Vec<StyledLine>) {
        self.left_out = 0;
        if let Some(pager) = &mut self.pager {
            pager.prepend(lines.clone());
        }
        self.record.splice(0..0, lines);
    }

    /// All lines with nothing hidden.
    pub(super) fn take_record(&mut self) -> Vec<StyledLine> {
        self.finish_text();
        std::mem::take(&mut self.record)
    }

    /// Sets the size of the terminal and the wall clock, before an update.
    pub(super) fn set_environment(&mut self, (columns, rows): (usize, usize), clock: Timestamp) {
        (self.columns, self.rows, self.clock) = (columns, rows, clock);
    }

    /// Updates the phase: a request appears once the user is not typing, and accepts keys a moment
    /// later.
    pub(super) fn update(&mut self, now: Instant) {
        let front = self.front();
        let phase = self.timing.update(front, now);
        if phase.is_some() || front.is_none() {
            self.confirming = None;
        }
        if phase == Some(Phase::Shown) && self.has_open_question() && !self.editor.is_empty() {
            // The user began this text before the question appeared, so it is no answer.
            self.set_aside.push_str(&self.editor.take_draft());
        }
        if phase == Some(Phase::Answerable) && std::mem::take(&mut self.has_early_key) {
            self.editor.clear();
        }
        if front.is_none() && self.editor.is_empty() && !self.set_aside.is_empty() {
            self.editor.insert(&std::mem::take(&mut self.set_aside));
        }
    }

    /// The time of the next update for a request.
    pub(super) fn next_change(&self) -> Option<Instant> {
        self.timing.next_change()
    }

    /// Whether something on the screen changes with the time, such as the spinner.
    pub(super) fn is_moving(&self) -> bool {
        let is_working = self.session.summary.state == SessionState::Running || self.shell.is_some();
        self.pager.is_none() && (is_working || self.waits_since.is_some())
    }

    /// Phase of the open request; `None` without one.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.timing.phase()
    }

    /// The line that asks for the confirmation of an answer to a question.
    pub(super) fn confirmation(&self) -> Option<&StyledLine> {
        self.confirming.as_ref().map(|(_, confirming)| &confirming.line)
    }

    /// The pending question or request that keys answer. Questions come before permission requests. The list
    /// of requests counts as one request, whichever of them it shows.
    fn front(&self) -> Option<Pending> {
        let question = self.questions.front().map(|q| q.request_id);
        let feedback = self.feedback.as_ref().map(|(request_id, _)| *request_id);
        let question = question.or(feedback).map(Pending::Question);
        question.or_else(|| self.requests.iter().next().map(|r| Pending::Permission(r.request_id)))
    }

    /// Whether a turn runs or waits.
    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self.session.summary.state,
            SessionState::Running | SessionState::RequiresAction | SessionState::Paused
        )
    }

    /// Whether one answer for all open requests is offered.
    pub(super) fn can_all(&self) -> bool {
        self.requests.can_all(self.columns, self.rows.saturating_sub(6))
    }

    /// Completed rows for the scrollback.
    pub(super) fn take_history(&mut self) -> Vec<StyledLine> {
        if self.start_lines.is_empty() { std::mem::take(&mut self.history) } else { Vec::new() }
    }

    /// Shows those lines above a new conversation that are known already.
    pub(super) fn show_start_lines(&mut self, lines: Vec<StyledLine>) {
        self.start_lines = lines;
    }

    /// Moves the lines above a new conversation into the history: the `complete` lines if given, otherwise
    /// the shown ones.
    pub(super) fn finish_start_lines(&mut self, complete: Option<Vec<StyledLine>>) {
        let shown = std::mem::take(&mut self.start_lines);
        if shown.is_empty() {
            return;
        }
        let rows = complete.unwrap_or(shown).into_iter().flat_map(|line| line.wrap(self.columns));
        self.history.splice(0..0, rows);
    }

    /// The rows above a new conversation, while they are incomplete.
    pub(super) fn start_rows(&self) -> Vec<StyledLine> {
        self.start_lines.iter().flat_map(|line| line.wrap(self.columns)).collect()
    }

    /// The rows of the model's unfinished text.
    pub(super) fn tail(&self) -> Vec<StyledLine> {
        if self.setup.is_raw {
            let text = self.raw_text.as_str();
            return if text.is_empty() {
                Vec::new()
            } else {
                StyledLine::new(Tone::Plain, text).wrap(self.columns)
            };
        }
        self.text.frame(self.columns)
    }

    /// The rows of the running calls, and of the reads before them.
    pub(super) fn running(&self) -> Vec<StyledLine> {
        let mut rows: Vec<StyledLine> = self.transcript.reads_line().into_iter().collect();
        // A call that waits for an answer is shown with its request.
        let is_asked = |call: &&OpenCall| {
            self.requests.iter().any(|request| request.call_id == call.call_id)
                || self.questions.iter().any(|question| question.call_id == Some(call.call_id))
        };
        for call in self.transcript.open_calls().iter().filter(|call| !is_asked(call)) {
            let (tool, rest) = call.summary.split_once(' ').unwrap_or((&call.summary, ""));
            let line =
                StyledLine::new(Tone::Dim, "● ").and(Tone::Tool, tool).and(Tone::Plain, format!(" {rest}"));
            let line = match call.started_at {
                Some(since) => line.and(Tone::Dim, format!(" · running {} s", self.seconds_since(since))),
                None => line,
            };
            rows.push(line);
            if !call.progress.is_empty() {
                rows.push(StyledLine::new(Tone::Dim, format!("  └ {}", call.progress)));
            }
        }
        rows.extend(self.transcript.retry_line());
        rows.into_iter().map(|line| line.cut(self.columns)).collect()
    }

    /// The calls that have no result yet.
    pub(super) fn running_calls(&self) -> &[OpenCall] {
        self.transcript.open_calls()
    }

    /// Whole seconds since a time of the daemon's clock.
    pub(super) fn seconds_since(&self, since: Timestamp) -> i64 {
        (self.clock.0 - since.0).max(0) / 1_000
    }

    /// Appends a line, wrapped to the terminal.
    fn push_line(&mut self, line: &StyledLine) {
        self.finish_text();
        self.record_lines([line.clone()]);
        self.history.extend(line.wrap(self.columns));
    }

    fn record_lines(&mut self, lines: impl IntoIterator<Item = StyledLine>) {
        self.record.extend(lines);
        if self.record.len() > MAX_RECORD_LINES {
            self.record.drain(..MAX_RECORD_LINES / 5);
        }
    }

    fn push_text(&mut self, text: &str) {
        if self.setup.is_raw {
            self.raw_text.push_str(text);
            while let Some(end) = self.raw_text.find('\n') {
                let line: String = self.raw_text.drain(..=end).collect();
                let line = StyledLine::new(Tone::Plain, line.trim_end_matches('\n'));
                self.record_lines([line.clone()]);
                self.history.push(line);
            }
            return;
        }
        let lines = self.text.push(text, self.columns);
        self.record_lines(lines.iter().cloned());
        self.history.extend(lines);
    }

    fn finish_text(&mut self) {
        let lines = match self.setup.is_raw {
            true if self.raw_text.is_empty() => Vec::new(),
            true => vec![StyledLine::new(Tone::Plain, std::mem::take(&mut self.raw_text))],
            false => self.text.finish(self.columns),
        };
        self.record_lines(lines.iter().cloned());
        self.history.extend(lines);
    }

    /// Shows a notice in the line below the input.
    pub(super) fn notify(&mut self, text: &str) {
        self.notice = escape::line(text).into_owned();
    }

    /// The text of a notification that is due: a request waits, and the user does not look at the terminal.
    pub(super) fn take_alert(&mut self, now: Instant) -> Option<String> {
        let alert = self.alert.take()?;
        let is_away = match self.has_focus {
            Some(has_focus) => !has_focus,
            // If the terminal does not report its focus, a user who typed a moment ago is assumed to look at it.
            None => self.last_key.is_none_or(|key| now.duration_since(key) > PRESENCE_TIMEOUT),
        };
        // A history that is read again contains requests that were answered long ago. Report none of those.
        let is_open = !self.requests.is_empty() || !self.questions.is_empty();
        (is_away && is_open).then_some(alert)
    }

    /// Takes the effects that no key has requested.
    pub(super) fn take_queued_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.wanted)
    }

    /// Takes over the session, which exists now.
    pub(super) fn begin(&mut self, session: SessionView) {
        self.progress.known_seq = 0;
        self.session = session;
        self.setup.is_new = false;
    }
}

#[cfg(test)]
mod tests;
