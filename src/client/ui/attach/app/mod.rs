//! State and logic of `attach`: events and keys in, history lines and effects out. Pure.

mod keys;

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crate::api::params::{AnswerParams, ApproveParams, FeedbackParams};
use crate::client::connection::wire::Received;
use crate::client::terminal::escape;
use crate::client::terminal::style::{Line, Tone};
use crate::client::ui::editor::Editor;
use crate::client::ui::question;
use crate::client::ui::render::{Piece, Transcript};
use crate::client::ui::request_timing::{Pending, Phase, RequestTiming};
use crate::client::ui::summary::one_line;
use crate::client::ui::undo;
use crate::types::event::Event;
use crate::types::ids::{ItemId, PermissionId, QuestionId, SessionId};
use crate::types::message::input_line;
use crate::types::question::{Question, UserAnswer};
use crate::types::session::{PermissionRequest, SessionState, SessionView};

/// Maximum rows of unfinished text below the history.
const TAIL_ROWS: usize = 3;

/// A request to the daemon, or the end of the program.
#[derive(Debug)]
pub(super) enum Effect {
    Submit(String),
    Approve(ApproveParams),
    Answer(AnswerParams),
    Choose(FeedbackParams),
    Abort,
    Detach,
}

pub(super) struct App {
    pub(super) session: SessionView,
    /// `Places::flags`, for undo commands.
    flags: Vec<String>,
    transcript: Transcript,
    /// Completed lines that are not in the scrollback yet.
    history: Vec<Line>,
    /// The unfinished last line of the model's text.
    pub(super) tail: String,
    pub(super) requests: VecDeque<PermissionRequest>,
    /// Names of the agents that work as sub-agents, by session.
    agents: HashMap<SessionId, String>,
    /// Questions that a restart has asked.
    pub(super) questions: VecDeque<Question>,
    /// Answers to the first questions of the open request of the model.
    pub(super) answers: Vec<UserAnswer>,
    /// The open choice between two answers of the model.
    pub(super) feedback: Option<(QuestionId, Vec<ItemId>)>,
    pub(super) editor: Editor,
    /// The request that is being denied with feedback.
    pub(super) denying: Option<PermissionId>,
    /// The request whose arguments are being edited.
    pub(super) editing: Option<PermissionId>,
    /// First visible line of the shown request.
    pub(super) scroll: usize,
    /// The last progress text of a running tool.
    pub(super) progress: String,
    pub(super) notice: String,
    pub(super) lost: bool,
    /// Ctrl-B was pressed.
    prefix: bool,
    timing: RequestTiming,
    /// The answer that Enter confirms, and its key.
    confirming: Option<(char, Confirming)>,
    /// The input is one key from before the request accepted keys. If no other key follows, it was
    /// meant as an answer.
    has_early_key: bool,
    /// A note that waits for the choice of its place.
    noting: Option<String>,
    /// The draft of the input, while requests are answered.
    set_aside: String,
    /// The request that this client answered with a lasting grant.
    granted: Option<PermissionId>,
    /// Columns of the terminal when the history was last taken.
    columns: usize,
}

/// An answer that waits for its confirmation.
struct Confirming {
    effect: Effect,
    /// The line shown instead of the keys.
    line: Line,
}

impl App {
    pub(super) fn new(session: SessionView, flags: Vec<String>) -> Self {
        Self {
            session,
            flags,
            transcript: Transcript::with_input(),
            history: Vec::new(),
            tail: String::new(),
            requests: VecDeque::new(),
            agents: HashMap::new(),
            questions: VecDeque::new(),
            answers: Vec::new(),
            feedback: None,
            editor: Editor::default(),
            denying: None,
            editing: None,
            scroll: 0,
            progress: String::new(),
            notice: String::new(),
            lost: false,
            prefix: false,
            timing: RequestTiming::default(),
            confirming: None,
            has_early_key: false,
            noting: None,
            set_aside: String::new(),
            granted: None,
            columns: 80,
        }
    }

    /// Updates the phase: a request appears once the user is not typing, and accepts keys a moment
    /// later.
    pub(super) fn update(&mut self, now: Instant) {
        let front = self.front();
        let phase = self.timing.update(front, now);
        if phase.is_some() || front.is_none() {
            self.confirming = None;
        }
        if phase == Some(Phase::Shown) && self.is_asked() && !self.editor.is_empty() {
            // The text was begun before the question appeared, so it is no answer.
            self.set_aside.push_str(&self.editor.take_text());
        }
        if phase == Some(Phase::Answerable) && std::mem::take(&mut self.has_early_key) {
            self.editor.clear();
        }
        if front.is_none() && self.editor.is_empty() && !self.set_aside.is_empty() {
            self.editor.insert(&std::mem::take(&mut self.set_aside));
        }
    }

    /// When to update next.
    pub(super) fn next_change(&self) -> Option<Instant> {
        self.timing.next_change()
    }

