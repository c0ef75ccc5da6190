//! Tools for all modules: their definitions, prepared calls, and results.

use std::path::PathBuf;

use super::background::{BackgroundRead, BashId};
use super::blob::{Attachment, Blob, BlobRef};
use super::ids::BlobId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The definition of a tool for the model, and how the engine may run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that models are trained on.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the input, an object.
    pub input_schema: Value,
    /// Calls of this tool change nothing. They may run in parallel, and may run again after a crash.
    pub read_only: bool,
}

/// Which tools a session offers its models. By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// Only these tools; absent for all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allow: Option<Vec<String>>,
    /// None of these tools.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub deny: Vec<String>,
}

impl ToolDefinition {
    /// Whether calls of this tool may run in parallel: see [`PreparedCall::can_run_in_parallel`].
    #[must_use]
    pub fn is_concurrency_safe(&self) -> bool {
        self.read_only || self.name == "WebFetch"
    }
}

impl ToolChoice {
    /// Whether all tools are offered.
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

/// The effect of a call, determined without running it. It is judged before the call may start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparedCall {
    /// The subject that the permission rules judge.
    pub subject: Subject,
    /// One line for users. For Bash the first line of the command, then the model's description of it.
    pub summary: String,
    /// The change as a unified diff, for calls that change a file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff: Option<String>,
    /// See [`ToolDefinition::read_only`].
    pub read_only: bool,
    /// For calls that change a file: its content hash before and after. It is in the journal before the file is
    /// touched, so that after a crash the file shows whether the change took effect.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<PlannedChange>,
    /// For commands: their confinement.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Confinement>,
}

/// The confinement of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// 3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off.
    pub level: u8,
    /// Whether the command has network access.
    pub network: bool,
    /// The command runs outside its usual sandbox, because a user allowed it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default, alias = "outside")]
    pub unsandboxed: bool,
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let outside = if self.unsandboxed { "outside the sandbox, " } else { "" };
        write!(f, "{outside}level {}, network {}", self.level, if self.network { "on" } else { "off" })
    }
}

impl Confinement {
    /// The confinement of a command that a user allowed outside its sandbox: only rlimits apply.
    pub const UNSANDBOXED: Self = Self { level: 1, network: true, unsandboxed: true };

    /// Whether this confinement is weaker than the other.
    #[must_use]
    pub fn is_weaker_than(self, other: Self) -> bool {
        self.level < other.level || (self.network && !other.network)
    }
}

/// Whether a command that the sandbox blocked is offered to run again outside of it: `[sandbox] offer_unsandboxed_retry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfferUnsandboxedRetry {
    /// Never.
    Never,
    /// In attended sessions.
    #[default]
    Attended,
    /// In unattended sessions as well; their deadline applies.
    Always,
}

impl OfferUnsandboxedRetry {
    /// Whether a command of such a session may be offered.
    #[must_use]
    pub const fn holds(self, unattended: bool) -> bool {
        match self {
            OfferUnsandboxedRetry::Never => false,
            OfferUnsandboxedRetry::Attended => !unattended,
            OfferUnsandboxedRetry::Always => true,
        }
    }
}

/// The part of the sandbox that blocked a command, according to the command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    /// A file that may not be written or read, or a forbidden system call.
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

/// The sandbox probably blocked a command: a guess from the command's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Blocked {
    /// The part of the sandbox that blocked it.
    pub by: Barrier,
    /// The path or the host that the command named, if it named one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub what: Option<String>,
}

impl PreparedCall {
    /// Whether the call may run in parallel with other such calls: it changes nothing on this machine.
    #[must_use]
    pub fn can_run_in_parallel(&self) -> bool {
        self.read_only || matches!(self.subject, Subject::Web { .. })
    }
}

/// The planned change of a call on files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PlannedChange {
    /// The planned change of several files, in the order of execution.
    Several {
        /// The files.
        files: Vec<PlannedFile>,
    },
    /// The planned change of one file: that of [`Subject::Edit`].
    One(PlannedEdit),
}

/// The planned change of one of several files.
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

/// The planned change of one file.
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

/// The state of files after a crash interrupted their change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inspection {
    /// Every file has the new content.
    Done {
        /// The existing files, as they are now.
        records: Vec<ReadRecord>,
        /// The changes, without the diffs.
        changes: Vec<FileChange>,
    },
    /// The first of several files have the new content, the others still the old.
    Partly {
        /// The changed files that exist.
        records: Vec<ReadRecord>,
        /// The changes, without the diffs.
        changes: Vec<FileChange>,
        /// Which files were changed and which not, as text for the model.
        text: String,
    },
    /// Every file has the old content.
    NotDone,
    /// Neither content, or the file could not be read: the reason, for users.
    Conflict(String),
}

