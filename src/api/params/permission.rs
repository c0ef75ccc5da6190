//! Permissions: rules, requests, explanations and the audit log.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::audit::{AuditEntry, AuditHead};
use types::ids::SessionId;
use types::permission::{CommandPart, RuleView, VerdictKind};
use types::permission_request::PendingRequest;
use types::time::Timestamp;

/// `permission.rules`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RulesParams {
    /// A session whose rules, and the rules of its folder, are listed as well.
    pub session_id: Option<SessionId>,
    /// A folder whose rules are listed as well, absolute.
    pub workspace: Option<String>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Rules per page, 1 to 500; 500 by default.
    pub limit: Option<u32>,
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

/// Reply of `permission.add_rule` and `permission.remove_rule`: the change applies from the next verdict on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleReply {
    /// Whether the call changed anything.
    pub changed: bool,
    /// The text under which the rule is kept, if it differs from the given one: `Bash(rm:*)` for `Bash(rm *)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// `permission.list`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PermissionListParams {
    /// Only requests of this session.
    pub session_id: Option<SessionId>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Requests per page, 1 to 500; 100 by default.
    pub limit: Option<u32>,
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
