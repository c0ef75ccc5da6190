//! Reminders: short texts for the model about changes around the conversation. Each reminder is an
//! event, and its text joins the newest message of the user's role. Later requests repeat the text
//! unchanged, so their beginning stays the same.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::request::model_texts;
use crate::state::{CallStage, State};
use types::mcp::{McpState, McpStatus};
use types::permission::Mode;
use types::reminder::{FileVersion, ReminderKind};
use types::time::Timestamp;
use types::todo::TodoStatus;

/// Number of steps with tool calls but without a change of the todo list after which the model is
/// reminded of the list.
const TODO_REMINDER_STEPS: u32 = 10;
/// Maximum number of files, servers or sub-agents that one reminder names.
const MAX_NAMED_FILES: usize = 20;
/// Code of an edit whose text occurs several times.
const MULTIPLE_MATCHES: &str = "multiple_matches";

/// A reminder that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reminder {
    pub kind: ReminderKind,
    pub text: String,
    pub files: Vec<FileVersion>,
}

fn plain(kind: ReminderKind, text: impl Into<String>) -> Reminder {
    Reminder { kind, text: text.into(), files: Vec::new() }
}

/// The reminders for a user's message that depend only on the state. `is_first` says that the message
/// begins the conversation.
pub(crate) fn of_message(state: &State, now: Timestamp, is_first: bool) -> Vec<Reminder> {
    let start = is_first.then(|| plain(ReminderKind::SessionStart, model_texts::SESSION_START));
    let plan = (state.mode() == Mode::Plan).then(|| plain(ReminderKind::PlanMode, model_texts::PLAN_MODE));
    let day = (now.day() != state.reported_day)
        .then(|| plain(ReminderKind::NewDay, model_texts::new_day(&now.date())));
    let aborted = (!state.aborted_subagents.is_empty()).then(|| {
        let named = &state.aborted_subagents[..state.aborted_subagents.len().min(MAX_NAMED_FILES)];
        plain(ReminderKind::SubagentsAborted, model_texts::subagents_aborted(named))
    });
    [start, plan, day, aborted].into_iter().flatten().collect()
}

/// The reminder about MCP servers that failed or still start.
pub(crate) fn of_servers(statuses: &[McpStatus]) -> Option<Reminder> {
    let line = |status: &McpStatus| match status.state {
        McpState::Failed => Some(model_texts::server_failed(&status.server, status.error.as_deref())),
        McpState::Starting => Some(model_texts::server_starts(&status.server)),
        McpState::Disabled | McpState::Untrusted | McpState::Ready => None,
    };
    let lines: Vec<String> = statuses.iter().filter_map(line).take(MAX_NAMED_FILES).collect();
    (!lines.is_empty()).then(|| plain(ReminderKind::ServersFailed, model_texts::servers_failed(&lines)))
}

/// The reminders about files that differ on disk from the versions that the model knows. Each version is reported
/// once.
pub(crate) fn of_files(
    state: &State,
    changed_files: Vec<FileVersion>,
    instructions: Option<&[FileVersion]>,
) -> Vec<Reminder> {
    let known = &state.reported_files;
    let is_new = |file: &FileVersion| known.get(&file.path) != Some(&file.digest);
    let mut files: Vec<FileVersion> = changed_files.into_iter().filter(is_new).collect();
    let both = state.instructions.as_deref().zip(instructions);
    let differing = both.map(|(known, now)| difference(known, now));
    let differing = differing.unwrap_or_default();
    // A file with instructions is reported only in the reminder about instructions.
    files.retain(|file| differing.iter().all(|other| other.path != file.path));
    let of = |kind, text: fn(&[String], &[String]) -> String, files: Vec<FileVersion>| {
        let (changed, removed) = (names(&files, false), names(&files, true));
        (!files.is_empty()).then(|| Reminder { kind, text: text(&changed, &removed), files })
    };
    let read = of(ReminderKind::FilesChanged, model_texts::files_changed, files);
    let project = of(ReminderKind::InstructionsChanged, model_texts::instructions_changed, differing);
    read.into_iter().chain(project).collect()
}

/// The reminder about edits of the newest message that were refused because their text occurs several times.
pub(crate) fn of_matches(state: &State) -> Option<Reminder> {
    let is_refused = |stage: &CallStage| matches!(stage, CallStage::Done { code: Some(code), .. } if code == MULTIPLE_MATCHES);
    let refused = state.calls().iter().any(|call| is_refused(&call.stage));
    refused.then(|| plain(ReminderKind::SeveralMatches, model_texts::SEVERAL_MATCHES))
}

/// The reminder after a summary replaced the conversation.
pub(crate) fn of_compaction(state: &State) -> Reminder {
    plain(ReminderKind::Compacted, model_texts::compacted(&state.todos))
}

/// The reminder about the todo list. An empty list is reported once in a turn. A list with open entries
/// is reported again after each [`TODO_REMINDER_STEPS`] steps without an update.
pub(crate) fn of_todos(state: &State) -> Option<Reminder> {
    let steps = state.turn.as_ref().map_or(0, |turn| turn.steps_since_todo);
    if state.todos.is_empty() {
        return (steps == TODO_REMINDER_STEPS)
            .then(|| plain(ReminderKind::TodoEmpty, model_texts::TODO_EMPTY));
    }
    let is_open = state.todos.iter().any(|todo| todo.status != TodoStatus::Completed);
    let is_due = is_open && steps > 0 && steps.is_multiple_of(TODO_REMINDER_STEPS);
    is_due.then(|| plain(ReminderKind::TodoStale, model_texts::todo_stale(&state.todos)))
}

/// Returns the files that differ from the known ones. A removed file has an empty digest.
fn difference(known: &BTreeMap<PathBuf, String>, now: &[FileVersion]) -> Vec<FileVersion> {
    let changed = now.iter().filter(|file| known.get(&file.path) != Some(&file.digest)).cloned();
    let is_gone = |path: &&PathBuf| now.iter().all(|file| file.path != **path);
    let removed = known.keys().filter(is_gone);
    changed.chain(removed.map(|path| FileVersion { path: path.clone(), digest: String::new() })).collect()
}

/// Names of the changed files, or of the removed files, for a text.
fn names(files: &[FileVersion], removed: bool) -> Vec<String> {
    let of_kind = || files.iter().filter(|file| file.digest.is_empty() == removed);
    let shown = of_kind().take(MAX_NAMED_FILES).map(|file| file.path.display().to_string());
    let more = of_kind().count().saturating_sub(MAX_NAMED_FILES);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}
