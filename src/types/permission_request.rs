//! Permission requests as clients receive them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::blob::TruncatedField;
use super::ids::{CallId, PermissionId, SessionId};
use super::permission::{CommandPart, Decision, Mode, OnTimeout, RequestKind, Scope};
use super::time::Timestamp;
use super::tool::{Blocked, Confinement, PlannedChange, Subject};

/// A user's answer to a permission request, as the engine decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermissionAnswer {
    /// Id of the request.
    pub request_id: PermissionId,
    /// Allow or deny.
    pub decision: Decision,
    /// How long an allow answer is valid.
    pub scope: Scope,
    /// The grant to store, for the scopes `session` and `project`.
    pub grant: Option<String>,
    /// Feedback of the user for the model.
    pub feedback: Option<String>,
    /// Whether the turn ends with this denial.
    pub stop: bool,
    /// Whether the client denies because it has no user to ask: the action of `on_timeout` then applies at once.
    pub no_approver: bool,
    /// The mode that follows plan mode, for the approval of a plan.
    pub mode: Option<Mode>,
    /// Digest of the request that the user saw; the answer is refused if the pending request differs.
    pub digest: Option<String>,
}

impl PermissionAnswer {
    /// A decision about this call only.
    #[must_use]
    pub const fn new(request_id: PermissionId, decision: Decision) -> Self {
        Self {
            request_id,
            decision,
            scope: Scope::Once,
            grant: None,
            feedback: None,
            stop: false,
            no_approver: false,
            mode: None,
            digest: None,
        }
    }
}

/// A permission request as clients receive it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionRequest {
    /// Its id; a restart does not change it.
    pub request_id: PermissionId,
    /// For a request of a sub-agent, shown in the sessions above it: the session that waits. The answer goes to that
    /// session.
    pub child_session_id: Option<SessionId>,
    /// The subject of the request. With `sandbox`, the command of this call has run and the sandbox blocked it (see
    /// `tool.blocked` before this event). An allowed command runs again from its beginning, outside the sandbox.
    #[serde(default)]
    pub kind: RequestKind,
    /// The call that waits.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// The exact arguments.
    pub input: Value,
    /// One line for users. For Bash the first line of the command, then the model's description of it.
    pub summary: String,
    /// The subject that the rules judged.
    pub subject: Subject,
    /// Why this needs a request.
    pub reason: String,
    /// For kind `sandbox`: the part of the sandbox that probably blocked the command.
    pub blocked: Option<Blocked>,
    /// Unified diff, for edits.
    pub diff: Option<String>,
    /// Possible grants, narrowest first.
    pub suggestions: Vec<String>,
    /// For commands: the verdict on each simple command in the line.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<CommandPart>,
    /// Whether the call is a command whose parts are all read-only, inside the workspace, and read no secrets.
    /// `allow_read_only` allows such a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", alias = "only_looks")]
    pub read_only_command: bool,
    /// Deadline of the request; absent in attended sessions, which wait without limit. A restart does not
    /// change it.
    pub deadline_ms: Option<Timestamp>,
    /// The action at the deadline.
    pub on_timeout: Option<OnTimeout>,
    /// The folder in which the call would run.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub cwd: String,
    /// SHA-256 over session, folder, tool and arguments, in hexadecimal. It binds an answer to this exact call.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub digest: String,
}

/// One pending request with its session.
#[serde_with::skip_serializing_none]
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
    pub change: Option<PlannedChange>,
    /// For commands: their confinement.
    pub sandbox: Option<Confinement>,
}
