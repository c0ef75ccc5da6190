//! Handles keys in the conversation.

use std::time::Instant;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::terminal::style::StyledLine;
use crate::ui::attach::app::overlay::Overlay;
use crate::ui::attach::app::{App, Effect, PendingConfirmation};
use crate::ui::pager::PagerOutcome;
use crate::ui::question;
use crate::ui::request_timing::Phase;
use api::params::FeedbackParams;
use types::session::SessionState;

/// The start of the hint while a turn stops.
const STOPPING: &str = "stopping…";

impl App {
    /// Handles a key or a paste.
    pub(crate) fn on_input(&mut self, input: &Input, now: Instant) -> Option<Effect> {
        match input {
            Input::FocusGained => self.has_focus = Some(true),
            Input::FocusLost => self.has_focus = Some(false),
            Input::Paste(text) if self.pager.is_none() => {
                self.key_pressed(now);
                (self.confirming, self.has_early_key) = (None, false);
                if self.setup.one_turn.is_some() && !self.is_writing() && !self.has_open_question() {
                    return None;
                }
                // A paste is no answer. Hide the list until the text is sent or removed.
                if self.is_list_open() {
                    self.timing.hide(now);
                }
                self.editor.paste(text);
                self.update_menu();
            }
            Input::Key(key) if key.kind != KeyEventKind::Release => {
                self.key_pressed(now);
                if let Some(pager) = &mut self.pager {
                    match pager.on_key(*key, self.rows) {
                        PagerOutcome::Stay => {}
                        PagerOutcome::Close => self.pager = None,
                        PagerOutcome::Edit(text) => return Some(Effect::Edit(text)),
                    }
                    return None;
                }
                let effect = self.on_key(*key, now);
                self.update_menu();
                return effect;
            }
            _ => {}
        }
        None
    }

    fn key_pressed(&mut self, now: Instant) {
        self.timing.key_pressed(now);
        self.last_key = Some(now);
    }

    /// Whether keys answer the open question: the question accepts keys, and the input line is empty.
    fn is_answerable(&self) -> bool {
        self.timing.phase() == Some(Phase::Answerable) && self.editor.is_empty() && !self.is_writing()
    }

