//! What `attach` knows and decides: events and keys in, history lines and effects out. Pure.

use std::collections::VecDeque;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::api::params::{AnswerParams, ApproveParams};
use crate::client::answer;
use crate::client::editor::Editor;
use crate::client::escape;
use crate::client::paint::{Line, Tone};
use crate::client::prompt::{self, Answer};
use crate::client::render::{Piece, Transcript};
use crate::client::summary::one_line;
use crate::client::wire::Received;
use crate::types::event::Event;
use crate::types::ids::PermissionId;
use crate::types::message::input_line;
use crate::types::permission::{Decision, Mode, Scope};
use crate::types::question::Question;
use crate::types::session::{PermissionRequest, SessionState, SessionView};

/// Rows of unfinished text that stay below the history.
const TAIL_ROWS: usize = 3;

/// What somebody wants from the daemon, or to be gone.
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
    transcript: Transcript,
    /// Finished lines that are not in the scrollback yet.
    history: Vec<Line>,
    /// The unfinished last line of what the model says.
    pub(super) tail: String,
    pub(super) requests: VecDeque<PermissionRequest>,
    /// Questions about what a restart left behind.
    pub(super) questions: VecDeque<Question>,
    pub(super) editor: Editor,
    /// The request that is being denied with words.
    pub(super) denying: Option<PermissionId>,
    /// The request whose arguments are being changed.
    pub(super) editing: Option<PermissionId>,
    /// First line of the request that is shown.
    pub(super) scroll: usize,
    /// The last thing a running tool said.
    pub(super) progress: String,
    pub(super) notice: String,
    pub(super) lost: bool,
    /// Ctrl-B was pressed.
    prefix: bool,
}

impl App {
    pub(super) fn new(session: SessionView) -> Self {
        Self {
            session,
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
        }
    }

    /// Whether a turn runs or waits.
    pub(super) fn is_busy(&self) -> bool {
        matches!(
            self.session.state,
            SessionState::Running | SessionState::RequiresAction | SessionState::Paused
        )
    }

    /// Lines that go to the scrollback now, broken for `columns`.
    pub(super) fn take_history(&mut self, columns: usize) -> Vec<Line> {
        let mut rows: Vec<Line> = self.history.drain(..).flat_map(|line| line.wrap(columns)).collect();
        // A paragraph that outgrows its place moves up from its top.
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
            // Not a line of the history: it would stand inside what the model is saying.
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
                // Below the history while it is open; it moves up with its answer.
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

    /// What a key or a paste leads to.
    pub(super) fn on_input(&mut self, input: &Input) -> Option<Effect> {
        match input {
            Input::Paste(text) => {
                self.editor.insert(text);
                None
            }
            Input::Key(key) if key.kind != KeyEventKind::Release => self.on_key(*key),
            _ => None,
        }
    }

    fn on_key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.notice.clear();
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if std::mem::take(&mut self.prefix) && matches!(key.code, KeyCode::Char('d' | 'D')) {
            return Some(Effect::Detach);
        }
        match key.code {
            KeyCode::Char(c) if ctrl => return self.on_control(c),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.editor.insert("\n"),
            KeyCode::Enter => return self.on_enter(),
            KeyCode::Esc if self.is_writing() => {
                (self.denying, self.editing) = (None, None);
                self.editor.clear();
            }
            KeyCode::Char('b') if alt => self.editor.left(),
            KeyCode::Char(c) => {
                let answers = self.editor.is_empty() && !self.is_writing() && !alt;
                if let Some(effect) = answers.then(|| self.answer(c)).flatten() {
                    return effect;
                }
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

    /// Whether what is typed belongs to a request.
    fn is_writing(&self) -> bool {
        self.denying.is_some() || self.editing.is_some()
    }

    /// `/mode MODE`; `None` if the text is something else.
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

    /// The answer behind a key, if a request is open; `None` if the key is only text.
    fn answer(&mut self, key: char) -> Option<Option<Effect>> {
        // What a restart left behind comes before what the turn asks next.
        if let Some(question) = self.questions.front() {
            let choice = answer::of_key(key)?;
            return Some(Some(Effect::Answer(answer::params(question.request_id, choice.name()))));
        }
        let request = self.requests.front()?;
        let send = |decision, scope| Some(Effect::Approve(prompt::approval(request, decision, scope, None)));
        Some(match prompt::answer_of(request, key)? {
            Answer::Once => send(Decision::Allow, Scope::Once),
            Answer::Session => send(Decision::Allow, Scope::Session),
            Answer::Project => send(Decision::Allow, Scope::Project),
            Answer::Edit => {
                self.editing = Some(request.request_id);
                self.editor.insert(&prompt::editable(request));
                None
            }
            Answer::Deny => send(Decision::Deny, Scope::Once),
            Answer::Feedback => {
                self.denying = Some(request.request_id);
                None
            }
            Answer::Abort => {
                self.notice = "aborting…".into();
                Some(Effect::Abort)
            }
        })
    }

    /// Something to know, in the line below the input.
    pub(super) fn notify(&mut self, text: &str) {
        self.notice = escape::line(text).into_owned();
    }
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
