//! Permissions: rules, requests, explanations and the audit log.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use types::audit::{AuditEntry, AuditHead};
use types::blob::TruncatedField;
use types::event::Origin;
use types::ids::SessionId;
use types::permission::{CommandPart, Mode, RuleKind, RuleScope, VerdictKind};
use types::session::PermissionRequest;
use types::time::Timestamp;
use types::tool::{Confinement, PlannedChange};

/// `permission.rules`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RulesParams {
    /// A session whose rules, and the rules of its folder, are listed as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// A folder whose rules are listed as well, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Rules per page, 1 to 500; 500 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A rule with its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Whether the rule allows, asks or denies.
    pub kind: RuleKind,
    /// The rule as written.
    pub rule: String,
    /// Scope of the rule.
    pub scope: RuleScope,
    /// The file that contains it; absent for rules of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Time at which it was added, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_at_ms: Option<Timestamp>,
    /// The client that added it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Origin>,
}

/// Reply of `permission.rules`. Deny overrides ask, and ask overrides allow, in every scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RulesReply {
    /// Rules of this page.
    pub rules: Vec<RuleView>,
    /// Problems of rule files: until they are fixed, every call in their scope needs a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// `permission.add_rule` and `permission.remove_rule`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleParams {
    /// The rule, for example `Bash(npm run:*)`.
    pub rule: String,
    /// Whether the rule allows, asks or denies.
    #[serde(default)]
    pub kind: RuleKind,
    /// `session`, `project` (its folder) or `user` (everywhere).
    pub scope: RuleScope,
    /// With scope `session`: the session. With scope `project`: a session in the folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// With scope `project`: the folder, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The same key with the same parameters returns the first reply: for a session's rule until the session is
    /// deleted, else within 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// Reply of `permission.add_rule` and `permission.remove_rule`: the change applies from the next verdict on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleReply {
    /// Whether the call changed anything.
    pub changed: bool,
}

/// `permission.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PermissionListParams {
    /// Only requests of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Requests per page, 1 to 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// One pending request with its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingRequest {
    /// Id of the session.
    pub session_id: SessionId,
    /// Number of the session and position among its requests and questions, for example `12.1`. It is accepted
    /// instead of the id.
    #[serde(default)]
    pub number: String,
    /// Time at which the request was raised.
    pub at_ms: Timestamp,
    /// Truncated values of the request; `session.blob` reads the complete value.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub truncated_fields: Vec<TruncatedField>,
    /// The request as in `permission.requested`.
    #[serde(flatten)]
    pub request: PermissionRequest,
    /// Whether the call changes nothing.
    #[serde(default)]
    pub read_only: bool,
    /// For calls that change a file: its content hash before and after.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<PlannedChange>,
    /// For commands: their confinement.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sandbox: Option<Confinement>,
}

/// Reply of `permission.list`: oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionListReply {
    /// A page of pending requests.
    pub requests: Vec<PendingRequest>,
    /// Cursor of the next page, if there is one.
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
    /// Whether read-only commands run without a rule; true by default.
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
    /// The rule that decides, as written, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The reason, as text for users.
    pub reason: String,
    /// Grants that would allow this call, narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// For commands: the verdict on each simple command in the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<CommandPart>,
}

/// `permission.audit`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditParams {
    /// Only decisions about this session; it may be a deleted one.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Only decisions since this time.
    #[serde(default)]
    pub since_ms: Option<Timestamp>,
    /// `next_cursor` of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Rows per page, at most 500; 100 by default.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Reply of `permission.audit`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditReply {
    /// Rows of this page, in order.
    pub entries: Vec<AuditEntry>,
    /// Cursor of the next page.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_cursor: Option<String>,
}

/// `permission.verify_audit`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct VerifyAuditParams {
    /// A row that the client stored elsewhere: the log must still contain it, unchanged.
    #[serde(default)]
    pub known: Option<AuditHead>,
}

/// Reply of `permission.verify_audit`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyAuditReply {
    /// Number of rows that were checked.
    pub rows: u64,
    /// The newest row. A client that stores a copy elsewhere can later check that the log still contains the row.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub head: Option<AuditHead>,
    /// Problems of the log as texts; empty if the log is complete.
    pub faults: Vec<String>,
}
