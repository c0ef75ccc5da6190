//! A hook, and an entry that cannot be used. Both say for which calls they are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::condition::{CallTarget, Condition};
use super::matcher::Matcher;
use types::hook::HookEvent;
use types::tool::Subject;

/// Time limit of a hook that sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time limit of a hook.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of hooks in one file.
const MAX_HOOKS: usize = 100;

/// Why no hook of a folder runs.
const SUSPENDED: &str = "files of this folder changed since you trusted it, so its hooks do not run and the calls for which they \
                         would run ask; `agentctl trust` shows the change";

/// Maximum number of problems of a file; one more stands for all others.
const MAX_PROBLEMS: usize = 50;

/// The form of a hook's JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookForm {
    /// The daemon's own.
    Own,
    /// The field names that Claude Code uses.
    Claude,
}

/// What follows if a hook of `pre_tool_use` fails to run: it does not start, dies by a signal or takes too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The user decides about the call.
    #[default]
    Ask,
    /// The call is judged as if there were no such hook.
    Allow,
}

/// The calls, or the other events, for which an entry is.
#[derive(Clone, Debug)]
pub struct CallFilter {
    pub(super) matcher: Matcher,
    pub(super) condition: Option<Condition>,
}

impl CallFilter {
    /// Everything.
    pub(super) fn all() -> Self {
        Self { matcher: Matcher::all(), condition: None }
    }

    /// Whether the entry is for an event with this name: a tool, or the kind of another event. An event without a
    /// name matches.
    #[must_use]
    pub fn includes(&self, name: Option<&str>, call: Option<&CallTarget<'_>>) -> bool {
        // A tool of a server has the name that is offered, and the one that the server gives it.
        let server_name = match call.map(|call| call.subject) {
            Some(Subject::Mcp { server, tool, .. }) => Some(format!("mcp__{server}__{tool}")),
            _ => None,
        };
        let is_match = |name: &str| self.matcher.is_match(name);
        (name.is_none_or(is_match) || server_name.is_some_and(|name| is_match(&name)))
            && match (&self.condition, call) {
                (Some(condition), Some(call)) => condition.is_true(call),
                _ => true,
            }
    }
}

#[derive(Clone, Debug)]
pub struct Hook {
    /// The event on which it runs.
    pub event: HookEvent,
    pub(super) filter: CallFilter,
    /// The shell command.
    pub command: String,
    /// Its time limit.
    pub timeout: Duration,
    /// The form of its JSON.
    pub form: HookForm,
    /// Whether nothing waits for its end. It can then decide nothing.
    pub is_async: bool,
    /// The folder that its environment names as the project's; `None` for the root of the project.
    pub project_dir: Option<PathBuf>,
    /// The file that contains it; empty for the configuration.
    pub file: PathBuf,
    /// The line on which it begins, from 1; 0 if unknown.
    pub line: usize,
}

impl Hook {
    /// The matcher as it was written; `*` for everything.
    #[must_use]
    pub fn matcher(&self) -> &str {
        self.filter.matcher.text()
    }

    /// Whether the hook is for this event. `name` is the tool, or the kind of another event.
    #[must_use]
    pub fn is_for(&self, event: HookEvent, name: Option<&str>, call: Option<&CallTarget<'_>>) -> bool {
        self.event == event && self.filter.includes(name, call)
    }

    /// Whether the hook is for tools that change one file. It then sees the files of a patch, one after the other.
    #[must_use]
    pub fn is_for_edits(&self) -> bool {
        self.filter.matcher.matches_edits()
    }
}

/// What an entry that cannot be used changes.
#[derive(Clone, Debug)]
pub enum ProblemEffect {
    /// Nothing; it is shown.
    Shown,
    /// The calls that it may be for ask.
    Asks(CallFilter),
    /// The calls that it is for ask, unless failures of hooks are allowed.
    AsksOnFailure(CallFilter),
}

/// An entry of a file with hooks that is not used, or a whole file. Displays the file, the line and the reason.
#[derive(Clone, Debug)]
pub struct HookProblem {
    /// The file, as it was named to the reader.
    pub file: PathBuf,
    /// The line on which the entry begins, from 1; 0 for the whole file.
    pub line: usize,
    /// Why it is not used.
    pub reason: String,
    /// What follows for calls.
    pub effect: ProblemEffect,
}

impl HookProblem {
    /// Whether this call asks because of the problem.
    #[must_use]
    pub fn asks(&self, on_failure: OnFailure, tool: &str, call: Option<&CallTarget<'_>>) -> bool {
        match &self.effect {
            ProblemEffect::Shown => false,
            ProblemEffect::Asks(filter) => filter.includes(Some(tool), call),
            ProblemEffect::AsksOnFailure(filter) => {
                on_failure == OnFailure::Ask && filter.includes(Some(tool), call)
            }
        }
    }

    /// The file and the line.
    #[must_use]
    pub fn place(&self) -> String {
        match self.line {
            0 => self.file.display().to_string(),
            line => format!("{}, line {line}", self.file.display()),
        }
    }
}

impl fmt::Display for HookProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.reason)
    }
}

/// The content of one file.
#[derive(Clone, Debug, Default)]
pub struct HookFile {
    /// The hooks, in the order of the file.
    pub hooks: Vec<Hook>,
    /// The entries that are not used.
    pub problems: Vec<HookProblem>,
}

impl HookFile {
    /// A file that cannot be read at all: every call asks, because any hook may have been in it.
    #[must_use]
    pub fn unreadable(file: &Path, reason: impl Into<String>) -> Self {
        let effect = ProblemEffect::Asks(CallFilter::all());
        let problem = HookProblem { file: file.to_owned(), line: 0, reason: reason.into(), effect };
        Self { hooks: Vec::new(), problems: vec![problem] }
    }

