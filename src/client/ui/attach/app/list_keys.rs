//! Keys while requests wait: the list of answers, words for the model, and edited arguments.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::answer::permission::{self, PermissionChoice};
use crate::ui::attach::app::{App, Effect, LineContent};
use crate::ui::cursor::Step;
use crate::ui::request_list::{ListEntry, ListOutcome};
use crate::ui::request_timing::Phase;
use types::ids::PermissionId;
use types::permission::{Decision, Scope};

/// Minimum rows of the terminal: the head of a request, its answers, the keys, the state and the input line.
const MIN_ROWS: usize = 12;
/// On a page that the user opened, keys that answer count after this time, so that prose and a second press of the
/// same key do not answer it.
const SLIP_TIME: Duration = Duration::from_millis(200);
/// Minimum columns of the terminal, so that the answers can be read.
const MIN_COLUMNS: usize = 20;

/// The number of a key; 0 if it is none.
fn digit(c: char) -> usize {
    c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0)
}

impl App {
    /// Whether the terminal has room for a request with all its answers. Otherwise no key answers it.
    pub(crate) fn fits_request(&self) -> bool {
        self.rows >= MIN_ROWS && self.columns >= MIN_COLUMNS
    }

    /// Whether the list of requests takes keys.
    pub(crate) fn is_list_open(&self) -> bool {
        self.pending.timing.phase() == Some(Phase::Answerable)
            && self.fits_request()
            && self.pending.questions.is_empty()
            && self.pending.feedback.is_none()
            && !self.pending.requests.is_empty()
            && !self.is_writing()
    }

    /// Whether keys are meant for the list and not for the draft in the input line.
    pub(crate) fn has_list_focus(&self) -> bool {
        self.line.editor.is_empty() || self.pending.requests.has_focus
    }

    /// Whether typed text belongs to a request.
    pub(crate) fn is_writing(&self) -> bool {
        self.line.is_for_request()
    }

