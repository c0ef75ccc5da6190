//! State and logic of the conversation: events and keys in, history lines and effects out. Pure.

mod completion;
mod composer;
mod copy;
mod effect;
mod events;
mod input_line;
mod keys;
mod list_keys;
mod model_list;
mod overlay;
mod pending;
mod progress;
mod question_keys;
mod scrollback;

use std::time::{Duration, Instant};

use crate::connection::remote::Machine;
use crate::terminal::escape;
use crate::terminal::style::{StyledLine, Tone};
pub(super) use crate::ui::attach::app::completion::MenuEntry;
pub(super) use crate::ui::attach::app::effect::{Effect, OlderInputs, Point, SecretFiles, Submission};
pub(super) use crate::ui::attach::app::events::{own_text, own_words};
use crate::ui::attach::app::input_line::NextKey;
pub(super) use crate::ui::attach::app::input_line::{InputLine, LineContent};
use crate::ui::attach::app::overlay::Overlay;
use crate::ui::attach::app::pending::PendingRequests;
pub(super) use crate::ui::attach::app::progress::{Activity, Progress};
use crate::ui::attach::app::scrollback::Scrollback;
use crate::ui::pager::Pager;
use crate::ui::render::{OpenCall, Transcript};
use crate::ui::request_timing::Phase;
use types::ids::{Seq, TurnId};
use types::permission::Mode;
use types::session::{SessionState, SessionView};
use types::time::Timestamp;
use types::todo::Todo;

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

pub(super) struct App {
    pub(super) session: SessionView,
    pub(super) setup: ClientSetup,
    pub(super) scrollback: Scrollback,
    /// Size of the terminal.
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// The wall clock at the last update.
    pub(super) clock: Timestamp,
    pub(super) progress: Progress,
    pub(super) todos: Vec<Todo>,
    pub(super) pending: PendingRequests,
    pub(super) line: InputLine,
    pub(super) queue: InputQueue,
    pub(super) shell: UserShell,
    presence: Presence,
    pub(super) notice: String,
    /// Warnings, which are shown on demand.
    pub(super) warnings: Vec<String>,
    /// What is wrong with the connection to the daemon, in a few words; `None` while it works.
    pub(super) lost: Option<&'static str>,
    pub(super) overlay: Option<Overlay>,
    pub(super) pager: Option<Pager>,
    /// Effects that run at the next pass of the loop, because no key returns them.
    wanted: Vec<Effect>,
    /// The mode that Shift-Tab has requested, until the daemon answers.
    asked_mode: Option<Mode>,
}

/// Inputs of the user that the running turn has not read.
#[derive(Default)]
pub(super) struct InputQueue {
    /// Inputs that wait for the turn to end.
    pub(super) inputs: Vec<(TurnId, String)>,
    /// Inputs that the running turn receives after its step.
    pub(super) steered: Vec<String>,
    /// A steering input in the conversation that the model has not begun to answer.
    pub(super) unanswered: Option<String>,
}

/// Shell commands that the user runs.
#[derive(Default)]
pub(super) struct UserShell {
    pub(super) command: Option<String>,
    /// The output of earlier commands, for the next input.
    output: Vec<String>,
}

/// Whether the user looks at the terminal.
#[derive(Default)]
struct Presence {
    /// Whether the terminal has the focus; `None` until the terminal reports it.
    has_focus: Option<bool>,
    last_key: Option<Instant>,
}

