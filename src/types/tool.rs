//! Tools as the rest of the house sees them: their card, what a call would touch, what came of it.

use std::path::PathBuf;

use super::background::{BackgroundRead, BashId};
use super::blob::{Attachment, Blob, BlobRef};
use super::ids::BlobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model is told of a tool, and how the engine may run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name models are trained on.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the input, an object.
    pub input_schema: Value,
    /// Calls of this tool change nothing and may run beside each other (Q22), and may run again
    /// after a crash (S4).
    pub read_only: bool,
}

/// Which of the tools a session offers its models (Q42). By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// Only these; absent for all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allow: Option<Vec<String>>,
    /// None of these.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub deny: Vec<String>,
}

impl ToolDefinition {
    /// Whether calls of this tool may run beside each other: see [`Prepared::runs_beside`].
    #[must_use]
    pub fn is_concurrency_safe(&self) -> bool {
        self.read_only || self.name == "WebFetch"
    }
}

impl ToolChoice {
    /// Whether all are offered.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tool is offered.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| name == tool);
        self.allow.as_deref().is_none_or(is_in) && !is_in(&self.deny)
    }
}

/// What a call would do, found out without doing it. Judged before the call may start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparedCall {
    /// What the permission rules judge.
    pub subject: Subject,
    /// One line for people. Of Bash the first line of the command, then what the model says of it.
    pub summary: String,
    /// The change as a unified diff, for calls that change a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff: Option<String>,
    /// See [`ToolCard::read_only`].
    pub read_only: bool,
    /// For calls that change a file: what it held and would hold. It stands in the journal before the
    /// file is touched, so that after a crash the file itself says whether it was (S4).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<PlannedChange>,
    /// For commands: how they are held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Confinement>,
}

/// How a command is held (S25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// 3 bubblewrap, 2 Landlock, 1 limits of resources alone, 0 nothing.
    pub level: u8,
    /// Whether it reaches the network.
    pub network: bool,
    /// It runs outside the sandbox that it would have: a person let it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub outside: bool,
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outside = if self.outside { "outside the sandbox, " } else { "" };
        write!(f, "{outside}level {}, network {}", self.level, if self.network { "on" } else { "off" })
    }
}

impl Confinement {
    /// How a command runs that a person let out of its sandbox: limits of resources are all that holds.
    pub const OUTSIDE: Self = Self { level: 1, network: true, outside: true };

    /// Whether less is held than by the other.
    #[must_use]
    pub fn is_weaker_than(self, other: Self) -> bool {
        self.level < other.level || (self.network && !other.network)
    }
}

/// Whether a command that the sandbox stopped is offered to run again outside of it: `[sandbox]
/// offer_outside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferOutside {
    /// Never.
    Never,
    /// Where a person attends.
    #[default]
    Attended,
    /// In unattended sessions as well; their deadline holds.
    Always,
}

impl OfferOutside {
    /// Whether a command of such a session may be offered.
    #[must_use]
    pub const fn holds(self, unattended: bool) -> bool {
        match self {
            OfferOutside::Never => false,
            OfferOutside::Attended => !unattended,
            OfferOutside::Always => true,
        }
    }
}

/// What part of the sandbox stopped a command, as far as its own words tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    /// A file that may not be written or seen, or a system call that is forbidden.
    Files,
    /// The network, which is off.
    Network,
}

impl Barrier {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Barrier::Files => "files",
            Barrier::Network => "network",
        }
    }
}

/// That the sandbox seems to have stopped a command: a guess from what the command said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blocked {
    /// What was in the way.
    pub by: Barrier,
    /// The path or the host that the command named, if it named one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub what: Option<String>,
}

impl PreparedCall {
    /// Whether the call may run beside others that are like it (Q22): it changes nothing here.
    #[must_use]
    pub fn runs_beside(&self) -> bool {
        self.read_only || matches!(self.subject, Subject::Web { .. })
    }
}

/// What a call on files would come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PlannedChange {
    /// Of calls that touch several files: what becomes of each, in the order in which it is done.
    Several {
        /// The files.
        files: Vec<PlannedFile>,
    },
    /// Of calls that change one file: that of [`Subject::Edit`].
    One(PlannedEdit),
}

/// What becomes of one of several files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedFile {
    /// The file, resolved.
    pub path: PathBuf,
    /// SHA-256 of the content before, in hexadecimal; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after; absent if the file is removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_after: Option<String>,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Whether the model then knows the whole file.
    pub whole: bool,
}

/// What a change of one file would come to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedEdit {
    /// SHA-256 of the content before, in hexadecimal; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after.
    pub sha256_after: String,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Whether the model then knows the whole file.
    pub whole: bool,
}

