//! Handles keys in the conversation.

use std::time::Instant;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::answer;
use crate::answer::question::{choice_of, is_typed};
use crate::terminal::style::StyledLine;
use crate::ui::attach::app::composer::SendTime;
use crate::ui::attach::app::input_line::{NextKey, UnconfirmedAnswer};
use crate::ui::attach::app::overlay::Overlay;
use crate::ui::attach::app::{App, Effect, Submission};
use crate::ui::cursor::Step;
use crate::ui::pager::PagerOutcome;
use crate::ui::question;
use crate::ui::request_timing::Phase;
use crate::ui::summary::one_line;
use api::params::FeedbackParams;
use types::session::SessionState;

/// Sent for an input that is in the conversation already and has no answer.
const ASK_FOR_ANSWER: &str = "Please answer my last message.";
/// Columns of an input in the hint that it has no answer.
const UNANSWERED_COLUMNS: usize = 30;
/// The start of the hint while a turn stops.
const STOPPING: &str = "stopping…";

impl App {
    /// Handles a key or a paste.
    pub(crate) fn on_input(&mut self, input: &Input, now: Instant) -> Option<Effect> {
        match input {
            Input::FocusGained => self.presence.has_focus = Some(true),
            Input::FocusLost => self.presence.has_focus = Some(false),
            Input::Paste(text) if self.pager.is_none() => {
                self.key_pressed(now);
                if matches!(self.line.next_key, NextKey::Confirms(_) | NextKey::FollowsEarlyKey) {
                    self.line.next_key = NextKey::Usual;
                }
                if self.setup.one_turn.is_some() && !self.is_writing() && !self.has_open_question() {
                    return None;
                }
                // A paste is no answer. Hide the list until the text is sent or removed.
                if self.is_list_open() {
                    self.pending.timing.hide(now);
                }
                self.line.editor.paste(text);
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
        self.pending.timing.key_pressed(now);
        self.presence.last_key = Some(now);
    }

    /// Whether keys answer the open question: the question accepts keys, and the input line is empty.
    fn is_answerable(&self) -> bool {
        self.pending.timing.phase() == Some(Phase::Answerable)
            && self.line.editor.is_empty()
            && !self.is_writing()
    }

    /// Handles a key while an answer waits for its confirmation. Enter confirms the answer. If another key is
    /// text, the key that gave the answer counts as text as well.
    fn on_confirm(&mut self, key: KeyEvent, answer: UnconfirmedAnswer) -> Option<Effect> {
        let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter if plain => return Some(answer.effect),
            KeyCode::Char(c) if plain => {
                self.line.editor.insert(answer.key.encode_utf8(&mut [0; 4]));
                self.line.editor.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        None
    }

    fn on_key(&mut self, key: KeyEvent, now: Instant) -> Option<Effect> {
        self.notice.clear();
        if matches!(self.line.next_key, NextKey::Detaches) {
            self.line.next_key = NextKey::Usual;
            if matches!(key.code, KeyCode::Char('d' | 'D')) {
                return Some(Effect::Detach);
            }
        }
        let (is_taken, effect) = self.on_overlay_key(key);
        if is_taken {
            return effect;
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let after = match std::mem::take(&mut self.line.next_key) {
            // Ctrl-C and the like act at any time.
            NextKey::Confirms(_) if matches!(key.code, KeyCode::Char(_)) && ctrl => NextKey::Usual,
            NextKey::Confirms(answer) => return self.on_confirm(key, answer),
            NextKey::PlacesNote(note) => return self.place_note(note, key.code),
            NextKey::DecidesSecrets(submission) => return self.decide_about_secrets(submission, key.code),
            after => after,
        };
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
        if let Some(effect) = self.on_menu_key(key) {
            return effect;
        }
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(c) if ctrl => self.on_control(c, after),
            KeyCode::F(2) if !self.warnings.is_empty() => {
                self.overlay = Some(Overlay::Warnings);
                None
            }
            KeyCode::Enter if matches!(after, NextKey::AsksForAnswer) && self.line.editor.is_empty() => {
                Some(Effect::Submit(Submission::new(ASK_FOR_ANSWER.into(), None)))
            }
            KeyCode::Enter if !(alt || key.modifiers.contains(KeyModifiers::SHIFT)) => {
                self.send(SendTime::AfterStep)
            }
            KeyCode::BackTab => Some(Effect::SetMode(self.next_mode())),
            KeyCode::Tab if self.is_busy() && !self.is_writing() && !self.has_open_question() => {
                self.send(SendTime::AfterTurn)
            }
            KeyCode::Esc => self.on_escape(after),
            KeyCode::Char('?')
                if self.line.editor.is_empty() && !self.is_writing() && self.pending.front().is_none() =>
            {
                self.overlay = Some(Overlay::Keys);
                None
            }
            KeyCode::Char(c) if !(alt && matches!(c, 'b' | 'f')) => self.on_character(c, alt, now),
            KeyCode::Left if !(ctrl || alt) && self.can_show_other_screen() => Some(Effect::ShowSessions),
            KeyCode::Up if self.line.editor.is_empty() && !self.queue.inputs.is_empty() => self.take_back(),
            code => {
                self.on_edit_key(code, ctrl || alt);
                None
            }
        }
    }

    /// Handles a key for the menu of completions. Returns `None` if the key is for the line.
    fn on_menu_key(&mut self, key: KeyEvent) -> Option<Option<Effect>> {
        self.open_menu()?;
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        if let Some(step) = Step::of_arrow(key.code) {
            self.step_menu(step);
            return Some(None);
        }
        match key.code {
            KeyCode::Tab => {
                self.accept_entry();
            }
            KeyCode::Enter => {
                return Some(if self.accept_entry() { self.send(SendTime::AfterStep) } else { None });
            }
            KeyCode::Esc => self.close_menu(),
            _ => return None,
        }
        Some(None)
    }

    /// Handles a character: an answer, or text of the line.
    fn on_character(&mut self, c: char, alt: bool, now: Instant) -> Option<Effect> {
        if let Some(effect) = (self.is_answerable() && !alt).then(|| self.answer(c)).flatten() {
            return effect;
        }
        if self.setup.one_turn.is_some() && !self.is_writing() && !self.has_open_question() {
            return None;
        }
        if self.pending.timing.phase() == Some(Phase::Shown) {
            if self.line.editor.is_empty() && !self.is_writing() && self.is_answer(c) {
                self.line.next_key = NextKey::FollowsEarlyKey;
            } else if self.pending.questions.is_empty() {
                // The user continues to type, so hide the request.
                self.pending.timing.hide(now);
            }
        }
        self.line.editor.insert(c.encode_utf8(&mut [0; 4]));
        None
    }

    /// Handles a key that moves the cursor or changes the text.
    fn on_edit_key(&mut self, code: KeyCode, by_word: bool) {
        let editor = &mut self.line.editor;
        let scroll = &mut self.pending.requests.scroll;
        match code {
            KeyCode::Enter => editor.insert("\n"),
            KeyCode::Tab => editor.insert("\t"),
            KeyCode::Char('b') => editor.word_left(),
            KeyCode::Char('f') => editor.word_right(),
            KeyCode::Backspace if by_word => editor.delete_word(),
            KeyCode::Backspace => editor.backspace(),
            KeyCode::Delete => editor.delete(),
            KeyCode::Left if by_word => editor.word_left(),
            KeyCode::Right if by_word => editor.word_right(),
            KeyCode::Left => editor.left(),
            KeyCode::Right => editor.right(),
            KeyCode::Up => editor.up(),
            KeyCode::Down => editor.down(),
            KeyCode::Home => editor.home(),
            KeyCode::End => editor.end(),
            KeyCode::PageDown => *scroll += 5,
            KeyCode::PageUp => *scroll = scroll.saturating_sub(5),
            _ => {}
        }
    }

    /// Whether another screen may replace the conversation: the user types nothing, and no question is open.
    pub(super) fn can_show_other_screen(&self) -> bool {
        self.line.editor.is_empty()
            && !self.is_writing()
            && self.pending.front().is_none()
            && self.shell.command.is_none()
            && self.setup.one_turn.is_none()
    }

    /// Esc goes back one step: from words for the model to the list. It stops a running command or turn.
    /// Pressed twice on an empty line, it offers earlier inputs to rewind to.
    fn on_escape(&mut self, after: NextKey) -> Option<Effect> {
        if self.is_writing() {
            self.stop_writing();
            return None;
        }
        if self.shell.command.is_some() {
            return Some(Effect::StopShell);
        }
        if self.pending.front().is_some()
            && !self.line.editor.is_empty()
            && !self.pending.questions.is_empty()
        {
            // Set the draft aside, because single keys answer a question only while the line is empty.
            self.line.set_draft_aside();
            return None;
        }
        if self.is_busy() {
            return Some(self.stop_turn());
        }
        if !self.line.editor.is_empty() || self.setup.is_new || self.setup.one_turn.is_some() {
            return None;
        }
        if matches!(after, NextKey::Rewinds) {
            self.overlay = Some(Overlay::Loading);
            return Some(Effect::LoadPoints);
        }
        self.line.next_key = NextKey::Rewinds;
        self.notice = "Esc again: go back to an earlier input".into();
        None
    }

    /// Stops the turn. The queued inputs return to the input line, because otherwise the next one would start at
    /// once.
    pub(super) fn stop_turn(&mut self) -> Effect {
        self.notice = STOPPING.into();
        if self.queue.inputs.is_empty() || self.setup.one_turn.is_some() {
            return Effect::Abort;
        }
        let (turns, mut texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.queue.inputs).into_iter().unzip();
        self.notice = format!("{STOPPING} the queued input is in the input line again");
        // While a question is open, the input line would take the text as its answer.
        if self.pending.front().is_some() {
            texts.extend(Some(std::mem::take(&mut self.line.set_aside)).filter(|text| !text.is_empty()));
            self.line.set_aside = texts.join("\n");
        } else {
            texts.extend(Some(self.line.editor.take_draft()).filter(|text| !text.is_empty()));
            self.line.editor.insert(&texts.join("\n"));
        }
        Effect::StopAndDequeue(turns)
    }

    /// Ends the hint about a turn that stops.
    pub(crate) fn end_stop_hint(&mut self) {
        if self.notice.starts_with(STOPPING) {
            self.notice.clear();
        }
    }

    /// Says what became of a steering input that a turn received and did not answer before it was stopped. It is part
    /// of the conversation, so sending it again would repeat it.
    pub(super) fn hint_at_unanswered_input(&mut self) {
        let Some(input) = self.queue.unanswered.take() else { return };
        if self.setup.one_turn.is_some() || !self.line.editor.is_empty() {
            return;
        }
        let input = one_line(&input, UNANSWERED_COLUMNS);
        self.notice = format!("“{input}” has no answer yet: Enter asks for it");
        self.line.next_key = NextKey::AsksForAnswer;
    }

    fn on_control(&mut self, c: char, after: NextKey) -> Option<Effect> {
        match c {
            'c' => return self.on_interrupt(after),
            'd' if self.line.editor.is_empty() => return Some(Effect::Detach),
            'd' => self.line.editor.delete(),
            'b' => {
                self.line.next_key = NextKey::Detaches;
                self.notice = "Ctrl-B: D detaches".into();
            }
            'o' => {
                self.open_pager();
                return (self.scrollback.left_out > 0).then_some(Effect::LoadEarlier);
            }
            'g' => return Some(Effect::Edit(self.line.editor.whole_text())),
            'r' => {
                self.overlay = Some(Overlay::Search(String::new(), 0));
                return self.more_history();
            }
            'z' => return Some(Effect::Suspend),
            'v' if self.can_attach() => return Some(Effect::PastePicture),
            'x' => self.line.editor.kill(),
            'y' => self.line.editor.yank(),
            'j' => self.line.editor.insert("\n"),
            'a' => self.line.editor.home(),
            'e' => self.line.editor.end(),
            'k' => self.line.editor.delete_to_end(),
            'u' => self.line.editor.delete_to_start(),
            'w' => self.line.editor.delete_word(),
            'p' => self.line.editor.up(),
            'n' => self.line.editor.down(),
            _ => {}
        }
        None
    }

    /// Ctrl-C stops the running command or turn. Otherwise it clears the line, and on an empty line it exits.
    fn on_interrupt(&mut self, after: NextKey) -> Option<Effect> {
        let is_second = matches!(after, NextKey::Leaves);
        if self.shell.command.is_some() {
            return Some(Effect::StopShell);
        }
        if self.is_busy() {
            if self.setup.one_turn.is_some() && is_second {
                return Some(Effect::Detach);
            }
            self.line.next_key = NextKey::Leaves;
            let stop = self.stop_turn();
            if self.setup.one_turn.is_some() {
                self.notice = format!("{STOPPING} (Ctrl-C again leaves now)");
            }
            return Some(stop);
        }
        if self.setup.one_turn.is_some() {
            return Some(Effect::Detach);
        }
        if !self.line.editor.is_empty() {
            self.line.editor.kill();
            self.notice = "cleared · Ctrl-Y brings it back".into();
            return None;
        }
        if is_second {
            return Some(Effect::Detach);
        }
        self.line.next_key = NextKey::Leaves;
        self.notice = match self.session.summary.state {
            SessionState::Ended => "Ctrl-C again to leave".into(),
            _ => "Ctrl-C again to leave; the session continues".into(),
        };
        None
    }

    /// Whether a key answers the open request.
    fn is_answer(&self, key: char) -> bool {
        match self.pending.questions.front() {
            Some(question) => !is_typed(question) && choice_of(key.encode_utf8(&mut [0; 4])).is_some(),
            None if self.pending.feedback.is_some() => self.choose_feedback(key).is_some(),
            None => !self.pending.requests.is_empty() && matches!(key, 'y' | 'n' | '1'..='6'),
        }
    }

    /// The answer of a key, if a question is open; `None` if the key is only text.
    fn answer(&mut self, key: char) -> Option<Option<Effect>> {
        if let Some(question) = self.pending.questions.front() {
            if is_typed(question) {
                return None;
            }
            let choice = choice_of(key.encode_utf8(&mut [0; 4]))?;
            let effect = Effect::Answer(answer::question::params(question.request_id, choice.name()));
            return Some(self.confirm_effect(key, effect, question::confirmation(choice)));
        }
        self.choose_feedback(key).map(Some)
    }

    /// The choice of a key between two answers of the model: the key is the number of the answer.
    fn choose_feedback(&self, key: char) -> Option<Effect> {
        let (request_id, item_ids) = self.pending.feedback.as_ref()?;
        let item_id = *item_ids.get((key.to_digit(10)? as usize).checked_sub(1)?)?;
        Some(Effect::Choose(FeedbackParams { request_id: *request_id, item_id, idempotency_key: None }))
    }

    /// The effect of an answer. Returns no effect yet if the answer needs confirmation.
    fn confirm_effect(&mut self, key: char, effect: Effect, line: Option<StyledLine>) -> Option<Effect> {
        let Some(line) = line else { return Some(effect) };
        self.line.next_key = NextKey::Confirms(UnconfirmedAnswer { key, effect, line });
        None
    }
}