impl Presence {
    fn is_away(&self, now: Instant) -> bool {
        match self.has_focus {
            Some(has_focus) => !has_focus,
            // If the terminal does not report its focus, a user who typed a moment ago is assumed to look at it.
            None => self.last_key.is_none_or(|key| now.duration_since(key) > PRESENCE_TIMEOUT),
        }
    }
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
            scrollback: Scrollback::new(transcript.with_pager(), setup.is_raw),
            setup,
            columns: 80,
            rows: 24,
            clock: Timestamp(0),
            todos: Vec::new(),
            pending: PendingRequests::default(),
            line: InputLine::default(),
            queue: InputQueue::default(),
            shell: UserShell::default(),
            presence: Presence::default(),
            notice: String::new(),
            warnings: Vec::new(),
            lost: None,
            overlay: None,
            pager: None,
            wanted: Vec::new(),
            asked_mode: None,
        }
    }

    /// Begins with a later part of the conversation. Events up to `seq` are omitted, and the inputs in
    /// `queue` wait.
    pub(super) fn omit_earlier(&mut self, seq: Seq, queue: Vec<(TurnId, String)>) {
        (self.scrollback.left_out, self.queue.inputs) = (seq, queue);
        let name = match self.session.number {
            0 => String::new(),
            number => format!(" {number}"),
        };
        let text =
            format!("⋯ earlier messages are left out here · Ctrl-O shows them, or agentctl logs{name}");
        self.scrollback.history.extend(StyledLine::new(Tone::Dim, text).wrap(self.columns));
    }

    /// Sets the mode of a session that does not exist yet.
    pub(super) fn set_mode(&mut self, mode: Mode) {
        (self.session.summary.mode, self.asked_mode) = (mode, None);
    }

    pub(super) fn show_failure(&mut self, message: String) {
        self.asked_mode = None;
        self.notice = message;
    }

    /// Adds the lines of the omitted part.
    pub(super) fn add_earlier(&mut self, lines: Vec<StyledLine>) {
        self.scrollback.left_out = 0;
        if let Some(pager) = &mut self.pager {
            pager.prepend(lines.clone());
        }
        self.scrollback.record.splice(0..0, lines);
    }

    /// All lines with nothing hidden.
    pub(super) fn take_record(&mut self) -> Vec<StyledLine> {
        self.finish_text();
        std::mem::take(&mut self.scrollback.record)
    }

    /// Sets the size of the terminal and the wall clock, before an update.
    pub(super) fn set_environment(&mut self, (columns, rows): (usize, usize), clock: Timestamp) {
        (self.columns, self.rows, self.clock) = (columns, rows, clock);
    }

    /// Updates the phase: a request appears once the user is not typing, and accepts keys a moment
    /// later.
    pub(super) fn update(&mut self, now: Instant) {
        let front = self.pending.front();
        let phase = self.pending.timing.update(front, now);
        let line = &mut self.line;
        if phase.is_some() || front.is_none() {
            line.drop_confirmation();
        }
        if phase == Some(Phase::Shown) && self.pending.has_open_question() && !line.editor.is_empty() {
            // The user began this text before the question appeared, so it is no answer.
            line.set_draft_aside();
        }
        if phase == Some(Phase::Answerable) && matches!(line.next_key, NextKey::FollowsEarlyKey) {
            line.next_key = NextKey::Usual;
            line.editor.clear();
        }
        if front.is_none() && line.editor.is_empty() && !line.set_aside.is_empty() {
            line.restore_draft();
        }
    }

    /// The time of the next update for a request.
    pub(super) fn next_change(&self) -> Option<Instant> {
        self.pending.timing.next_change()
    }

    /// Whether something on the screen changes with the time, such as the spinner.
    pub(super) fn is_moving(&self) -> bool {
        let is_working = self.session.summary.state == SessionState::Running || self.shell.command.is_some();
        self.pager.is_none() && (is_working || self.pending.since.is_some())
    }

    /// Phase of the open request; `None` without one.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.pending.timing.phase()
    }

    /// The line that asks for the confirmation of an answer to a question.
    pub(super) fn confirmation(&self) -> Option<&StyledLine> {
        match &self.line.next_key {
            NextKey::Confirms(answer) => Some(&answer.line),
            _ => None,
        }
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
        self.pending.requests.can_all(self.columns, self.rows.saturating_sub(6))
    }

    /// Completed rows for the scrollback.
    pub(super) fn take_history(&mut self) -> Vec<StyledLine> {
        self.scrollback.take_history()
    }

    /// Shows those lines above a new conversation that are known already.
    pub(super) fn show_start_lines(&mut self, lines: Vec<StyledLine>) {
        self.scrollback.start_lines = lines;
    }

    /// Moves the lines above a new conversation into the history: the `complete` lines if given, otherwise
    /// the shown ones.
    pub(super) fn finish_start_lines(&mut self, complete: Option<Vec<StyledLine>>) {
        self.scrollback.finish_start_lines(complete, self.columns);
    }

    /// The rows above a new conversation, while they are incomplete.
    pub(super) fn start_rows(&self) -> Vec<StyledLine> {
        self.scrollback.start_rows(self.columns)
    }

    /// The rows of the model's unfinished text.
    pub(super) fn tail(&self) -> Vec<StyledLine> {
        self.scrollback.tail(self.columns)
    }

    /// The rows of the running calls, and of the reads before them.
    pub(super) fn running(&self) -> Vec<StyledLine> {
        let mut rows: Vec<StyledLine> = self.scrollback.transcript.reads_line().into_iter().collect();
        // A call that waits for an answer is shown with its request.
        let is_asked = |call: &&OpenCall| self.pending.has_call(call.call_id);
        for call in self.scrollback.transcript.open_calls().iter().filter(|call| !is_asked(call)) {
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
        rows.extend(self.scrollback.transcript.retry_line());
        rows.into_iter().map(|line| line.cut(self.columns)).collect()
    }

    /// The calls that have no result yet.
    pub(super) fn running_calls(&self) -> &[OpenCall] {
        self.scrollback.transcript.open_calls()
    }

    /// Whole seconds since a time of the daemon's clock.
    pub(super) fn seconds_since(&self, since: Timestamp) -> i64 {
        (self.clock.0 - since.0).max(0) / 1_000
    }

    fn push_line(&mut self, line: &StyledLine) {
        self.scrollback.push_line(line, self.columns);
    }

    fn finish_text(&mut self) {
        self.scrollback.finish_text(self.columns);
    }

    /// Shows a notice in the line below the input.
    pub(super) fn notify(&mut self, text: &str) {
        self.notice = escape::line(text).into_owned();
    }

    /// The text of a notification that is due: a request waits, and the user does not look at the terminal.
    pub(super) fn take_alert(&mut self, now: Instant) -> Option<String> {
        let alert = self.pending.alert.take()?;
        // A history that is read again contains requests that were answered long ago. Report none of those.
        let is_open = !self.pending.is_empty();
        (self.presence.is_away(now) && is_open).then_some(alert)
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
