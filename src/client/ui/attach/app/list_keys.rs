//! Keys while requests wait: the list of answers, words for the model, and edited arguments.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::ui::attach::app::{AnswerFeedback, App, Effect};
use crate::ui::prompt;
use crate::ui::request_list::{Choice, ListOutcome};
use crate::ui::request_timing::Phase;
use types::permission::{Decision, Scope};

/// Minimum rows of the terminal: the head of a request, its answers, the keys, the state and the input line.
const MIN_ROWS: usize = 12;
/// On a page that the user opened, keys that answer count after this time, so that prose and a second press of the
/// same key do not answer it.
const SLIP_TIME: Duration = Duration::from_millis(200);
/// Minimum columns of the terminal, so that the answers can be read.
const MIN_COLUMNS: usize = 20;

impl App {
    /// Whether the terminal has room for a request with all its answers. Otherwise no key answers it.
    pub(crate) fn fits_request(&self) -> bool {
        self.rows >= MIN_ROWS && self.columns >= MIN_COLUMNS
    }

    /// Whether the list of requests takes keys.
    pub(crate) fn is_list_open(&self) -> bool {
        self.timing.phase() == Some(Phase::Answerable)
            && self.fits_request()
            && self.questions.is_empty()
            && self.feedback.is_none()
            && !self.requests.is_empty()
            && !self.is_writing()
    }

    /// Whether keys are meant for the list and not for the draft in the input line.
    pub(crate) fn has_list_focus(&self) -> bool {
        self.editor.is_empty() || self.requests.has_focus
    }

    /// Whether typed text belongs to a request.
    pub(crate) fn is_writing(&self) -> bool {
        self.feedback_target.is_some() || self.editing.is_some()
    }