/// What became of a change of files that a crash interrupted, as the files themselves tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// Every file holds the new content; this is how they look now.
    Done {
        /// The files that are there.
        records: Vec<ReadRecord>,
        /// What changed, without the diffs.
        changes: Vec<FileChange>,
    },
    /// Of several files the first ones hold the new content, the others still the old.
    Partly {
        /// Those that were changed and are there.
        records: Vec<ReadRecord>,
        /// What changed, without the diffs.
        changes: Vec<FileChange>,
        /// Which were changed and which not, for the model.
        text: String,
    },
    /// Every file holds the old content.
    NotDone,
    /// Neither, or it could not be looked at: why, for people.
    Conflict(String),
}

/// What the permission rules judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Subject {
    /// Reads or lists a path.
    Read {
        /// The object that will be opened.
        path: ResolvedPath,
    },
    /// Creates or changes a file.
    Edit {
        /// The object that will be written.
        path: ResolvedPath,
    },
    /// Removes a file.
    Delete {
        /// The object that will be removed.
        path: ResolvedPath,
    },
    /// Fetches a page.
    Web {
        /// The whole address.
        url: String,
        /// Its host, lower case, without a port.
        host: String,
    },
    /// Does several of these: each is judged, and the strictest verdict counts.
    Several {
        /// None of them is again several.
        parts: Vec<Subject>,
    },
    /// Runs a command.
    Bash {
        /// The exact text.
        command: String,
        /// Whether it goes on behind its call.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        background: bool,
        /// The folder in which it starts, if that is not the workspace itself: a command before it has gone there.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cwd: Option<PathBuf>,
    },
    /// Looks at or ends a background command of the session itself.
    Background {
        /// The command.
        bash_id: BashId,
    },
    /// Reads a blob of the session itself.
    Blob {
        /// The blob.
        blob_id: BlobId,
    },
    /// Any other tool.
    Tool {
        /// Its name.
        name: String,
    },
}

impl Subject {
    /// A command that starts in the workspace itself and ends with its call.
    #[must_use]
    pub fn command(text: impl Into<String>) -> Self {
        Subject::Bash { command: text.into(), background: false, cwd: None }
    }

    /// Whether the call does nothing but change files, so that after a crash the files themselves
    /// say what became of it.
    #[must_use]
    pub fn changes_files(&self) -> bool {
        match self {
            Subject::Edit { .. } | Subject::Delete { .. } => true,
            Subject::Several { parts } => !parts.is_empty() && parts.iter().all(Subject::changes_files),
            Subject::Read { .. }
            | Subject::Web { .. }
            | Subject::Bash { .. }
            | Subject::Background { .. }
            | Subject::Blob { .. }
            | Subject::Tool { .. } => false,
        }
    }
}

/// A path after links, `..` and `~` were resolved (P4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedPath {
    /// Absolute and free of links. The last parts may not exist yet.
    pub path: PathBuf,
    /// Whether it lies in the session's workspace.
    pub in_workspace: bool,
    /// Whether writing there could change what runs or who may do what.
    pub care: PathSensitivity,
    /// Other names of the same file (hard links) of which a rule speaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled: Vec<PathBuf>,
}

/// How careful to be with a path, from least to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathSensitivity {
    /// An ordinary file.
    #[default]
    Ordinary,
    /// Likely holds secrets: reading asks.
    Secret,
    /// Has other names (hard links), not all of which were found: judged as if it lay elsewhere.
    HardLinked,
    /// Run or obeyed automatically: writing asks, whatever the mode.
    AutoExecuted,
    /// Belongs to the daemon or to git's hooks: writing is denied, whatever is granted.
    Protected,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what it was asked.
    Completed,
    /// It ran, or tried to, and reports an error.
    Failed,
    /// A rule or a person refused it; it never ran.
    Denied,
    /// It was stopped.
    Cancelled,
    /// The daemon died while it may have been running: whether it took effect is not known.
    Unknown,
}

/// What came of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// How it ended.
    pub status: ToolStatus,
    /// What the model is told.
    pub output: String,
    /// A stable word for the reason of a failure, for example `file_changed`.
    pub code: Option<String>,
    /// What clients are shown beyond the text: exit code, counts, line endings.
    pub detail: Option<Value>,
    /// Files that were changed, with their diff.
    pub changes: Vec<FileChange>,
    /// Files whose content the model has now seen or written.
    pub reads: Vec<ReadRecord>,
    /// The session's folder for further commands, if it moved.
    pub cwd: Option<PathBuf>,
    /// Pictures and documents that the model gets with the result. Their content is in `blobs`.
    pub attachments: Vec<Attachment>,
    /// The whole of what `output` shows in part. Its content is in `blobs`.
    pub whole: Option<BlobRef>,
    /// Its command goes on in the background; the end of it comes by itself.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub goes_on: bool,
    /// How far the model has now been told the output of a background command.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub told: Option<BackgroundRead>,
    /// Contents, stored in the transaction that writes the result.
    #[serde(skip)]
    pub blobs: Vec<Blob>,
    /// The sandbox seems to have stopped it.
    #[serde(default)]
    pub blocked: Option<Blocked>,
}

