//! The rows of the audit log: the time of each decision, the client that made it, and the rule that applied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Origin;
use super::ids::{CallId, Seq, SessionId};
use super::time::Timestamp;

/// The kind of decision that a row records.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AuditKind {
    /// A rule, a grant or the mode decided about a tool call, without a request.
    Rule,
    /// A permission request was settled.
    Permission,
    /// A question was settled: a call with unknown outcome, or a paused turn.
    Question,
    /// A client called a method that its role may not call.
    Refused,
    /// A permanent rule was added or removed.
    Grant,
    /// A session's mode was set to one with fewer requests.
    Mode,
    /// The additional folders of a session were changed.
    Folders,
    /// A client rewound a session, with the files that it had changed.
    Rewind,
    /// A folder was trusted, or its trust was withdrawn.
    Trust,
    /// A client created, cancelled or repeated a job, or changed a schedule.
    Job,
    /// A damaged database was replaced; rows before this one may be missing.
    Rescue,
}

impl AuditKind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Rule,
        Self::Permission,
        Self::Question,
        Self::Refused,
        Self::Grant,
        Self::Mode,
        Self::Folders,
        Self::Rewind,
        Self::Trust,
        Self::Job,
        Self::Rescue,
    ];

    /// The name in the database and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The sandbox level of rows without a sandbox: work inside the daemon, or no execution at all.
pub const NO_SANDBOX: &str = "none";

/// One decision without its position in the log.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditNote {
    /// Time of the decision.
    pub at_ms: Timestamp,
    /// Kind of the decision.
    pub kind: AuditKind,
    /// The session that it was about.
    pub session_id: Option<SessionId>,
    /// The event of the session's journal about this decision; both were written in one transaction.
    pub seq: Option<Seq>,
    /// The tool call that it was about.
    pub call_id: Option<CallId>,
    /// The tool, or the called method.
    pub tool: Option<String>,
    /// SHA-256 of the subject, in hexadecimal: for a tool call of the JSON list of tool, input, folder and
    /// session.
    pub digest: Option<String>,
    /// The decision: allow, deny, refused, trusted, untrusted, or the choice of the user.
    pub verdict: String,
    /// The rule that decided, or the grant that was given.
    pub rule: Option<String>,
    /// The reason, as text for users.
    pub reason: String,
    /// Name of the client that decided, as the client gave it; absent if no client decided.
    pub client: Option<String>,
    /// Its user id.
    pub uid: Option<u32>,
    /// Its process id when it connected.
    pub pid: Option<i32>,
    /// The program it ran when it connected.
    pub exe: Option<String>,
    /// The confinement of the command. It is `none` for other decisions: file tools, which have their own
    /// rules, and changes of rules, modes and trust. (`unknown` in rows of old versions.)
    pub sandbox: String,
}

impl AuditNote {
    /// A decision without a client, a session and a call.
    #[must_use]
    pub fn new(
        at_ms: Timestamp,
        kind: AuditKind,
        verdict: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            at_ms,
            kind,
            session_id: None,
            seq: None,
            call_id: None,
            tool: None,
            digest: None,
            verdict: verdict.into(),
            rule: None,
            reason: reason.into(),
            client: None,
            uid: None,
            pid: None,
            exe: None,
            sandbox: NO_SANDBOX.into(),
        }
    }

    /// Adds the client that decided.
    #[must_use]
    pub fn with_origin(mut self, origin: Option<&Origin>) -> Self {
        if let Some(origin) = origin {
            self.client = Some(origin.client.clone());
            self.uid = Some(origin.uid);
            self.pid = origin.pid;
            self.exe.clone_from(&origin.exe);
        }
        self
    }
}

/// One row of the log.
///
/// `hash` is the SHA-256, in hexadecimal, of a JSON list of the row's values, without blanks. Absent values are
/// `null`. The order is `prev`, `id`, `at_ms`, `kind`, `session_id`, `seq`, `call_id`, `tool`, `digest`, `verdict`,
/// `rule`, `reason`, `client`, `uid`, `pid`, `exe`, `sandbox`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// Its number: 1, 2, 3 … without gaps.
    pub id: u64,
    /// The decision.
    #[serde(flatten)]
    pub note: AuditNote,
    /// Hash of the previous row; empty for the first.
    pub prev: String,
    /// Hash of this row.
    pub hash: String,
}

/// Number and hash of a row. With a copy outside the database, a client can check later whether the log still has
/// that row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditHead {
    /// Number of the row.
    pub id: u64,
    /// Hash of the row.
    pub hash: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_kind_names_equal_wire_names() {
        for kind in AuditKind::ALL {
            assert_eq!(serde_json::to_value(kind).expect("JSON"), kind.name());
        }
    }
}
