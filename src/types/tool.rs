//! Tools for all modules: their definitions, prepared calls, and results.

pub use super::mcp_names::MCP_PREFIX;
pub use super::prepared_call::{
    Access, Barrier, Blocked, Confinement, McpToolName, OfferUnsandboxedRetry, PathSensitivity,
    PlannedChange, PlannedEdit, PlannedFile, PreparedCall, ProposedPlan, ResolvedPath, Subject,
};
use std::path::PathBuf;

use super::background::BackgroundRead;
use super::blob::{Attachment, Blob, BlobRef};
use super::mcp_names::ToolNames;
use super::todo::Todo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of the tool that starts sub-agents.
pub const TASK: &str = "Task";

/// The names of all tools that are not those of a server.
pub const BUILT_IN_TOOLS: [&str; 22] = [
    "Bash",
    "BashOutput",
    "KillBash",
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "ApplyPatch",
    "NotebookEdit",
    "Glob",
    "Grep",
    "LS",
    "WebFetch",
    TASK,
    "TodoWrite",
    "TodoRead",
    "AskUser",
    "ExitPlanMode",
    "Skill",
    "Memory",
    "KnowledgeSearch",
    "ToolSearch",
];

/// The definition of a tool for the model, and how the engine may run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name that models are trained on.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of the input, an object.
    pub input_schema: Value,
    /// Whether calls of this tool change nothing. Such calls may run in parallel, and may run again after a crash.
    pub read_only: bool,
}

/// When calls of a tool need a permission request in mode `default`, if no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionNeed {
    /// Never, because the tool uses only data of the session and of the daemon.
    Never,
    /// For files outside the workspace, and for sensitive files.
    OutsideWorkspace,
    /// Always. Read-only commands are allowed by `[permissions] safe_commands`.
    Always,
}

/// The limits of a tool's calls.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolLimits {
    /// When its calls need a permission request.
    pub permission: PermissionNeed,
    /// Time limit of a call in milliseconds. Absent for tools that read or write local files; an abort ends their
    /// calls.
    pub timeout_ms: Option<u64>,
    /// Highest time limit that a call may request, in milliseconds.
    pub max_timeout_ms: Option<u64>,
    /// Maximum characters of output that the tool keeps. Of longer output, the model receives the beginning and the
    /// end.
    pub max_output_chars: Option<u64>,
}

/// The tools that a session offers its models. By default it offers all tools.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolChoice {
    /// Only these tools; absent for all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allow: Option<Vec<String>>,
    /// Tools that are not offered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub deny: Vec<String>,
}

impl ToolDefinition {
    /// Whether calls of this tool may run in parallel: see [`PreparedCall::can_run_in_parallel`].
    #[must_use]
    pub fn is_concurrency_safe(&self) -> bool {
        self.read_only || matches!(self.name.as_str(), "WebFetch" | TASK)
    }
}

impl ToolChoice {
    /// Whether all tools are offered.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a tool of the daemon is offered, or a tool of an MCP server by its name for models.
    #[must_use]
    pub fn offers(&self, tool: &str) -> bool {
        // `mcp__SERVER` names all tools of a server, and a `*` at the end any rest.
        let is_of_server = |name: &str, tool: &str| {
            name.starts_with(MCP_PREFIX)
                && match name.strip_suffix('*') {
                    Some(begin) => tool.starts_with(begin),
                    None => tool.strip_prefix(name).is_some_and(|rest| rest.starts_with("__")),
                }
        };
        let is_named = |name: &str, tool: &str| name == tool || is_of_server(name, tool);
        self.is_offered_if(
            |name| is_named(name, tool),
            |name| {
                is_named(name, tool)
                    || name.starts_with(MCP_PREFIX) && is_named(&name.to_lowercase(), &tool.to_lowercase())
            },
        )
    }

    /// Whether a tool of an MCP server is offered. The lists may name it, or its server, as the server does.
    #[must_use]
    pub fn offers_mcp(&self, tool: ToolNames<'_>) -> bool {
        self.is_offered_if(|name| tool.may_be_named_by(name), |name| tool.may_be_named_in_any_case_by(name))
    }

