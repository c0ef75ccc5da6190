//! What keys do in the attach view.

use std::time::Instant;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::api::params::FeedbackParams;
use crate::client::terminal::style::Line;
use crate::client::ui::attach::app::{App, Confirming, Effect};
use crate::client::ui::prompt;
use crate::client::ui::prompt::Answer;
use crate::client::ui::question;
use crate::client::ui::request_timing::Phase;
use crate::types::permission::{Decision, Scope};
use crate::types::session::SessionState;

/// Whether a text is a note of one line that does not name its place.
fn needs_place(text: &str) -> bool {
    let note = text.trim_end().strip_prefix("# ").map(str::trim).filter(|note| !note.contains('\n'));
    note.is_some_and(|note| !note.starts_with("memory:") && !note.starts_with("instructions:"))
}

impl App {
    /// Handles a key or a paste.
    pub(in crate::client::ui::attach) fn on_input(&mut self, input: &Input, now: Instant) -> Option<Effect> {
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
        if let Some(note) = self.noting.take() {
            return self.place_note(note, key.code);
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
            let words = Some(self.editor.take_text()).filter(|w| !w.trim().is_empty());
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
        if self.is_asked() {
            return self.answer_typed();
        }
        if needs_place(self.editor.text()) {
            self.noting = Some(self.editor.take_text());
            self.notice =
                "keep this note in: i the project instructions · m the memory of the project · Esc back"
                    .into();
            return None;
        }
        Some(Effect::Submit(self.editor.take_text()))
    }

    /// Submits a note to the chosen place, or gives it back for editing.
    fn place_note(&mut self, note: String, key: KeyCode) -> Option<Effect> {
        let text = note.trim().trim_start_matches('#').trim();
        match key {
            KeyCode::Char('i' | 'I') => Some(Effect::Submit(format!("# instructions: {text}"))),
            KeyCode::Char('m' | 'M') => Some(Effect::Submit(format!("# memory: {text}"))),
            _ => {
                self.editor.insert(&note);
                None
            }
        }
    }

    /// Whether the model asks and the question is shown, so that typed text is its answer.
    pub(in crate::client::ui::attach) fn is_asked(&self) -> bool {
        let is_shown = !matches!(self.timing.phase(), None | Some(Phase::Hidden));
        is_shown && self.questions.front().is_some_and(question::is_typed)
    }

    /// Takes the typed text as the next answer. The answers are sent once the last one is typed.
    fn answer_typed(&mut self) -> Option<Effect> {
        let question = self.questions.front()?;
        let asked = question.questions.get(self.answers.len())?;
        match question::parse(asked, self.editor.text()) {
            Ok(answer) => self.answers.push(answer),
            Err(why) => {
                self.notice = why;
                return None;
            }
        }
        self.editor.clear();
        let (request_id, all) = (question.request_id, question.questions.len());
        let is_complete = self.answers.len() == all;
        is_complete.then(|| Effect::Answer(question::answers(request_id, std::mem::take(&mut self.answers))))
    }

    /// Whether a key answers the open request.
    fn is_answer(&self, key: char) -> bool {
        match (self.questions.front(), self.requests.front()) {
            (Some(question), _) => !question::is_typed(question) && question::of_key(key).is_some(),
            (None, _) if self.feedback.is_some() => self.chosen(key).is_some(),
            (None, Some(request)) => prompt::answer_of(request, key).is_some(),
            (None, None) => false,
        }
    }

    /// The answer of a key, if a request is open; `None` if the key is only text.
    fn answer(&mut self, key: char) -> Option<Option<Effect>> {
        if let Some(question) = self.questions.front() {
            if question::is_typed(question) {
                return None;
            }
            let choice = question::of_key(key)?;
            let effect = Effect::Answer(question::params(question.request_id, choice.name()));
            return Some(self.confirmed(key, effect, question::confirmation(choice)));
        }
        if self.feedback.is_some() {
            return self.chosen(key).map(Some);
        }
        let request = self.requests.front()?;
        let send = |decision, scope| Effect::Approve(prompt::approval(request, decision, scope, None));
        let answer = prompt::answer_of(request, key)?;
        let effect = match answer {
            Answer::Once => send(Decision::Allow, Scope::Once),
            Answer::AcceptEdits => Effect::Approve(prompt::approval_with_edits(request)),
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

    /// The choice of a key between two answers: its number.
    fn chosen(&self, key: char) -> Option<Effect> {
        let (request_id, item_ids) = self.feedback.as_ref()?;
        let item_id = *item_ids.get((key.to_digit(10)? as usize).checked_sub(1)?)?;
        Some(Effect::Choose(FeedbackParams { request_id: *request_id, item_id, idempotency_key: None }))
    }

    /// The effect of an answer, or nothing yet if it needs confirmation.
    fn confirmed(&mut self, key: char, effect: Effect, line: Option<Line>) -> Option<Effect> {
        let Some(line) = line else { return Some(effect) };
        self.confirming = Some((key, Confirming { effect, line }));
        None
    }
}
