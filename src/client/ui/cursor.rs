//! Steps of a cursor in a list. After the last entry comes the first one.

use ratatui::crossterm::event::KeyCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Next,
    Previous,
}

impl Step {
    /// The step of ↑ or ↓.
    pub(crate) fn of_arrow(key: KeyCode) -> Option<Self> {
        match key {
            KeyCode::Down => Some(Self::Next),
            KeyCode::Up => Some(Self::Previous),
            _ => None,
        }
    }

    /// The index after this step in a list of `count` entries.
    pub(crate) fn from(self, index: usize, count: usize) -> usize {
        let count = count.max(1);
        match self {
            Self::Next => (index + 1) % count,
            Self::Previous => (index + count - 1) % count,
        }
    }
}