    /// Handles a key while an answer waits for its confirmation. Enter confirms the answer. If another key is
    /// text, the key that gave the answer counts as text as well.
    fn on_confirm(&mut self, key: KeyEvent) -> Option<Effect> {
        let (typed, confirming) = self.confirming.take()?;
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if plain => return Some(confirming.effect),
            KeyCode::Char(c) if plain => {
                self.editor.insert(typed.encode_utf8(&mut [0; 4]));
                self.editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        None
    }

    fn on_key(&mut self, key: KeyEvent, now: Instant) -> Option<Effect> {
        self.notice.clear();
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        if std::mem::take(&mut self.prefix) && matches!(key.code, KeyCode::Char('d' | 'D')) {
            return Some(Effect::Detach);
        }
        let (is_taken, effect) = self.on_overlay_key(key);
        if is_taken {
            return effect;
        }
        let is_leave_armed = std::mem::take(&mut self.is_leave_armed);
        let is_esc_armed = std::mem::take(&mut self.is_esc_armed);
        self.has_early_key = false;
        if matches!(key.code, KeyCode::Char(_)) && ctrl {
            self.confirming = None;
        } else if self.confirming.is_some() {
            return self.on_confirm(key);
        }
        if let Some(note) = self.noting.take() {
            return self.place_note(note, key.code);
        }
        if let Some(submission) = self.consenting.take() {
            return self.decide_about_secrets(submission, key.code);
        }
        if self.is_list_open()
            && let Some(effect) = self.on_list_key(key, now)
        {
            return effect;
        }
        if self.is_answerable()
            && let Some(effect) = self.on_option_key(key, now)
        {
            return effect;
        }
        if self.open_menu().is_some() && !ctrl && !alt {
            match key.code {
                KeyCode::Up | KeyCode::Down => {
                    self.step_menu(key.code == KeyCode::Down);
                    return None;
                }
                KeyCode::Tab => {
                    self.accept_entry();
                    return None;
                }
                KeyCode::Enter => {
                    return if self.accept_entry() { self.send(false) } else { None };
                }
                KeyCode::Esc => {
                    self.close_menu();
                    return None;
                }
                _ => {}
            }
        }
        match key.code {
            KeyCode::Char(c) if ctrl => return self.on_control(c, is_leave_armed),
            KeyCode::F(2) if !self.warnings.is_empty() => self.overlay = Some(Overlay::Warnings),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.editor.insert("\n"),
            KeyCode::Enter => return self.send(false),
            KeyCode::BackTab => return Some(Effect::SetMode(self.next_mode())),
            KeyCode::Tab if self.is_busy() && !self.is_writing() && !self.has_open_question() => {
                return self.send(true);
            }
            KeyCode::Tab => self.editor.insert("\t"),
            KeyCode::Esc => return self.on_escape(is_esc_armed),
            KeyCode::Char('b') if alt => self.editor.word_left(),
            KeyCode::Char('f') if alt => self.editor.word_right(),
            KeyCode::Char('?') if self.editor.is_empty() && !self.is_writing() && self.front().is_none() => {
                self.overlay = Some(Overlay::Keys);
            }
            KeyCode::Char(c) => {
                if let Some(effect) = (self.is_answerable() && !alt).then(|| self.answer(c)).flatten() {
                    return effect;
                }
                if self.setup.one_turn.is_some() && !self.is_writing() && !self.has_open_question() {
                    return None;
                }
                self.has_early_key = self.timing.phase() == Some(Phase::Shown)
                    && self.editor.is_empty()
                    && !self.is_writing()
                    && self.is_answer(c);
                if !self.has_early_key
                    && self.timing.phase() == Some(Phase::Shown)
                    && self.questions.is_empty()
                {
                    // The user continues to type, so hide the request.
                    self.timing.hide(now);
                }
                self.editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace if alt => self.editor.delete_word(),
            KeyCode::Backspace => self.editor.backspace(),
            KeyCode::Delete => self.editor.delete(),
            KeyCode::Left if ctrl || alt => self.editor.word_left(),
            KeyCode::Right if ctrl || alt => self.editor.word_right(),
            KeyCode::Left if self.can_show_other_screen() => return Some(Effect::ShowSessions),
            KeyCode::Left => self.editor.left(),
            KeyCode::Right => self.editor.right(),
            KeyCode::Up if self.editor.is_empty() && !self.queue.is_empty() => return self.take_back(),
            KeyCode::Up => self.editor.up(),
            KeyCode::Down => self.editor.down(),
            KeyCode::Home => self.editor.home(),
            KeyCode::End => self.editor.end(),
            KeyCode::PageDown => self.requests.scroll += 5,
            KeyCode::PageUp => self.requests.scroll = self.requests.scroll.saturating_sub(5),
            _ => {}
        }
        None
    }

    /// Whether another screen may replace the conversation: the user types nothing, and no question is open.
    pub(super) fn can_show_other_screen(&self) -> bool {
        self.editor.is_empty()
            && !self.is_writing()
            && self.front().is_none()
            && self.shell.is_none()
            && self.setup.one_turn.is_none()
    }

    /// Esc goes back one step: from words for the model to the list. It stops a running command or turn.
    /// Pressed twice on an empty line, it offers earlier inputs to rewind to.
    fn on_escape(&mut self, is_armed: bool) -> Option<Effect> {
        if self.is_writing() {
            self.stop_writing();
            return None;
        }
        if self.shell.is_some() {
            return Some(Effect::StopShell);
        }
        if self.front().is_some() && !self.editor.is_empty() && !self.questions.is_empty() {
            // Set the draft aside, because single keys answer a question only while the line is empty.
            self.set_aside.push_str(&self.editor.take_draft());
            return None;
        }
        if self.is_busy() {
            return Some(self.stop_turn());
        }
        if !self.editor.is_empty() || self.setup.is_new || self.setup.one_turn.is_some() {
            return None;
        }
        if is_armed {
            self.overlay = Some(Overlay::Loading);
            return Some(Effect::LoadPoints);
        }
        self.is_esc_armed = true;
        self.notice = "Esc again: go back to an earlier input".into();
        None
    }

    /// Stops the turn. The queued inputs return to the input line, because otherwise the next one would start at
    /// once.
    pub(super) fn stop_turn(&mut self) -> Effect {
        self.notice = STOPPING.into();
        if self.queue.is_empty() || self.setup.one_turn.is_some() {
            return Effect::Abort;
        }
        let (turns, mut texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue).into_iter().unzip();
        self.notice = format!("{STOPPING} the queued input is in the input line again");
        // While a question is open, the input line would take the text as its answer.
        if self.front().is_some() {
            texts.extend(Some(std::mem::take(&mut self.set_aside)).filter(|text| !text.is_empty()));
            self.set_aside = texts.join("\n");
        } else {
            texts.extend(Some(self.editor.take_draft()).filter(|text| !text.is_empty()));
            self.editor.insert(&texts.join("\n"));
        }
        Effect::StopAndDequeue(turns)
    }

    /// Ends the hint about a turn that stops.
    pub(crate) fn end_stop_hint(&mut self) {
        if self.notice.starts_with(STOPPING) {
            self.notice.clear();
        }
    }

    fn on_control(&mut self, c: char, is_leave_armed: bool) -> Option<Effect> {
        match c {
            'c' => return self.on_interrupt(is_leave_armed),
            'd' if self.editor.is_empty() => return Some(Effect::Detach),
            'd' => self.editor.delete(),
            'b' => {
                self.prefix = true;
                self.notice = "Ctrl-B: D detaches".into();
            }
            'o' => {
                self.open_pager();
                return (self.left_out > 0).then_some(Effect::LoadEarlier);
            }
            'g' => return Some(Effect::Edit(self.editor.whole_text())),
            'r' => {
                self.overlay = Some(Overlay::Search(String::new(), 0));
                return self.more_history();
            }
            'z' => return Some(Effect::Suspend),
            'v' if self.can_attach() => return Some(Effect::PastePicture),
            'x' => self.editor.kill(),
            'y' => self.editor.yank(),
            'j' => self.editor.insert("\n"),
            'a' => self.editor.home(),
            'e' => self.editor.end(),
            'k' => self.editor.delete_to_end(),
            'u' => self.editor.delete_to_start(),
            'w' => self.editor.delete_word(),
            'p' => self.editor.up(),
            'n' => self.editor.down(),
            _ => {}
        }
        None
    }

    /// Ctrl-C stops the running command or turn. Otherwise it clears the line, and on an empty line it exits.
    fn on_interrupt(&mut self, is_leave_armed: bool) -> Option<Effect> {
        if self.shell.is_some() {
            return Some(Effect::StopShell);
        }
        if self.is_busy() {
            if self.setup.one_turn.is_some() && is_leave_armed {
                return Some(Effect::Detach);
            }
            self.is_leave_armed = true;
            let stop = self.stop_turn();
            if self.setup.one_turn.is_some() {
                self.notice = format!("{STOPPING} (Ctrl-C again leaves at once)");
            }
            return Some(stop);
        }
        if self.setup.one_turn.is_some() {
            return Some(Effect::Detach);
        }
        if !self.editor.is_empty() {
            self.editor.kill();
            self.notice = "cleared · Ctrl-Y brings it back".into();
            return None;
        }
        if is_leave_armed {
            return Some(Effect::Detach);
        }
        self.is_leave_armed = true;
        self.notice = match self.session.summary.state {
            SessionState::Ended => "Ctrl-C again to leave".into(),
            _ => "Ctrl-C again to leave; the session goes on".into(),
        };
        None
    }

    /// Whether a key answers the open request.
    fn is_answer(&self, key: char) -> bool {
        match self.questions.front() {
            Some(question) => !question::is_typed(question) && question::choice_for_key(key).is_some(),
            None if self.feedback.is_some() => self.choose_feedback(key).is_some(),
            None => !self.requests.is_empty() && matches!(key, 'y' | 'n' | '1'..='6'),
        }
    }

    /// The answer of a key, if a question is open; `None` if the key is only text.
    fn answer(&mut self, key: char) -> Option<Option<Effect>> {
        if let Some(question) = self.questions.front() {
            if question::is_typed(question) {
                return None;
            }
            let choice = question::choice_for_key(key)?;
            let effect = Effect::Answer(question::params(question.request_id, choice.name()));
            return Some(self.confirm_effect(key, effect, question::confirmation(choice)));
        }
        self.choose_feedback(key).map(Some)
    }

    /// The choice of a key between two answers of the model: the key is the number of the answer.
    fn choose_feedback(&self, key: char) -> Option<Effect> {
        let (request_id, item_ids) = self.feedback.as_ref()?;
        let item_id = *item_ids.get((key.to_digit(10)? as usize).checked_sub(1)?)?;
        Some(Effect::Choose(FeedbackParams { request_id: *request_id, item_id, idempotency_key: None }))
    }

    /// The effect of an answer. Returns no effect yet if the answer needs confirmation.
    fn confirm_effect(&mut self, key: char, effect: Effect, line: Option<StyledLine>) -> Option<Effect> {
        let Some(line) = line else { return Some(effect) };
        self.confirming = Some((key, PendingConfirmation { effect, line }));
        None
    }
}