    /// Phase of the open request; `None` without one.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.timing.phase()
    }

    /// The line that asks for the confirmation of an answer.
    pub(super) fn confirmation(&self) -> Option<&Line> {
        self.confirming.as_ref().map(|(_, confirming)| &confirming.line)
    }

    /// Questions from a restart come before requests of the turn.
    fn front(&self) -> Option<Pending> {
        let question = self.questions.front().map(|q| q.request_id);
        let feedback = self.feedback.as_ref().map(|(request_id, _)| *request_id);
        let question = question.or(feedback).map(Pending::Question);
        question.or_else(|| self.requests.front().map(|r| Pending::Permission(r.request_id)))
    }

    /// Whether a turn runs or waits.
    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self.session.state,
            SessionState::Running | SessionState::RequiresAction | SessionState::Paused
        )
    }

    /// Completed lines for the scrollback, wrapped to `columns`.
    pub(super) fn take_history(&mut self, columns: usize) -> Vec<Line> {
        self.columns = columns;
        let mut rows: Vec<Line> = self.history.drain(..).flat_map(|line| line.wrap(columns)).collect();
        // When a paragraph exceeds its rows, its first rows move to the scrollback.
        let tail = Line::new(Tone::Plain, self.tail.as_str()).wrap(columns);
        if tail.len() > TAIL_ROWS {
            let moved = tail.len() - TAIL_ROWS;
            rows.extend(tail[..moved].iter().cloned());
            self.tail = tail[moved..].iter().map(Line::plain).collect::<Vec<_>>().join(" ");
        }
        rows
    }

    pub(super) fn on_event(&mut self, received: &Received) {
        let Some(envelope) = &received.event else { return };
        match &envelope.event {
            Event::SessionStatus { state, requires } => {
                (self.session.state, self.session.requires) = (*state, *requires);
            }
            Event::SessionUpdated { title, options, .. } => {
                let session = &mut self.session;
                session.title = title.clone().unwrap_or(std::mem::take(&mut session.title));
                session.model = options.model.clone().unwrap_or(std::mem::take(&mut session.model));
                session.mode = options.mode.unwrap_or(session.mode);
                session.thinking = options.thinking.or(session.thinking);
            }
            Event::SessionAttached { clients } | Event::SessionDetached { clients } => {
                self.session.clients = *clients;
            }
            // Not a line of the history, because it would appear inside the model's text.
            Event::TurnQueued { input, .. } => {
                self.notice = format!("queued: {}", one_line(&input_line(input), 80));
            }
            Event::SessionEnded { .. } => self.session.state = SessionState::Ended,
            Event::ToolProgress { text, .. } => {
                if let Some(line) = text.lines().rev().find(|l| !l.trim().is_empty()) {
                    self.progress = one_line(line, 200);
                }
            }
            Event::ToolCompleted { .. }
            | Event::ToolBlocked { .. }
            | Event::ToolBackground { end: Some(_), .. }
            | Event::TurnCompleted { .. } => self.progress.clear(),
            Event::PermissionRequested { request, .. } => {
                let mut request = request.clone();
                if let Some(agent) = request.child_session_id.map(|id| self.agent_of(id)) {
                    request.reason = format!("sub-agent {agent}: {}", request.reason);
                }
                self.requests.push_back(request.clone());
                if request.diff.is_some() {
                    self.transcript.diff_was_shown(request.call_id);
                }
            }
            Event::PermissionResolved { request_id, .. } => self.settled(*request_id),
            Event::SubagentStarted { child_session_id, agent, .. } => {
                self.agents.insert(*child_session_id, agent.clone());
            }
            Event::FeedbackRequested { request_id, item_ids } => {
                self.feedback = Some((*request_id, item_ids.clone()));
            }
            Event::FeedbackCompleted { .. } => self.feedback = None,
            Event::QuestionRequested { question } => {
                // Shown below the history while it is open; it moves up with its answer.
                self.questions.push_back(question.clone());
                self.finish_tail();
                return;
            }
            Event::QuestionResolved { request_id, .. } => {
                self.finish_tail();
                for question in self.questions.iter().filter(|q| q.request_id == *request_id) {
                    self.history.extend(question::shown(question));
                }
                if self.questions.front().is_some_and(|q| q.request_id == *request_id) {
                    self.answers.clear();
                }
                self.questions.retain(|q| q.request_id != *request_id);
            }
            _ => {}
        }
        for piece in self.transcript.on(envelope) {
            match piece {
                Piece::Text(text) => self.say(&text),
                Piece::Break => self.finish_tail(),
                Piece::Line(line) => {
                    self.finish_tail();
                    self.history.push(line);
                }
            }
        }
        if let Event::PermissionResolved { request_id, scope, grant: Some(grant), .. } = &envelope.event
            && self.granted.take_if(|granted| granted == request_id).is_some()
        {
            let SessionView { session_id, cwd, .. } = &self.session;
            self.history.extend(undo::lines(*scope, grant, *session_id, cwd, &self.flags, self.columns));
        }
    }

    /// The agent of a sub-agent, or its id if its own sub-agent started it.
    fn agent_of(&self, id: SessionId) -> String {
        self.agents.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }

    fn settled(&mut self, id: PermissionId) {
        if self.requests.front().is_some_and(|r| r.request_id == id) {
            self.scroll = 0;
        }
        self.requests.retain(|r| r.request_id != id);
        if self.denying == Some(id) || self.editing == Some(id) {
            (self.denying, self.editing) = (None, None);
            self.editor.clear();
        }
    }

    fn say(&mut self, text: &str) {
        let mut parts = text.split('\n');
        self.tail.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let line = std::mem::replace(&mut self.tail, part.to_string());
            self.history.push(Line::new(Tone::Plain, line));
        }
    }

    fn finish_tail(&mut self) {
        if !self.tail.is_empty() {
            let line = std::mem::take(&mut self.tail);
            self.history.push(Line::new(Tone::Plain, line));
        }
    }

    /// Shows a notice in the line below the input.
    pub(super) fn notify(&mut self, text: &str) {
        self.notice = escape::line(text).into_owned();
    }
}

#[cfg(test)]
mod tests;
