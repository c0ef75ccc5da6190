//! The audit log's rows (P7, S27): who decided what, by which rule, when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Origin;
use super::ids::{CallId, Seq, SessionId};
use super::time::Timestamp;

/// What kind of decision a row tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditKind {
    /// A rule, a grant or the mode decided about a tool call; nobody was asked.
    Rule,
    /// A permission request was settled.
    Permission,
    /// A question was settled: a call whose outcome is unknown, or a paused turn.
    Question,
    /// A client called a method that its role may not call.
    Refused,
    /// A lasting rule was given or taken back.
    Grant,
    /// A session's mode was set to one that asks less.
    Mode,
    /// A session got other folders beside its own.
    Folders,
    /// A folder was trusted, or not any more.
    Trust,
    /// A damaged database was set aside; what came before this row may not be all there was.
    Rescue,
}

impl AuditKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Rule,
        Self::Permission,
        Self::Question,
        Self::Refused,
        Self::Grant,
        Self::Mode,
        Self::Folders,
        Self::Trust,
        Self::Rescue,
    ];

    /// The name in the database and on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Refused => "refused",
            Self::Grant => "grant",
            Self::Mode => "mode",
            Self::Folders => "folders",
            Self::Trust => "trust",
            Self::Rescue => "rescue",
        }
    }
}

/// The sandbox level of a row about what no sandbox holds: what runs in the daemon itself, or runs nothing.
pub const NO_SANDBOX: &str = "none";

/// One decision, before it has its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditNote {
    /// When.
    pub at_ms: Timestamp,
    /// What kind of decision.
    pub kind: AuditKind,
    /// The session it was about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<SessionId>,
    /// The event of its journal that says the same; both were written in one transaction.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seq: Option<Seq>,
    /// The tool call it was about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call_id: Option<CallId>,
    /// The tool, or the method that was called.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tool: Option<String>,
    /// SHA-256 of what was decided about, in hexadecimal: for a tool call of the JSON list of tool, input,
    /// folder and session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub digest: Option<String>,
    /// What was decided: allow, deny, refused, trusted, untrusted, or the choice that was made.
    pub verdict: String,
    /// The rule that decided, or the grant that was given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// The client that decided, by the name it gave itself; absent if nobody did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub client: Option<String>,
    /// Its user id.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uid: Option<u32>,
    /// Its process id when it connected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<i32>,
    /// The program it ran when it connected.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exe: Option<String>,
    /// How the command is confined; `none` for what is no command: file tools, whose rules are their own, and
    /// changes of rules, modes and trust. (`unknown` in rows of old versions.)
    pub sandbox: String,
}

impl AuditNote {
    /// A decision of nobody in particular, about nothing in particular.
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

    /// The same, decided by a client.
    #[must_use]
    pub fn by(mut self, origin: Option<&Origin>) -> Self {
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
/// `hash` is the SHA-256, in hexadecimal, of the JSON list of the row's values in the order `prev`,
/// `id`, `at_ms`, `kind`, `session_id`, `seq`, `call_id`, `tool`, `digest`, `verdict`, `rule`, `reason`,
/// `client`, `uid`, `pid`, `exe`, `sandbox`, without blanks, absent ones as `null`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    /// Its number: 1, 2, 3 … without a gap.
    pub id: u64,
    /// The decision.
    #[serde(flatten)]
    pub note: AuditNote,
    /// Hash of the row before; empty for the first.
    pub prev: String,
    /// Its own.
    pub hash: String,
}

/// A row and its hash: whoever keeps them elsewhere can later see whether the log still has that row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditHead {
    /// Its number.
    pub id: u64,
    /// Its hash.
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
