//! The open permission requests with numbered answers, for the screen and for lines. Pure.
//!
//! The numbers are always the same: 1 once, 2 for the session, 3 in this folder, 4 no, 5 all. For a plan, 2 also
//! accepts its edits, and 3 takes words about what to change. The cursor
//! begins on "no" if a wrong yes could do harm.

mod danger;
mod rows;

use std::collections::VecDeque;

use crate::answer::permission::{self, PermissionChoice};
use crate::ui::cursor::Step;
use api::params::ApproveParams;
use types::ids::PermissionId;
use types::permission::{Mode, RequestKind};
use types::session::PermissionRequest;
use types::tool::Subject;

pub(crate) use rows::{ListStyle, home_relative};

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListEntry {
    /// Send this answer.
    Answer(PermissionChoice),
    /// Open the page with the rules for the folder.
    FolderRules,
    /// Do not approve a plan, and say what to change in it. The user types the words next.
    Words,
    /// Allow all listed calls once.
    All,
    /// Allow this edit, and let the session edit files from now on.
    AllEdits,
}

impl ListEntry {
    pub(crate) const ONCE: Self = Self::Answer(PermissionChoice::Once);
    pub(crate) const DENY: Self = Self::Answer(PermissionChoice::Deny);

    /// The number of the entry, which is also its key.
    pub(crate) const fn number(self) -> usize {
        match self {
            Self::Answer(PermissionChoice::Once) => 1,
            Self::Answer(PermissionChoice::Session(_) | PermissionChoice::AcceptEdits) => 2,
            Self::FolderRules | Self::Words | Self::Answer(PermissionChoice::Folder(_)) => 3,
            Self::Answer(PermissionChoice::Deny) => 4,
            Self::All => 5,
            Self::AllEdits => 6,
        }
    }
}

/// Result of an answer that the user gave in the list.
#[derive(Debug)]
pub(crate) enum ListOutcome {
    Send(ApproveParams),
    /// Send all these answers.
    SendAll(Vec<ApproveParams>),
    /// Send this answer, and set the mode in which edits need no request.
    SendAndAcceptEdits(ApproveParams),
    /// The page with the rules for the folder was opened.
    Page,
    /// The user types words for the model next.
    Words,
}

#[derive(Default)]
pub(crate) struct RequestList {
    requests: VecDeque<PermissionRequest>,
    /// Index of the request that is shown in full.
    current: usize,
    /// The entry under the cursor; `None` for the initial entry.
    cursor: Option<ListEntry>,
    /// The row of the cursor on the page with the rules for the folder; `None` if the page is closed.
    page: Option<usize>,
    /// Whether the user moved in the list, so that keys are meant for the list and not for a draft.
    pub(crate) has_focus: bool,
    /// Index of the first visible line of the current request.
    pub(crate) scroll: usize,
}

impl RequestList {
    pub(crate) fn push(&mut self, request: PermissionRequest) {
        self.requests.push_back(request);
    }

