//! A tool call as it was prepared and judged: its target, its planned change, and its confinement.

use std::path::{Path, PathBuf};

use super::background::BashId;
use super::ids::BlobId;
use super::mcp_names::ToolNames;
use super::question::UserQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tool call whose targets and change were determined without running it. It is judged before the call may start.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PreparedCall {
    /// The subject that the permission rules judge.
    pub subject: Subject,
    /// One line for users. For Bash the first line of the command, then the model's description of it.
    pub summary: String,
    /// The change as a unified diff, for calls that change a file.
    pub diff: Option<String>,
    /// Whether the call changes nothing.
    pub read_only: bool,
    /// For calls that change a file: its content hash before and after. It is in the journal before the file is
    /// touched, so that after a crash the file shows whether the change took effect.
    pub change: Option<PlannedChange>,
    /// For commands: their confinement.
    pub sandbox: Option<Confinement>,
}

/// The confinement of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Confinement {
    /// 3 bubblewrap, 2 Landlock, 1 rlimits only, 0 off.
    pub level: u8,
    /// Whether the command has network access.
    pub network: bool,
    /// Whether the command runs outside its usual sandbox, because a user allowed it.
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

/// The sessions in which the daemon offers to run a blocked command again outside the sandbox:
/// `[sandbox] offer_unsandboxed_retry`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<bool>", into = "Option<bool>")]
pub enum OfferUnsandboxedRetry {
    /// In no session.
    Never,
    /// In attended sessions.
    #[default]
    Attended,
    /// In unattended sessions as well; their deadline applies.
    Always,
}

impl From<Option<bool>> for OfferUnsandboxedRetry {
    fn from(configured: Option<bool>) -> Self {
        match configured {
            None => OfferUnsandboxedRetry::Attended,
            Some(true) => OfferUnsandboxedRetry::Always,
            Some(false) => OfferUnsandboxedRetry::Never,
        }
    }
}

impl From<OfferUnsandboxedRetry> for Option<bool> {
    fn from(offer: OfferUnsandboxedRetry) -> Self {
        match offer {
            OfferUnsandboxedRetry::Attended => None,
            OfferUnsandboxedRetry::Always => Some(true),
            OfferUnsandboxedRetry::Never => Some(false),
        }
    }
}

impl OfferUnsandboxedRetry {
    /// Whether the daemon offers a second run in an unattended, or in an attended, session.
    #[must_use]
    pub const fn applies_to(self, unattended: bool) -> bool {
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
    /// A file that the command may not write or read, or a forbidden system call.
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
    /// A call that may change something, without a planned change of a file.
    #[must_use]
    pub fn new(subject: Subject, summary: impl Into<String>) -> Self {
        Self { subject, summary: summary.into(), diff: None, read_only: false, change: None, sandbox: None }
    }

    /// A call that changes nothing.
    #[must_use]
    pub fn read(subject: Subject, summary: impl Into<String>) -> Self {
        Self { read_only: true, ..Self::new(subject, summary) }
    }

    /// Whether the call may run in parallel with other such calls: it changes nothing on this machine.
    #[must_use]
    pub fn can_run_in_parallel(&self) -> bool {
        self.read_only || matches!(self.subject, Subject::Web { .. })
    }
}

/// The files that a call reads or changes, as far as they are known. Calls whose accesses conflict run one after the
/// other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// It reads these files.
    Reads(Vec<&'a Path>),
    /// It only reads, but may read any file.
    ReadsAnything,
    /// It changes these files and nothing else.
    Changes(Vec<&'a Path>),
    /// It starts a sub-agent, whose effects are unknown. Sub-agents run in parallel, because a model starts them for
    /// that purpose.
    Subagent,
    /// Its effects are unknown.
    Everything,
}

impl Access<'_> {
    /// Whether two calls must keep their order.
    #[must_use]
    pub fn conflicts_with(&self, other: &Access<'_>) -> bool {
        match (self, other) {
            (Access::Subagent, Access::Subagent) => false,
            (Access::Everything | Access::Subagent, _) | (_, Access::Everything | Access::Subagent) => true,
            (Access::Reads(_) | Access::ReadsAnything, Access::Reads(_) | Access::ReadsAnything) => false,
            (Access::ReadsAnything, Access::Changes(_)) | (Access::Changes(_), Access::ReadsAnything) => true,
            (Access::Reads(one) | Access::Changes(one), Access::Reads(two) | Access::Changes(two)) => {
                one.iter().any(|path| two.contains(path))
            }
        }
    }
}

impl PreparedCall {
    /// Whether the call starts a sub-agent.
    #[must_use]
    pub fn is_task(&self) -> bool {
        matches!(self.subject, Subject::Task { .. })
    }