    /// The same file in a folder that lost its trust because a file in it changed: no hook runs. The calls for which a
    /// hook would run, or one of `before`, ask. `before` are the hooks that ran while the folder was trusted.
    #[must_use]
    pub fn suspended(self, before: Vec<Hook>) -> Self {
        let Self { hooks, mut problems } = self;
        let is_new = |hook: &Hook| {
            !hooks
                .iter()
                .any(|it| it.file == hook.file && it.line == hook.line && it.matcher() == hook.matcher())
        };
        let before: Vec<Hook> = before.into_iter().filter(is_new).collect();
        let guards = hooks.into_iter().chain(before).filter(|hook| hook.event == HookEvent::PreToolUse);
        problems.extend(guards.map(|hook| HookProblem {
            file: hook.file,
            line: hook.line,
            reason: SUSPENDED.to_owned(),
            effect: ProblemEffect::Asks(hook.filter),
        }));
        Self { hooks: Vec::new(), problems }
    }

    /// Adds the content of another file.
    pub fn append(&mut self, other: HookFile) {
        self.hooks.extend(other.hooks);
        self.problems.extend(other.problems);
    }
}

/// Collects the entries of one file.
pub(super) struct FileReader<'f> {
    file: &'f Path,
    form: HookForm,
    found: HookFile,
}

/// The parts of an entry, as they were written.
pub(super) struct Entry {
    pub event: HookEvent,
    pub filter: CallFilter,
    pub command: String,
    pub timeout: Option<Duration>,
    pub is_async: bool,
    pub line: usize,
}

impl<'f> FileReader<'f> {
    pub fn new(file: &'f Path, form: HookForm) -> Self {
        Self { file, form, found: HookFile::default() }
    }

    pub fn finish(self) -> HookFile {
        self.found
    }

    /// Adds a problem that only informs.
    pub fn show(&mut self, line: usize, reason: impl Into<String>) {
        self.add(line, reason.into(), ProblemEffect::Shown);
    }

    /// Adds an entry that is not understood.
    pub fn refuse(&mut self, event: HookEvent, line: usize, filter: CallFilter, reason: impl Into<String>) {
        let is_guard = event == HookEvent::PreToolUse;
        let effect = if is_guard { ProblemEffect::Asks(filter) } else { ProblemEffect::Shown };
        self.add(line, format!("hooks.{}: {}", self.event_name(event), reason.into()), effect);
    }

    /// Adds an entry that is understood, but of a kind that the daemon does not run.
    pub fn skip(&mut self, event: HookEvent, line: usize, filter: CallFilter, reason: impl Into<String>) {
        let is_guard = event == HookEvent::PreToolUse;
        let effect = if is_guard { ProblemEffect::AsksOnFailure(filter) } else { ProblemEffect::Shown };
        self.add(line, format!("hooks.{}: {}", self.event_name(event), reason.into()), effect);
    }

    pub fn add_hook(&mut self, entry: Entry) {
        let Entry { event, filter, command, timeout, is_async, line } = entry;
        if matches!(event, HookEvent::PreToolUse | HookEvent::PostToolUse) {
            self.refuse_misspelled(event, line, &filter);
        }
        if command.trim().is_empty() {
            self.refuse(event, line, filter, "the command is empty");
        } else if self.found.hooks.len() >= MAX_HOOKS {
            self.refuse(event, line, filter, format!("a file may have at most {MAX_HOOKS} hooks"));
        } else {
            let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(Duration::from_millis(1), MAX_TIMEOUT);
            let (form, file) = (self.form, self.file.to_owned());
            let project_dir = None;
            self.found.hooks.push(Hook {
                event,
                filter,
                command,
                timeout,
                form,
                is_async,
                project_dir,
                file,
                line,
            });
        }
    }

    /// A name in another letter case matches no call. The calls that it means ask, because the hook may be a guard.
    fn refuse_misspelled(&mut self, event: HookEvent, line: usize, filter: &CallFilter) {
        for (name, tool) in filter.matcher.misspelled_tools() {
            let meant = CallFilter { matcher: Matcher::name(tool), condition: filter.condition.clone() };
            let reason = format!("the matcher {name:?} matches no call, because the tool is named {tool:?}");
            self.refuse(event, line, meant, reason);
        }
    }

    /// Whether the file has so many problems that every call asks.
    pub fn is_full(&self) -> bool {
        self.found.problems.len() > MAX_PROBLEMS
    }

    fn add(&mut self, line: usize, reason: String, effect: ProblemEffect) {
        let file = self.file.to_owned();
        if self.found.problems.len() < MAX_PROBLEMS {
            self.found.problems.push(HookProblem { file, line, reason, effect });
            return;
        }
        if self.found.problems.len() == MAX_PROBLEMS {
            let reason = "there are more problems in this file, so every call asks".into();
            let effect = ProblemEffect::Asks(CallFilter::all());
            self.found.problems.push(HookProblem { file, line, reason, effect });
        }
    }

    fn event_name(&self, event: HookEvent) -> &'static str {
        match self.form {
            HookForm::Own => event.name(),
            HookForm::Claude => event.claude_name(),
        }
    }
}

/// The event of this name. Letter case, blanks and `_` do not matter.
pub(super) fn find_event(name: &str) -> Option<HookEvent> {
    let letters = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let name = letters(name);
    HookEvent::ALL.into_iter().find(|event| letters(event.claude_name()) == name)
}