    /// Handles a key for the list. Returns `None` if the key belongs to the input line.
    pub(super) fn on_list_key(&mut self, key: KeyEvent, now: Instant) -> Option<Option<Effect>> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let (mode, can_all) = (self.session.summary.mode, self.can_all());
        if !self.has_list_focus() {
            // The input line contains a draft. Typed keys continue it, and the list waits for an arrow key.
            return match key.code {
                KeyCode::Up | KeyCode::Down | KeyCode::Esc | KeyCode::Tab => {
                    self.requests.has_focus = true;
                    Some(None)
                }
                KeyCode::Enter => {
                    self.notice = "↑↓ moves to the request; the draft is sent when it is answered".into();
                    Some(None)
                }
                KeyCode::PageUp | KeyCode::PageDown => self.scroll_request(key.code),
                KeyCode::Char(_) | KeyCode::Backspace => {
                    self.timing.hide(now);
                    None
                }
                _ => None,
            };
        }
        if self.requests.is_confirming() {
            // The page has the user's attention already, because the user opened it. So all keys count at once,
            // except those that could be a slip.
            let is_slip = self.page_opened.is_some_and(|at| now.duration_since(at) < SLIP_TIME);
            let answered = match key.code {
                KeyCode::Esc => {
                    self.requests.close_page();
                    return Some(None);
                }
                KeyCode::Up | KeyCode::Down => {
                    self.requests.step(key.code == KeyCode::Down, mode, can_all);
                    return Some(None);
                }
                KeyCode::Enter | KeyCode::Char(_) if is_slip => None,
                KeyCode::Enter => self.requests.confirm(None),
                KeyCode::Char(c) => {
                    self.requests.confirm(Some(usize::try_from(c.to_digit(10).unwrap_or(0)).unwrap_or(0)))
                }
                _ => None,
            };
            return Some(answered.and_then(|answered| self.apply_answer(answered, now)));
        }
        match key.code {
            KeyCode::Up | KeyCode::Down => self.requests.step(key.code == KeyCode::Down, mode, can_all),
            KeyCode::Left | KeyCode::Right if self.requests.len() > 1 => {
                self.requests.turn_to(key.code == KeyCode::Right);
            }
            KeyCode::PageUp | KeyCode::PageDown => return self.scroll_request(key.code),
            KeyCode::Enter => {
                let choice = self.requests.cursor(mode);
                return Some(self.choose(choice, now));
            }
            // Esc denies the request and stops the turn.
            KeyCode::Esc => {
                return Some(Some(self.stop_turn()));
            }
            KeyCode::Tab => {
                let choice = self.requests.cursor(mode);
                let request = self.requests.current()?.request_id;
                if choice == Choice::Words {
                    return Some(self.choose(choice, now));
                }
                if matches!(choice, Choice::Once | Choice::No | Choice::AcceptEdits) {
                    self.set_aside.push_str(&self.editor.take_draft());
                    self.feedback_target = Some(AnswerFeedback { request, choice });
                } else {
                    self.notice = "words go along with 1 and 4".into();
                }
            }
            KeyCode::Char('e') => {
                let request = self.requests.current()?;
                let (id, text) = (request.request_id, prompt::editable_input(request));
                if prompt::answer_for_key(request, 'e') != Some(prompt::Answer::Edit) {
                    self.notice = "this call cannot be changed".into();
                    return Some(None);
                }
                self.set_aside.push_str(&self.editor.take_draft());
                self.editing = Some(id);
                self.editor.insert(&text);
            }
            KeyCode::Char(c) => {
                let number = match c {
                    'y' => 1,
                    'n' => 4,
                    c => usize::try_from(c.to_digit(10).unwrap_or(0)).unwrap_or(0),
                };
                if let Some(choice) = self.requests.choice_by_number(number, mode, can_all) {
                    return Some(self.choose(choice, now));
                }
                if number > 0 {
                    self.notice = format!("{number} is not offered here");
                    return Some(None);
                }
                // The user types prose. Hide the list until the user stops typing.
                self.timing.hide(now);
                return None;
            }
            _ => return None,
        }
        Some(None)
    }

    fn scroll_request(&mut self, key: KeyCode) -> Option<Option<Effect>> {
        let scroll = &mut self.requests.scroll;
        *scroll = if key == KeyCode::PageDown { *scroll + 5 } else { scroll.saturating_sub(5) };
        Some(None)
    }

    fn choose(&mut self, choice: Choice, now: Instant) -> Option<Effect> {
        if choice == Choice::Words {
            let request = self.requests.current()?.request_id;
            self.set_aside.push_str(&self.editor.take_draft());
            self.feedback_target = Some(AnswerFeedback { request, choice: Choice::No });
            return None;
        }
        let answered = self.requests.answer(choice)?;
        self.apply_answer(answered, now)
    }

    fn apply_answer(&mut self, answered: ListOutcome, now: Instant) -> Option<Effect> {
        match answered {
            ListOutcome::Send(params) => {
                if params.scope != Scope::Once && params.decision == Some(Decision::Allow) {
                    self.granted = params.request_id;
                }
                Some(Effect::Approve(params))
            }
            ListOutcome::SendAndAcceptEdits(params) => Some(Effect::ApproveAndAcceptEdits(params)),
            ListOutcome::SendAll(all) => Some(Effect::ApproveAll(all)),
            ListOutcome::Page => {
                self.page_opened = Some(now);
                None
            }
        }
    }

    /// Sends the typed words or arguments for a request.
    pub(super) fn on_writing_enter(&mut self) -> Option<Effect> {
        if let Some(id) = self.editing {
            let request = self.requests.find(id)?;
            return match prompt::parse_edited(request, &self.editor.whole_text()) {
                Ok(params) => {
                    self.stop_writing();
                    Some(Effect::Approve(params))
                }
                Err(why) => {
                    self.notice = why;
                    None
                }
            };
        }
        let AnswerFeedback { request, choice } = self.feedback_target?;
        let text = Some(self.editor.whole_text()).filter(|text| !text.trim().is_empty());
        self.stop_writing();
        let request = self.requests.find(request)?;
        if choice == Choice::No {
            return Some(Effect::Approve(prompt::approval(request, Decision::Deny, Scope::Once, text)));
        }
        let params = match choice {
            Choice::AcceptEdits => prompt::approval_with_edits(request),
            _ => prompt::approval(request, Decision::Allow, Scope::Once, None),
        };
        Some(match text {
            Some(text) => Effect::ApproveAndSay(params, text),
            None => Effect::Approve(params),
        })
    }

    /// Goes back to the list, and restores the draft in the input line.
    pub(super) fn stop_writing(&mut self) {
        (self.feedback_target, self.editing) = (None, None);
        self.editor.clear();
        self.editor.insert(&std::mem::take(&mut self.set_aside));
    }
}