impl ToolOutcome {
    /// A success that says `output`.
    #[must_use]
    pub fn completed(output: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Completed,
            output: output.into(),
            code: None,
            detail: None,
            changes: Vec::new(),
            reads: Vec::new(),
            cwd: None,
            attachments: Vec::new(),
            whole: None,
            goes_on: false,
            told: None,
            blobs: Vec::new(),
            blocked: None,
        }
    }

    /// A failure with a stable code and a text that says what to fix.
    #[must_use]
    pub fn failed(code: &str, output: impl Into<String>) -> Self {
        Self { status: ToolStatus::Failed, code: Some(code.into()), ..Self::completed(output) }
    }
}

/// One changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Absolute path.
    pub path: PathBuf,
    /// Unified diff, possibly cut (then it ends with a note).
    pub diff: String,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// SHA-256 of the content before, in hexadecimal; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after; absent for a removed file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_after: Option<String>,
}

/// What the model has seen of a file: the guard against editing what it does not know (T3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadRecord {
    /// Resolved path.
    pub path: PathBuf,
    /// Modification time in nanoseconds since the Unix epoch.
    pub mtime_ns: i64,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// Whether the whole file was seen.
    pub whole: bool,
    /// Lines that were seen in full, of a text that was seen in part: the first and the last of each run, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u64, u64)>,
    /// How many lines that text has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
}

/// So many runs of lines are remembered of a file.
const MOST_RUNS: usize = 64;

impl ReadRecord {
    /// The same with what was seen of the same content before: parts add up to the whole.
    #[must_use]
    pub fn and_before(&self, known: Option<&Self>) -> Self {
        let mut record = self.clone();
        let is_same = |known: &&Self| !self.sha256.is_empty() && known.sha256 == self.sha256;
        let Some(known) = known.filter(is_same).filter(|_| !self.whole) else { return record };
        let mut runs: Vec<(u64, u64)> = known.lines.iter().chain(&self.lines).copied().collect();
        runs.sort_unstable();
        record.lines.clear();
        for (first, last) in runs {
            match record.lines.last_mut() {
                Some(run) if first <= run.1.saturating_add(1) => run.1 = run.1.max(last),
                _ => record.lines.push((first, last)),
            }
        }
        record.lines.truncate(MOST_RUNS);
        record.total_lines = self.total_lines.or(known.total_lines);
        let all = record.total_lines.map(|total| vec![(1, total)]);
        record.whole = known.whole || all.is_some_and(|all| record.lines == all);
        if record.whole {
            (record.lines, record.total_lines) = (Vec::new(), None);
        }
        record
    }
}

/// A piece of output while a tool runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `stdout` or `stderr`.
    pub stream: &'static str,
    /// Text, already made valid UTF-8.
    pub text: String,
}

/// The first process of a call, which leads a session and a group of its own: enough to find them
/// after the daemon's death and to tell them from others that have the same numbers later (S9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// The call.
    pub call_id: crate::types::ids::CallId,
    /// Its id, and that of its session and group.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// The boot these numbers belong to.
    pub boot_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_reads_of_same_content_form_whole() {
        let part = |first: u64, last: u64, sha256: &str| ReadRecord {
            path: "/a".into(),
            mtime_ns: 1,
            size: 9,
            sha256: sha256.into(),
            whole: false,
            lines: vec![(first, last)],
            total_lines: Some(9),
        };
        let seen = |parts: &[(u64, u64, &str)]| {
            let first: Option<ReadRecord> = None;
            parts
                .iter()
                .fold(first, |known, (first, last, sha256)| {
                    Some(part(*first, *last, sha256).and_before(known.as_ref()))
                })
                .unwrap()
        };
        assert!(seen(&[(1, 3, "a"), (7, 9, "a"), (3, 6, "a")]).whole, "in any order");
        assert!(!seen(&[(1, 3, "a"), (5, 9, "a")]).whole, "a line is missing");
        assert!(!seen(&[(1, 5, "a"), (6, 9, "b")]).whole, "another content");
        assert!(seen(&[(1, 5, "a"), (6, 9, "a"), (2, 2, "a")]).whole, "it stays so");
        assert_eq!(seen(&[(1, 2, "a"), (5, 6, "a"), (2, 4, "a")]).lines, [(1, 6)]);
        assert!(!seen(&[(1, 5, ""), (6, 9, "")]).whole, "who knows what content");
    }
}
