//! Content and keys of the list of sessions. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use types::ids::SessionId;
use types::session::SessionView;

/// Action that a key requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Choose nothing.
    Leave,
    /// Begin a new conversation.
    New,
    /// Open the selected session.
    Open,
    /// Read the sessions again: the search or the folders have changed.
    Load,
    /// Read the last messages of a session.
    Preview(SessionId),
    Rename(SessionId, String),
}

/// The state of the list.
#[derive(Debug, Default)]
pub(super) struct Picker {
    pub(super) sessions: Vec<SessionView>,
    /// Whether older sessions exist that the list does not contain.
    pub(super) has_more: bool,
    pub(super) selected: usize,
    pub(super) query: String,
    pub(super) is_everywhere: bool,
    pub(super) folder: String,
    /// The last messages of a session, if they are shown. The flag says whether a message is the user's.
    pub(super) preview: Option<(SessionId, Vec<(bool, String)>)>,
    /// The new title that is being typed.
    pub(super) renaming: Option<String>,
    pub(super) notice: String,
}

impl Picker {
    pub(super) fn set_sessions(&mut self, sessions: Vec<SessionView>, has_more: bool) {
        (self.sessions, self.has_more) = (sessions, has_more);
        self.selected = self.selected.min(self.sessions.len().saturating_sub(1));
    }

    pub(super) fn current(&self) -> Option<&SessionView> {
        self.sessions.get(self.selected)
    }

    pub(super) fn set_preview(&mut self, session: SessionId, messages: Vec<(bool, String)>) {
        self.preview = Some((session, messages));
    }

    /// Pasted text goes into the search or the title, and never opens anything.
    pub(super) fn on_paste(&mut self, text: &str) -> Option<Action> {
        let text = text.lines().next().unwrap_or_default();
        match &mut self.renaming {
            Some(title) => {
                title.push_str(text);
                None
            }
            None => {
                self.query.push_str(text);
                self.search()
            }
        }
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> Option<Action> {
        self.notice.clear();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.renaming.is_some() {
            return self.on_title_key(key.code, is_control);
        }
        match key.code {
            KeyCode::Char('c' | 'd') if is_control => return Some(Action::Leave),
            KeyCode::Char('a') if is_control => {
                self.is_everywhere = !self.is_everywhere;
                return self.search();
            }
            KeyCode::Char('r') if is_control => {
                self.renaming = self.current().map(|session| session.summary.title.clone());
            }
            KeyCode::Char('u') if is_control => {
                self.query.clear();
                return self.search();
            }
            KeyCode::Esc if self.preview.take().is_some() => {}
            KeyCode::Esc => return Some(Action::New),
            KeyCode::Enter => return self.current().map(|_| Action::Open),
            // In a search, a blank separates words, so it does not toggle the preview.
            KeyCode::Char(' ') if self.query.is_empty() => return self.toggle_preview(),
            KeyCode::Tab => return self.toggle_preview(),
            KeyCode::Up => return self.step(-1),
            KeyCode::Down => return self.step(1),
            KeyCode::PageUp => return self.step(-10),
            KeyCode::PageDown => return self.step(10),
            KeyCode::Backspace => {
                self.query.pop();
                return self.search();
            }
            KeyCode::Char(c) if !is_control => {
                self.query.push(c);
                return self.search();
            }
            _ => {}
        }
        None
    }

    fn search(&mut self) -> Option<Action> {
        self.selected = 0;
        self.preview = None;
        Some(Action::Load)
    }

    fn toggle_preview(&mut self) -> Option<Action> {
        match self.preview.take() {
            Some(_) => None,
            None => self.current().map(|session| Action::Preview(session.session_id)),
        }
    }

    /// Moves the selection. An open preview follows it.
    fn step(&mut self, by: isize) -> Option<Action> {
        self.selected = self.selected.saturating_add_signed(by).min(self.sessions.len().saturating_sub(1));
        self.preview.as_ref()?;
        self.current().map(|session| Action::Preview(session.session_id))
    }

    fn on_title_key(&mut self, code: KeyCode, is_control: bool) -> Option<Action> {
        let title = self.renaming.as_mut()?;
        match code {
            KeyCode::Esc => self.renaming = None,
            KeyCode::Char('c') if is_control => self.renaming = None,
            KeyCode::Char('u') if is_control => title.clear(),
            KeyCode::Backspace => _ = title.pop(),
            KeyCode::Char(c) if !is_control => title.push(c),
            KeyCode::Enter => {
                let title = self.renaming.take()?.trim().to_owned();
                if title.is_empty() {
                    self.notice = "a title cannot be empty".into();
                    return None;
                }
                return self.current().map(|session| Action::Rename(session.session_id, title));
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::picker::view::tests::picker;

    fn press(picker: &mut Picker, code: KeyCode) -> Option<Action> {
        picker.on_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn control(picker: &mut Picker, c: char) -> Option<Action> {
        picker.on_key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL))
    }

    #[test]
    fn picker_previews_with_space_until_search_begins() {
        let mut picker = Picker { query: String::new(), ..picker() };
        let ids: Vec<SessionId> = picker.sessions.iter().map(|session| session.session_id).collect();
        assert_eq!(press(&mut picker, KeyCode::Char(' ')), Some(Action::Preview(ids[0])));
        picker.set_preview(ids[0], vec![(true, "hi".into())]);
        assert_eq!(press(&mut picker, KeyCode::Down), Some(Action::Preview(ids[1])), "it follows");
        assert_eq!(press(&mut picker, KeyCode::Esc), None, "closes the preview first");
        assert!(picker.preview.is_none());
        assert_eq!(press(&mut picker, KeyCode::Char('a')), Some(Action::Load));
        assert_eq!(press(&mut picker, KeyCode::Char(' ')), Some(Action::Load));
        assert_eq!(picker.query, "a ");
        assert_eq!(press(&mut picker, KeyCode::Tab), Some(Action::Preview(ids[0])));
        assert_eq!(press(&mut picker, KeyCode::Esc), Some(Action::New));
    }

    #[test]
    fn picker_renames_and_switches_folders() {
        let mut picker = picker();
        let id = picker.sessions[0].session_id;
        assert_eq!(control(&mut picker, 'r'), None);
        assert_eq!(picker.renaming.as_deref(), Some("fix login"));
        control(&mut picker, 'u');
        assert_eq!(press(&mut picker, KeyCode::Enter), None, "it needs a title");
        control(&mut picker, 'r');
        picker.on_paste(" again\nx");
        assert_eq!(press(&mut picker, KeyCode::Enter), Some(Action::Rename(id, "fix login again".into())));
        assert_eq!(control(&mut picker, 'a'), Some(Action::Load));
        assert!(picker.is_everywhere);
        assert_eq!(press(&mut picker, KeyCode::Enter), Some(Action::Open));
        assert_eq!(control(&mut picker, 'c'), Some(Action::Leave));
    }
}
