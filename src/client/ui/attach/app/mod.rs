//! State and logic of `attach`: events and keys in, history lines and effects out. Pure.

use std::collections::VecDeque;
use std::time::Instant;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::api::params::{AnswerParams, ApproveParams};
use crate::client::commands::answer;
use crate::client::connection::wire::Received;
use crate::client::ui::editor::Editor;
use crate::client::ui::escape;
use crate::client::ui::prompt;
use crate::client::ui::prompt::Answer;
use crate::client::ui::render::{Piece, Transcript};
use crate::client::ui::request_timing::{Pending, Phase, RequestTiming};
use crate::client::ui::style::{Line, Tone};
use crate::client::ui::summary::one_line;
use crate::client::ui::undo;
use crate::types::event::Event;
use crate::types::ids::PermissionId;
use crate::types::message::input_line;
use crate::types::permission::{Decision, Mode, Scope};
use crate::types::question::Question;
use crate::types::session::{PermissionRequest, SessionState, SessionView};

/// Maximum rows of unfinished text below the history.
const TAIL_ROWS: usize = 3;

/// A request to the daemon, or the end of the program.
#[derive(Debug)]
pub(super) enum Effect {
    Submit(String),
    Approve(ApproveParams),
    Mode(Mode),
    Answer(AnswerParams),
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
    /// Questions that a restart has asked.
    pub(super) questions: VecDeque<Question>,
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
            questions: VecDeque::new(),
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
        let question = self.questions.front().map(|q| Pending::Question(q.request_id));
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
            Event::SessionUpdated { title, model, mode, thinking, .. } => {
                let session = &mut self.session;
                session.title = title.clone().unwrap_or(std::mem::take(&mut session.title));
                session.model = model.clone().unwrap_or(std::mem::take(&mut session.model));
                session.mode = mode.unwrap_or(session.mode);
                session.thinking = thinking.or(session.thinking);
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
                self.requests.push_back(request.clone());
                if request.diff.is_some() {
                    self.transcript.diff_was_shown(request.call_id);
                }
            }
            Event::PermissionResolved { request_id, .. } => self.settled(*request_id),
            Event::QuestionRequested { question } => {
                // Shown below the history while it is open; it moves up with its answer.
                self.questions.push_back(question.clone());
                self.finish_tail();
                return;
            }
            Event::QuestionResolved { request_id, .. } => {
                self.finish_tail();
                for question in self.questions.iter().filter(|q| q.request_id == *request_id) {
                    self.history.extend(answer::shown(question));
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

    /// Handles a key or a paste.
    pub(super) fn on_input(&mut self, input: &Input, now: Instant) -> Option<Effect> {
        match input {
            Input::Paste(text) => {
                self.timing.key_pressed(now);
                (self.confirming, self.has_early_key) = (None, false);
                self.editor.insert(text);
                None
            }
            Input::Key(key) if key.kind != KeyEventKind::Release => {
                self.timing.key_pressed(now);
                self.on_key(*key)
            }
            _ => None,
        }
    }

    /// Whether keys answer: a request accepts them, and the input line is empty.
    fn is_answerable(&self) -> bool {
        self.timing.phase() == Some(Phase::Answerable) && self.editor.is_empty() && !self.is_writing()
    }

    /// Handles a key while an answer waits for its confirmation. Enter confirms. Any other key is text,
    /// and so is the key before it.
    fn on_confirm(&mut self, key: KeyEvent) -> Option<Effect> {
        let (typed, confirming) = self.confirming.take()?;
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if plain => {
                if let Effect::Approve(params) = &confirming.effect {
                    self.granted = params.request_id;
                } else {
                    self.notice = "aborting…".into();
                }
                return Some(confirming.effect);
            }
            KeyCode::Char(c) if plain => {
                self.editor.insert(typed.encode_utf8(&mut [0; 4]));
                self.editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        None
    }

    fn on_key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.notice.clear();
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if std::mem::take(&mut self.prefix) && matches!(key.code, KeyCode::Char('d' | 'D')) {
            return Some(Effect::Detach);
        }
        let is_control = matches!(key.code, KeyCode::Char(_)) && ctrl;
        self.has_early_key = false;
        if is_control {
            self.confirming = None;
        } else if self.confirming.is_some() {
            return self.on_confirm(key);
        }
        match key.code {
            KeyCode::Char(c) if ctrl => return self.on_control(c),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.editor.insert("\n"),
            KeyCode::Enter => return self.on_enter(),
            KeyCode::Esc if self.is_writing() => {
                (self.denying, self.editing) = (None, None);
                self.editor.clear();
            }
            KeyCode::Esc if self.front().is_some() && !self.editor.is_empty() => {
                self.set_aside.push_str(self.editor.text());
                self.editor.clear();
            }
            KeyCode::Char('b') if alt => self.editor.left(),
            KeyCode::Char(c) => {
                if let Some(effect) = (self.is_answerable() && !alt).then(|| self.answer(c)).flatten() {
                    return effect;
                }
                self.has_early_key = self.timing.phase() == Some(Phase::Shown)
                    && self.editor.is_empty()
                    && !self.is_writing()
                    && self.is_answer(c);
                self.editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            KeyCode::Tab => self.editor.insert("\t"),
            KeyCode::PageDown => self.scroll += 5,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(5),
            _ => {}
        }
        None
    }

    fn on_control(&mut self, c: char) -> Option<Effect> {
        match c {
            'c' if self.is_busy() => {
                self.notice = "aborting…".into();
                return Some(Effect::Abort);
            }
            'c' if self.editor.is_empty() => self.notice = "nothing runs; Ctrl-D detaches".into(),
            'c' | 'u' if !self.is_writing() || c == 'u' => {
                if c == 'c' {
                    self.editor.clear()
                } else {
                    self.editor.delete_to_start()
                }
            }
            'c' => {}
            'd' if self.editor.is_empty() => return Some(Effect::Detach),
            'd' => self.editor.delete(),
            'b' => {
                self.prefix = true;
                self.notice = "Ctrl-B: D detaches".into();
            }
            'j' => self.editor.insert("\n"),
            'a' => self.editor.home(),
            'e' => self.editor.end(),
            'k' => self.editor.delete_to_end(),
            'w' => self.editor.delete_word(),
            'p' => self.editor.up(),
            'n' => self.editor.down(),
            _ => {}
        }
        None
    }

    /// Whether typed text belongs to a request.
    fn is_writing(&self) -> bool {
        self.denying.is_some() || self.editing.is_some()
    }

    /// Handles `/mode MODE`; `None` if the text is something else.
    fn slash_mode(&mut self) -> Option<Option<Effect>> {
        let wanted = self.editor.text().trim().strip_prefix("/mode")?.trim().to_string();
        match serde_json::from_value::<Mode>(wanted.into()) {
            Ok(mode) => {
                self.editor.clear();
                Some(Some(Effect::Mode(mode)))
            }
            Err(_) => {
                self.notice = "/mode default, accept_edits, plan, dont_ask or bypass".into();
                Some(None)
            }
        }
    }

    fn on_enter(&mut self) -> Option<Effect> {
        if let Some(id) = self.editing {
            let request = self.requests.iter().find(|r| r.request_id == id)?;
            return match prompt::edited(request, self.editor.text()) {
                Ok(params) => {
                    self.editing = None;
                    self.editor.clear();
                    Some(Effect::Approve(params))
                }
                Err(why) => {
                    self.notice = why;
                    None
                }
            };
        }
        if let Some(id) = self.denying.take() {
            let words = Some(self.editor.take()).filter(|w| !w.trim().is_empty());
            let request = self.requests.iter().find(|r| r.request_id == id)?;
            return Some(Effect::Approve(prompt::approval(request, Decision::Deny, Scope::Once, words)));
        }
        if self.editor.text().trim().is_empty() {
            return None;
        }
        if self.session.state == SessionState::Ended {
            self.notice = "the session has ended and takes no more input".into();
            return None;
        }
        if let Some(effect) = self.slash_mode() {
            return effect;
        }
        Some(Effect::Submit(self.editor.take()))
    }

    /// Whether a key answers the open request.
    fn is_answer(&self, key: char) -> bool {
        match (self.questions.front(), self.requests.front()) {
            (Some(_), _) => answer::of_key(key).is_some(),
            (None, Some(request)) => prompt::answer_of(request, key).is_some(),
            (None, None) => false,
        }
    }

    /// The answer of a key, if a request is open; `None` if the key is only text.
    fn answer(&mut self, key: char) -> Option<Option<Effect>> {
        if let Some(question) = self.questions.front() {
            let choice = answer::of_key(key)?;
            let effect = Effect::Answer(answer::params(question.request_id, choice.name()));
            return Some(self.confirmed(key, effect, answer::confirmation(choice)));
        }
        let request = self.requests.front()?;
        let send = |decision, scope| Effect::Approve(prompt::approval(request, decision, scope, None));
        let answer = prompt::answer_of(request, key)?;
        let effect = match answer {
            Answer::Once => send(Decision::Allow, Scope::Once),
            Answer::Session => send(Decision::Allow, Scope::Session),
            Answer::Project => send(Decision::Allow, Scope::Project),
            Answer::Deny => send(Decision::Deny, Scope::Once),
            Answer::Edit => {
                self.editing = Some(request.request_id);
                self.editor.insert(&prompt::editable(request));
                return Some(None);
            }
            Answer::Feedback => {
                self.denying = Some(request.request_id);
                return Some(None);
            }
            Answer::Abort => Effect::Abort,
        };
        let line = prompt::confirmation(request, answer);
        Some(self.confirmed(key, effect, line))
    }

    /// The effect of an answer, or nothing yet if it needs confirmation.
    fn confirmed(&mut self, key: char, effect: Effect, line: Option<Line>) -> Option<Effect> {
        let Some(line) = line else { return Some(effect) };
        self.confirming = Some((key, Confirming { effect, line }));
        None
    }

    /// Shows a notice in the line below the input.
    pub(super) fn notify(&mut self, text: &str) {
        self.notice = escape::line(text).into_owned();
    }
}

#[cfg(test)]
mod tests;