    /// The files that the call reads or changes, as far as they are known.
    #[must_use]
    pub fn access(&self) -> Access<'_> {
        if let Subject::Task { read_only, .. } = self.subject {
            return if read_only { Access::ReadsAnything } else { Access::Subagent };
        }
        if self.can_run_in_parallel() {
            return match &self.subject {
                Subject::Read { path } => Access::Reads(vec![&path.path]),
                Subject::Web { .. } | Subject::Blob { .. } => Access::Reads(Vec::new()),
                _ => Access::ReadsAnything,
            };
        }
        let mut changed = Vec::new();
        if self.subject.changes_files() && self.subject.add_paths(&mut changed) {
            Access::Changes(changed)
        } else {
            Access::Everything
        }
    }
}

impl Subject {
    /// Adds the files that the call names. Returns `false` if the call may access other files.
    fn add_paths<'a>(&'a self, paths: &mut Vec<&'a Path>) -> bool {
        match self {
            Subject::Read { path } | Subject::Edit { path } | Subject::Delete { path } => {
                paths.push(&path.path);
                true
            }
            Subject::Several { parts } => parts.iter().all(|part| part.add_paths(paths)),
            _ => false,
        }
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
    /// The planned change of the one file of [`Subject::Edit`].
    One(PlannedEdit),
}

/// The planned change of one of several files.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedFile {
    /// The file, resolved.
    pub path: PathBuf,
    /// SHA-256 of the content before the change, in hexadecimal; absent for a new file.
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after the change, in hexadecimal; absent if the file is removed.
    pub sha256_after: Option<String>,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Whether the model knows the whole file after the change.
    pub whole: bool,
}

/// The planned change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedEdit {
    /// SHA-256 of the content before the change, in hexadecimal; absent for a new file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256_before: Option<String>,
    /// SHA-256 of the content after the change, in hexadecimal.
    pub sha256_after: String,
    /// Lines added.
    pub added: u64,
    /// Lines removed.
    pub removed: u64,
    /// Whether the model knows the whole file after the change.
    pub whole: bool,
}

/// A plan that the model presents for approval with the tool [`ProposedPlan::TOOL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedPlan {}

impl ProposedPlan {
    /// The tool whose calls are proposed plans.
    pub const TOOL: &'static str = "ExitPlanMode";

    /// The text of the plan in the arguments of a call.
    #[must_use]
    pub fn text(input: &serde_json::Value) -> &str {
        input.get("plan").and_then(serde_json::Value::as_str).unwrap_or_default()
    }
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
        /// The folder in which it starts, if an earlier command changed it to another one than the workspace itself.
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
    /// Reads or changes only what belongs to the session itself, for example its todo list.
    Session {
        /// Name of the tool.
        tool: String,
    },
    /// Starts a sub-agent. The rules judge the calls of the sub-agent separately.
    Task {
        /// Name of the agent.
        agent: String,
        /// Whether the call returns at once and the sub-agent continues.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        background: bool,
        /// Whether the agent has no tool that changes anything.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        read_only: bool,
    },
    /// Asks the user. It needs no permission.
    Question {
        /// The questions of the model.
        questions: Vec<UserQuestion>,
    },
    /// Presents a plan for approval. Its text is in the arguments of the call.
    ProposedPlan(ProposedPlan),
    /// Calls a tool of an MCP server.
    Mcp {
        /// The name for the model and for rules, `mcp__SERVER__TOOL`.
        name: String,
        /// The server's name in the configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// Digest of the tool's definition.
        digest: String,
        /// Whether the definition differs from the one that was approved last.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        is_changed: bool,
        /// Tools of other servers that one rule text can mean as well as this tool.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        confusable: Vec<McpToolName>,
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

    /// The paths of the files that the call writes or removes.
    #[must_use]
    pub fn changed_paths(&self) -> Vec<&Path> {
        match self {
            Subject::Edit { path } | Subject::Delete { path } => vec![&path.path],
            Subject::Several { parts } => parts.iter().flat_map(Subject::changed_paths).collect(),
            Subject::Read { .. }
            | Subject::Web { .. }
            | Subject::Bash { .. }
            | Subject::Background { .. }
            | Subject::Blob { .. }
            | Subject::Session { .. }
            | Subject::Task { .. }
            | Subject::Question { .. }
            | Subject::ProposedPlan(_)
            | Subject::Mcp { .. }
            | Subject::Tool { .. } => Vec::new(),
        }
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
            | Subject::Session { .. }
            | Subject::Task { .. }
            | Subject::Question { .. }
            | Subject::ProposedPlan(_)
            | Subject::Mcp { .. }
            | Subject::Tool { .. } => false,
        }
    }
}

/// The names of a tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpToolName {
    /// The name for the model.
    pub name: String,
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name on the server.
    pub tool: String,
}

impl McpToolName {
    /// The names, to compare them with a rule.
    #[must_use]
    pub fn names(&self) -> ToolNames<'_> {
        ToolNames { offered: &self.name, server: &self.server, tool: &self.tool }
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
    /// Has other names (hard links), and the daemon did not find all of them. It is judged as if it were outside the
    /// workspace.
    HardLinked,
    /// Executed or read automatically: writing needs a request in every mode.
    AutoExecuted,
    /// Belongs to the daemon or to git's hooks: writing is denied, regardless of grants.
    Protected,
}