    /// Removes a request. Returns the request if the list contained it.
    pub(crate) fn remove(&mut self, id: PermissionId) -> Option<PermissionRequest> {
        let index = self.requests.iter().position(|request| request.request_id == id)?;
        if index == self.current {
            self.reset();
        }
        if index < self.current || self.current + 1 == self.requests.len() {
            self.current = self.current.saturating_sub(1);
        }
        self.requests.remove(index)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PermissionRequest> {
        self.requests.iter()
    }

    /// The request that is shown in full.
    pub(crate) fn current(&self) -> Option<&PermissionRequest> {
        self.requests.get(self.current)
    }

    pub(crate) fn find(&self, id: PermissionId) -> Option<&PermissionRequest> {
        self.requests.iter().find(|request| request.request_id == id)
    }

    /// Resets the cursor, for example when another request is shown.
    pub(crate) fn reset(&mut self) {
        (self.cursor, self.page, self.scroll, self.has_focus) = (None, None, 0, false);
    }

    /// Shows the next request, or the previous one.
    pub(crate) fn turn_to(&mut self, step: Step) {
        self.reset();
        self.current = step.from(self.current, self.requests.len());
        self.has_focus = true;
    }

    /// Whether the page with the rules for the folder is open.
    pub(crate) fn is_page_open(&self) -> bool {
        self.page.is_some()
    }

    pub(crate) fn close_page(&mut self) {
        self.page = None;
    }

    /// The entries of the current request alone.
    pub(crate) fn entries(&self) -> Vec<ListEntry> {
        let Some(request) = self.current() else { return Vec::new() };
        let mut entries = Vec::new();
        for choice in permission::choices(request) {
            match choice {
                // The list offers the narrowest rule for the session, and a page with all rules for the folder.
                PermissionChoice::Folder(0) => entries.push(ListEntry::FolderRules),
                PermissionChoice::Session(1..) | PermissionChoice::Folder(_) => {}
                PermissionChoice::AcceptEdits => {
                    entries.extend([ListEntry::Answer(choice), ListEntry::Words])
                }
                PermissionChoice::Once | PermissionChoice::Session(0) | PermissionChoice::Deny => {
                    entries.push(ListEntry::Answer(choice));
                }
            }
        }
        entries
    }

    /// The entries of the current request, and those that concern more than this request. `can_all` says whether all
    /// requests are visible in full.
    pub(crate) fn all_entries(&self, mode: Mode, can_all: bool) -> Vec<ListEntry> {
        let Some(request) = self.current() else { return Vec::new() };
        let mut entries = self.entries();
        if can_all && self.len() > 1 && self.requests.iter().all(|r| r.kind == RequestKind::Tool) {
            entries.push(ListEntry::All);
        }
        // In another mode, or outside the folder, edits need requests anyway.
        let is_edit = request.kind == RequestKind::Tool && matches!(request.subject, Subject::Edit { .. });
        if is_edit && mode == Mode::Default && !danger::is_dangerous(request, mode) {
            entries.push(ListEntry::AllEdits);
        }
        entries
    }

    /// The entry under the cursor.
    pub(crate) fn cursor(&self, mode: Mode) -> ListEntry {
        let start = match self.current() {
            Some(request) if danger::is_dangerous(request, mode) => ListEntry::DENY,
            _ => ListEntry::ONCE,
        };
        self.cursor.unwrap_or(start)
    }

    /// Moves the cursor.
    pub(crate) fn step(&mut self, step: Step, mode: Mode, can_all: bool) {
        self.has_focus = true;
        if let (Some(row), Some(request)) = (self.page, self.current()) {
            self.page = Some(step.from(row, request.suggestions.len() + 1));
            return;
        }
        let entries = self.all_entries(mode, can_all);
        let index = entries.iter().position(|entry| *entry == self.cursor(mode)).unwrap_or(0);
        self.cursor = entries.get(step.from(index, entries.len())).copied();
    }

    /// Answers the current request with an entry.
    pub(crate) fn answer(&mut self, entry: ListEntry) -> Option<ListOutcome> {
        let request = self.current()?;
        let once = |request| permission::params(request, PermissionChoice::Once);
        Some(match entry {
            ListEntry::Answer(choice) => ListOutcome::Send(permission::params(request, choice)),
            ListEntry::AllEdits => ListOutcome::SendAndAcceptEdits(once(request)),
            ListEntry::All => ListOutcome::SendAll(self.requests.iter().map(once).collect()),
            ListEntry::Words => ListOutcome::Words,
            ListEntry::FolderRules => {
                self.page = Some(0);
                ListOutcome::Page
            }
        })
    }

    /// The answers on the page with the rules for the folder. The last one adds no rule.
    pub(crate) fn page_choices(&self) -> Vec<PermissionChoice> {
        let Some(request) = self.current() else { return Vec::new() };
        let rules = (0..request.suggestions.len()).map(PermissionChoice::Folder);
        rules.chain([PermissionChoice::Once]).collect()
    }

    /// Answers with a row of the page. Without a number, uses the row under the cursor.
    pub(crate) fn confirm(&mut self, number: Option<usize>) -> Option<ListOutcome> {
        let row = number.map_or(self.page, |number| number.checked_sub(1))?;
        let choice = *self.page_choices().get(row)?;
        self.page = None;
        self.answer(ListEntry::Answer(choice))
    }
}

#[cfg(test)]
mod tests;