    /// Handles a key for the list. Returns `None` if the key belongs to the input line.
    pub(super) fn on_list_key(&mut self, key: KeyEvent, now: Instant) -> Option<Option<Effect>> {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return None;
        }
        let (mode, can_all) = (self.session.summary.mode, self.can_all());
        if !self.has_list_focus() {
            return self.on_draft_key(key.code, now);
        }
        if let Some(step) = Step::of_arrow(key.code) {
            self.pending.requests.step(step, mode, can_all);
            return Some(None);
        }
        if self.pending.requests.is_page_open() {
            return Some(self.on_page_key(key.code, now));
        }
        match key.code {
            KeyCode::Left if self.pending.requests.len() > 1 => {
                self.pending.requests.turn_to(Step::Previous);
            }
            KeyCode::Right if self.pending.requests.len() > 1 => self.pending.requests.turn_to(Step::Next),
            KeyCode::PageUp | KeyCode::PageDown => self.scroll_request(key.code),
            KeyCode::Enter => {
                let entry = self.pending.requests.cursor(mode);
                return Some(self.choose(entry, now));
            }
            // Esc denies the request and stops the turn.
            KeyCode::Esc => return Some(Some(self.stop_turn())),
            KeyCode::Tab => match self.pending.requests.cursor(mode) {
                ListEntry::Words => self.type_words(ListEntry::DENY),
                entry @ (ListEntry::ONCE
                | ListEntry::DENY
                | ListEntry::Answer(PermissionChoice::AcceptEdits)) => self.type_words(entry),
                _ => self.notice = "words go along with 1 and 4".into(),
            },
            KeyCode::Char('e') => self.edit_arguments(),
            KeyCode::Char(c) => {
                let number = match c {
                    'y' => ListEntry::ONCE.number(),
                    'n' => ListEntry::DENY.number(),
                    c => digit(c),
                };
                let entries = self.pending.requests.all_entries(mode, can_all);
                if let Some(entry) = entries.into_iter().find(|entry| entry.number() == number) {
                    return Some(self.choose(entry, now));
                }
                if number == 0 {
                    // The user types prose. Hide the list until the user stops typing.
                    self.pending.timing.hide(now);
                    return None;
                }
                self.notice = format!("{number} is not offered here");
            }
            _ => return None,
        }
        Some(None)
    }

    /// Handles a key while the input line contains a draft. Typed keys continue the draft, and the list waits for an
    /// arrow key.
    fn on_draft_key(&mut self, code: KeyCode, now: Instant) -> Option<Option<Effect>> {
        match code {
            KeyCode::Up | KeyCode::Down | KeyCode::Esc | KeyCode::Tab => {
                self.pending.requests.has_focus = true
            }
            KeyCode::Enter => {
                self.notice = "↑↓ moves to the request; the draft is sent when it is answered".into();
            }
            KeyCode::PageUp | KeyCode::PageDown => self.scroll_request(code),
            KeyCode::Char(_) | KeyCode::Backspace => {
                self.pending.timing.hide(now);
                return None;
            }
            _ => return None,
        }
        Some(None)
    }

    /// Handles a key on the page with the rules for the folder. The user opened the page and looks at it, so all keys
    /// count at once, except those that could be a slip.
    fn on_page_key(&mut self, code: KeyCode, now: Instant) -> Option<Effect> {
        let opened = self.pending.page_opened;
        let is_slip = opened.is_some_and(|opened| now.duration_since(opened) < SLIP_TIME);
        let requests = &mut self.pending.requests;
        let answered = match code {
            KeyCode::Esc => {
                requests.close_page();
                None
            }
            KeyCode::Enter | KeyCode::Char(_) if is_slip => None,
            KeyCode::Enter => requests.confirm(None),
            KeyCode::Char(c) => requests.confirm(Some(digit(c))),
            _ => None,
        };
        answered.and_then(|answered| self.apply_answer(answered, now))
    }

    /// Lets the user change the arguments of the call.
    fn edit_arguments(&mut self) {
        let Some(request) = self.pending.requests.current() else { return };
        if !permission::can_edit(request) {
            self.notice = "this call cannot be changed".into();
            return;
        }
        let (id, text) = (request.request_id, permission::editable_input(request));
        self.line.set_draft_aside();
        self.line.content = LineContent::Arguments(id);
        self.line.editor.insert(&text);
    }

    fn scroll_request(&mut self, key: KeyCode) {
        let scroll = &mut self.pending.requests.scroll;
        *scroll = if key == KeyCode::PageDown { *scroll + 5 } else { scroll.saturating_sub(5) };
    }

    fn choose(&mut self, entry: ListEntry, now: Instant) -> Option<Effect> {
        let answered = self.pending.requests.answer(entry)?;
        self.apply_answer(answered, now)
    }

    /// Lets the user type words that are sent with this answer.
    fn type_words(&mut self, entry: ListEntry) {
        let Some(request) = self.pending.requests.current().map(|request| request.request_id) else { return };
        self.line.set_draft_aside();
        self.line.content = LineContent::Words(request, entry);
    }

    fn apply_answer(&mut self, answered: ListOutcome, now: Instant) -> Option<Effect> {
        match answered {
            ListOutcome::Send(params) => {
                if params.scope != Scope::Once && params.decision == Some(Decision::Allow) {
                    self.pending.granted = params.request_id;
                }
                Some(Effect::Approve(params))
            }
            ListOutcome::SendAndAcceptEdits(params) => Some(Effect::ApproveAndAcceptEdits(params)),
            ListOutcome::SendAll(all) => Some(Effect::ApproveAll(all)),
            ListOutcome::Page => {
                self.pending.page_opened = Some(now);
                None
            }
            ListOutcome::Words => {
                self.type_words(ListEntry::DENY);
                None
            }
        }
    }

    /// Sends the typed words or arguments for a request.
    pub(super) fn on_writing_enter(&mut self) -> Option<Effect> {
        match self.line.content {
            LineContent::Input => None,
            LineContent::Arguments(request) => self.send_arguments(request),
            LineContent::Words(request, entry) => self.send_words(request, entry),
        }
    }

    fn send_arguments(&mut self, request: PermissionId) -> Option<Effect> {
        let request = self.pending.requests.find(request)?;
        match permission::parse_edited(request, &self.line.editor.whole_text()) {
            Ok(params) => {
                self.stop_writing();
                Some(Effect::Approve(params))
            }
            Err(error) => {
                self.notice = error;
                None
            }
        }
    }

    fn send_words(&mut self, request: PermissionId, entry: ListEntry) -> Option<Effect> {
        let words = self.line.editor.whole_text();
        self.stop_writing();
        let request = self.pending.requests.find(request)?;
        let ListEntry::Answer(choice) = entry else { return None };
        if choice == PermissionChoice::Deny {
            return Some(Effect::Approve(permission::denial(request, &words)));
        }
        let params = permission::params(request, choice);
        Some(match words.trim().is_empty() {
            true => Effect::Approve(params),
            false => Effect::ApproveAndSay(params, words),
        })
    }

    /// Goes back to the list, and restores the draft in the input line.
    pub(super) fn stop_writing(&mut self) {
        self.line.content = LineContent::Input;
        self.line.restore_draft();
    }
}