/// The subject that the permission rules judge.
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
    /// Fetches a web page.
    Web {
        /// The complete URL.
        url: String,
        /// Its host, lower case, without a port.
        host: String,
    },
    /// Several subjects: each is judged, and the strictest verdict counts.
    Several {
        /// The parts; none of them is `Several`.
        parts: Vec<Subject>,
    },
    /// Runs a command.
    Bash {
        /// The exact text.
        command: String,
        /// Whether it continues in the background after its call returned.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        background: bool,
        /// The folder in which it starts, if not the workspace itself: an earlier command changed it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        cwd: Option<PathBuf>,
    },
    /// Reads or ends a background command of the session itself.
    Background {
        /// Name of the command.
        bash_id: BashId,
    },
    /// Reads a blob of the session itself.
    Blob {
        /// Id of the blob.
        blob_id: BlobId,
    },
    /// Any other tool.
    Tool {
        /// Its name.
        name: String,
    },
}

impl Subject {
    /// A foreground command that starts in the workspace itself.
    #[must_use]
    pub fn command(text: impl Into<String>) -> Self {
        Subject::Bash { command: text.into(), background: false, cwd: None }
    }

    /// Whether the call only changes files, so that after a crash the files show its outcome.
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

/// A path after links, `..` and `~` were resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResolvedPath {
    /// Absolute and free of links. The last components may not exist yet.
    pub path: PathBuf,
    /// Whether it is in the session's workspace.
    pub in_workspace: bool,
    /// Whether writing there could change which code runs or which permissions apply.
    #[serde(alias = "care")]
    pub sensitivity: PathSensitivity,
    /// Other names of the same file (hard links) that a rule matches.
    #[serde(default, skip_serializing_if = "Vec::is_empty", alias = "ruled")]
    pub matched_aliases: Vec<PathBuf>,
}

/// Sensitivity of a path, from lowest to highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathSensitivity {
    /// An ordinary file.
    #[default]
    Ordinary,
    /// Probably contains secrets: reading needs a request.
    Secret,
    /// Has other names (hard links) that were not all found: judged as if it were outside the workspace.
    HardLinked,
    /// Executed or read automatically: writing needs a request in every mode.
    AutoExecuted,
    /// Belongs to the daemon or to git's hooks: writing is denied, regardless of grants.
    Protected,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The call succeeded.
    Completed,
    /// The call ran, or tried to, and reports an error.
    Failed,
    /// A rule or a user denied it; it never ran.
    Denied,
    /// It was stopped.
    Cancelled,
    /// The daemon died while it may have been running: its outcome is unknown.
    Unknown,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolOutcome {
    /// Status of the call.
    pub status: ToolStatus,
    /// The output for the model.
    pub output: String,
    /// A stable code of a failure, for example `file_changed`.
    pub code: Option<String>,
    /// Additional data for clients: exit code, counts, line endings.
    pub detail: Option<Value>,
    /// Files that were changed, with their diff.
    pub changes: Vec<FileChange>,
    /// Files whose content the model has now seen or written.
    pub reads: Vec<ReadRecord>,
    /// The session's folder for further commands, if it changed.
    pub cwd: Option<PathBuf>,
    /// Pictures and documents that the model gets with the result. Their content is in `blobs`.
    pub attachments: Vec<Attachment>,
    /// The blob with the full text of a shortened `output`. Its content is in `blobs`.
    pub whole: Option<BlobRef>,
    /// The command continues in the background; its end is reported separately.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub goes_on: bool,
    /// How much of a background command's output the model has now received.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub background_read: Option<BackgroundRead>,
    /// Contents, stored in the transaction that writes the result.
    #[serde(skip)]
    pub blobs: Vec<Blob>,
    /// Set if the sandbox probably blocked the command.
    #[serde(default)]
    pub blocked: Option<Blocked>,
}

impl ToolOutcome {
    /// A success with this output.
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
            background_read: None,
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

/// The version of a file that the model has seen. It prevents edits of a file that the model does not know.
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
    /// Lines that were seen completely, if only a part was seen: the first and the last line of each range, in
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u64, u64)>,
    /// Number of lines of that text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
}

/// Maximum number of ranges that are remembered per file.
const MOST_RUNS: usize = 64;

impl ReadRecord {
    /// Adds the ranges that were seen before of the same content: parts may add up to the whole file.
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

/// The first process of a call; it leads its own session and process group. This is enough to find the
/// processes after the daemon's death, and to distinguish them from later processes with the same ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Id of the call.
    pub call_id: crate::types::ids::CallId,
    /// Its process id, which is also its session and group id.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Id of the boot in which these numbers are valid.
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