    /// The tools that this choice and the other one offer.
    #[must_use]
    pub fn narrowed_to(&self, other: &Self) -> Self {
        let allow = match (&self.allow, &other.allow) {
            (Some(own), Some(more)) => {
                let within = |choice: &[String], name: &str| {
                    Self { allow: Some(choice.to_vec()), deny: Vec::new() }.offers(name)
                };
                // Of a server and one of its tools, the tool is narrower.
                let both = own.iter().filter(|name| within(more, name));
                let narrower = more.iter().filter(|name| within(own, name) && !own.contains(name));
                Some(both.chain(narrower).cloned().collect())
            }
            (own, more) => own.clone().or_else(|| more.clone()),
        };
        let mut deny = self.deny.clone();
        deny.extend(other.deny.iter().filter(|name| !self.deny.contains(name)).cloned());
        Self { allow, deny }
    }

    fn is_offered_if(&self, is_allowed: impl Fn(&str) -> bool, is_denied: impl Fn(&str) -> bool) -> bool {
        self.allow.as_ref().is_none_or(|names| names.iter().any(|name| is_allowed(name)))
            && !self.deny.iter().any(|name| is_denied(name))
    }
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
    /// The first of several files have the new content. The others still have the old content.
    Partly {
        /// The changed files that exist.
        records: Vec<ReadRecord>,
        /// The changes, without the diffs.
        changes: Vec<FileChange>,
        /// The files that were changed and those that were not, as text for the model.
        text: String,
    },
    /// Every file has the old content.
    NotDone,
    /// A file has neither of the contents, or could not be read. The text gives users the reason.
    Conflict(String),
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
    /// Whether the command continues in the background. Its end is reported separately.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub continues_in_background: bool,
    /// How much of a background command's output the model has now received.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub background_read: Option<BackgroundRead>,
    /// The new todo list, if the call changed it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub todos: Option<Vec<Todo>>,
    /// Blobs to store in the transaction that writes the result.
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
            continues_in_background: false,
            background_read: None,
            todos: None,
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
#[serde_with::skip_serializing_none]
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
    /// SHA-256 of the content before the change, in hexadecimal; absent for a new file.
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after the change, in hexadecimal; absent for a removed file.
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
    /// Whether the model has seen the whole file.
    pub whole: bool,
    /// Lines that the model has seen completely, if it has seen only a part of the file. Each range has its first and
    /// last line, from 1, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<(u64, u64)>,
    /// Number of lines of the file, if the model has seen only a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
}

/// Maximum number of ranges that are remembered per file.
const MAX_RANGES: usize = 64;

impl ReadRecord {
    /// Adds the ranges of the same content that the model saw before, because several parts may form the whole file.
    #[must_use]
    pub fn merged_with(&self, known: Option<&Self>) -> Self {
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
        record.lines.truncate(MAX_RANGES);
        record.total_lines = self.total_lines.or(known.total_lines);
        let all = record.total_lines.map(|total| vec![(1, total)]);
        record.whole = known.whole || all.is_some_and(|all| record.lines == all);
        if record.whole {
            (record.lines, record.total_lines) = (Vec::new(), None);
        }
        record
    }
}

/// A part of the output of a running tool, or how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolProgress {
    /// `stdout` for output, or [`Self::NOTE`].
    pub stream: &'static str,
    /// The text. Invalid UTF-8 is already replaced.
    pub text: String,
}

impl ToolProgress {
    /// The stream of a note that says how far a call is. It is no output.
    pub const NOTE: &'static str = "progress";
}

/// The first process of a call; it leads its own session and process group. This is enough to find the
/// processes after the daemon's death, and to distinguish them from later processes with the same ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessRecord {
    /// Id of the call.
    pub call_id: crate::ids::CallId,
    /// Its process id, which is also its session and group id.
    pub pid: i32,
    /// Time of its start, in clock ticks since boot.
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
                    Some(part(*first, *last, sha256).merged_with(known.as_ref()))
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
