//! The open permission requests as a list with numbered answers. Pure.
//!
//! The numbers are always the same: 1 once, 2 for the session, 3 in this folder, 4 no, 5 all. For a plan, 2 also
//! accepts its edits, and 3 takes words about what to change. The cursor
//! begins on "no" if a wrong yes could do harm.

mod danger;
mod rows;

use std::collections::VecDeque;

use crate::ui::prompt;
use api::params::ApproveParams;
use types::ids::PermissionId;
use types::permission::{Decision, Mode, RequestKind, Scope};
use types::session::PermissionRequest;
use types::tool::Subject;

pub(crate) use rows::{ListStyle, home_relative};

/// An answer in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Allow this call.
    Once,
    /// Allow calls like this one for the rest of the session.
    Session,
    /// Approve a plan, and accept edits while it is carried out.
    AcceptEdits,
    /// Allow calls like this one in this folder, until the rule is removed.
    Folder,
    /// Do not approve a plan, and say what to change in it. The user types the words next.
    Words,
    /// Deny the call; the turn continues.
    No,
    /// Allow all listed calls once.
    All,
    /// Allow this edit, and let the session edit files from now on.
    AllEdits,
}

impl Choice {
    /// The number of the answer, which is also its key.
    pub(crate) const fn number(self) -> usize {
        match self {
            Choice::Once => 1,
            Choice::Session | Choice::AcceptEdits => 2,
            Choice::Folder | Choice::Words => 3,
            Choice::No => 4,
            Choice::All => 5,
            Choice::AllEdits => 6,
        }
    }
}

/// Result of an answer that the user gave in the list.
#[derive(Debug)]
pub(crate) enum ListOutcome {
    /// Send this answer.
    Send(ApproveParams),
    /// Send all these answers.
    SendAll(Vec<ApproveParams>),
    /// Send this answer, and set the mode in which edits need no request.
    SendAndAcceptEdits(ApproveParams),
    /// The list has opened or closed the page that confirms a rule.
    Page,
}

/// The open requests.
#[derive(Default)]
pub(crate) struct RequestList {
    requests: VecDeque<PermissionRequest>,
    /// Index of the request that is shown in full.
    current: usize,
    /// The answer under the cursor; `None` for the initial answer.
    cursor: Option<Choice>,
    /// The row of the cursor on the page that confirms a rule for the folder; `None` if the page is closed.
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
        let at = self.requests.iter().position(|request| request.request_id == id)?;
        if at == self.current {
            self.reset();
        }
        if at < self.current || self.current + 1 == self.requests.len() {
            self.current = self.current.saturating_sub(1);
        }
        self.requests.remove(at)
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
    pub(crate) fn turn_to(&mut self, is_next: bool) {
        let count = self.requests.len().max(1);
        let step = if is_next { 1 } else { count - 1 };
        self.reset();
        self.current = (self.current + step) % count;
        self.has_focus = true;
    }

    /// Whether the page that confirms a rule is open.
    pub(crate) fn is_confirming(&self) -> bool {
        self.page.is_some()
    }

    pub(crate) fn close_page(&mut self) {
        self.page = None;
    }

    /// The answers of the current request. `can_all` says whether all requests are visible in full.
    pub(crate) fn choices(&self, mode: Mode, can_all: bool) -> Vec<Choice> {
        let Some(request) = self.current() else { return Vec::new() };
        let has_grant = !request.suggestions.is_empty();
        let mut choices = vec![Choice::Once];
        match request.kind {
            RequestKind::Plan => choices.extend([Choice::AcceptEdits, Choice::Words]),
            // A grant for an unsandboxed retry covers only this command, and lasts at most for the session.
            RequestKind::Sandbox => choices.extend(has_grant.then_some(Choice::Session)),
            RequestKind::Tool if has_grant => choices.extend([Choice::Session, Choice::Folder]),
            RequestKind::Tool => {}
        }
        choices.push(Choice::No);
        if can_all && self.len() > 1 && self.requests.iter().all(|r| r.kind == RequestKind::Tool) {
            choices.push(Choice::All);
        }
        // In another mode, or outside the folder, edits need requests anyway.
        let is_edit = request.kind == RequestKind::Tool && matches!(request.subject, Subject::Edit { .. });
        if is_edit && mode == Mode::Default && !danger::is_dangerous(request, mode) {
            choices.push(Choice::AllEdits);
        }
        choices
    }

    /// The answer under the cursor.
    pub(crate) fn cursor(&self, mode: Mode) -> Choice {
        let start = match self.current() {
            Some(request) if danger::is_dangerous(request, mode) => Choice::No,
            _ => Choice::Once,
        };
        self.cursor.unwrap_or(start)
    }

    /// Moves the cursor.
    pub(crate) fn step(&mut self, is_down: bool, mode: Mode, can_all: bool) {
        self.has_focus = true;
        if let (Some(at), Some(request)) = (self.page, self.current()) {
            let count = request.suggestions.len() + 1;
            self.page = Some((at + if is_down { 1 } else { count - 1 }) % count);
            return;
        }
        let choices = self.choices(mode, can_all);
        let at = choices.iter().position(|choice| *choice == self.cursor(mode)).unwrap_or(0);
        let count = choices.len().max(1);
        self.cursor = choices.get((at + if is_down { 1 } else { count - 1 }) % count).copied();
    }

    /// The answer with this number, if the list has it.
    pub(crate) fn choice_by_number(&self, number: usize, mode: Mode, can_all: bool) -> Option<Choice> {
        self.choices(mode, can_all).into_iter().find(|choice| choice.number() == number)
    }

    /// Answers the current request.
    pub(crate) fn answer(&mut self, choice: Choice) -> Option<ListOutcome> {
        let request = self.current()?;
        let send =
            |decision, scope| Some(ListOutcome::Send(prompt::approval(request, decision, scope, None)));
        match choice {
            Choice::Once => send(Decision::Allow, Scope::Once),
            Choice::Session => send(Decision::Allow, Scope::Session),
            Choice::AcceptEdits => Some(ListOutcome::Send(prompt::approval_with_edits(request))),
            Choice::AllEdits => {
                let params = prompt::approval(request, Decision::Allow, Scope::Once, None);
                Some(ListOutcome::SendAndAcceptEdits(params))
            }
            Choice::No => send(Decision::Deny, Scope::Once),
            Choice::All => {
                let once = |request| prompt::approval(request, Decision::Allow, Scope::Once, None);
                Some(ListOutcome::SendAll(self.requests.iter().map(once).collect()))
            }
            // The caller lets the user type the words first.
            Choice::Words => None,
            Choice::Folder => {
                self.page = Some(0);
                Some(ListOutcome::Page)
            }
        }
    }

    /// Answers with a row of the page that confirms a rule. Without a number, uses the row under the cursor.
    pub(crate) fn confirm(&mut self, number: Option<usize>) -> Option<ListOutcome> {
        let at = number.map_or(self.page, |number| number.checked_sub(1))?;
        let request = self.current()?;
        if at > request.suggestions.len() {
            return None;
        }
        let grant = request.suggestions.get(at).cloned();
        // The last row adds no rule.
        let scope = if grant.is_some() { Scope::Project } else { Scope::Once };
        let params = prompt::approval(request, Decision::Allow, scope, None);
        self.page = None;
        Some(ListOutcome::Send(ApproveParams { grant, ..params }))
    }
}

#[cfg(test)]
mod tests;
