//! Permissions: rules, requests, explanations and the audit log.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::audit::{AuditEntry, AuditHead};
use crate::types::blob::Cut;
use crate::types::event::Origin;
use crate::types::ids::SessionId;
use crate::types::permission::{CommandPart, Mode, RuleKind, RuleScope, VerdictKind};
use crate::types::session::PermissionRequest;
use crate::types::time::Timestamp;
use crate::types::tool::{Confinement, PlannedChange};

/// `permission.rules`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RulesParams {
    /// Also the rules of this session and of its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Also the rules of this folder, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Rules a page, 1 to 500; 500 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A rule with where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// What it says.
    pub kind: RuleKind,
    /// The rule as it is written.
    pub rule: String,
    /// Whose it is.
    pub scope: RuleScope,
    /// The file that it stands in; absent for rules of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When it was added, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_at_ms: Option<Timestamp>,
    /// Who added it, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Origin>,
}

/// Reply of `permission.rules`. Deny wins over ask, and ask over allow, whatever the scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulesReply {
    /// A page of rules.
    pub rules: Vec<RuleView>,
    /// What is wrong with files of rules: while that is so, nothing passes unasked where they count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `permission.add_rule` and `permission.remove_rule`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleParams {
    /// The rule, for example `Bash(npm run:*)`.
    pub rule: String,
    /// What it says.
    #[serde(default)]
    pub kind: RuleKind,
    /// `session`, `project` (its folder) or `user` (everywhere).
    pub scope: RuleScope,
    /// The session, with scope `session`; with `project` it names its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The folder, absolute, with scope `project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The same key with the same parameters returns the first reply: of a session's rule as long as there is the
    /// session, else within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `permission.add_rule` and `permission.remove_rule`: it counts from the next verdict on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleReply {
    /// Whether that changed anything.
    pub changed: bool,
}

/// `permission.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PermissionListParams {
    /// Only this session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Requests a page, 1 to 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One pending request with its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingRequest {
    /// The session.
    pub session_id: SessionId,
    /// When it was asked.
    pub at_ms: Timestamp,
    /// Places of it that show only the beginning of what they hold; `session.blob` reads the whole.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cut: Vec<Cut>,
    /// The request.
    #[serde(flatten)]
    pub request: PermissionRequest,
    /// Whether the call changes nothing.
    #[serde(default)]
    pub read_only: bool,
    /// For calls that change a file: what it holds and would hold.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<PlannedChange>,
    /// For commands: how they would be held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Confinement>,
}

/// Reply of `permission.list`: oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionListReply {
    /// A page of pending requests.
    pub requests: Vec<PendingRequest>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `permission.explain`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainParams {
    /// The folder of the session that would call, absolute. It need not exist.
    pub workspace: PathBuf,
    /// The user's home folder, absolute; that of the daemon's user by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<PathBuf>,
    /// The session's mode; `default` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether commands that only look pass without a rule; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_commands: Option<bool>,
    /// Allow rules, for example `Bash(git status:*)`.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Ask rules.
    #[serde(default)]
    pub ask: Vec<String>,
    /// Deny rules.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Bash, Read, Write, Edit, Delete or LS.
    pub tool: String,
    /// The call's input: `{command}`, `{file_path}`, for LS `{path}`.
    pub input: Value,
}

/// Reply of `permission.explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainReply {
    /// Allow, ask or deny.
    pub verdict: VerdictKind,
    /// The rule that decides, as written, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Grants that would let this very call pass, narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// For commands: what becomes of each simple command in the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CommandPart>,
}

/// `permission.audit`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditParams {
    /// Only decisions about this session; also of one that was deleted.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only what is not older than this.
    #[serde(default)]
    pub since_ms: Option<Timestamp>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Rows of a page, at most 500; 100 by default.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Reply of `permission.audit`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReply {
    /// The rows.
    pub entries: Vec<AuditEntry>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// `permission.verify_audit`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerifyAuditParams {
    /// A row that was kept elsewhere: it must still be there, as it was.
    #[serde(default)]
    pub known: Option<AuditHead>,
}

/// Reply of `permission.verify_audit`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyAuditReply {
    /// Rows that were read.
    pub rows: u64,
    /// The newest; keep it elsewhere to be able to tell later whether it is still there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<AuditHead>,
    /// What is wrong, in words. Empty: the log is whole.
    pub faults: Vec<String>,
}
