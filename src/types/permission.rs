//! Approval modes, verdicts and answers.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ids::SessionId;

/// How much a session may do without asking (P1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reading inside the workspace passes, the rest asks.
    #[default]
    Default,
    /// File edits in the workspace pass as well.
    #[serde(alias = "autoEdit")]
    AcceptEdits,
    /// Read-only until a plan is approved.
    Plan,
    /// Never asks: what no rule allows is denied.
    DontAsk,
    /// Everything passes, except what a rule denies. Only where the configuration allows it.
    #[serde(alias = "yolo")]
    Bypass,
}

impl Mode {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::AcceptEdits => "accept_edits",
            Mode::Plan => "plan",
            Mode::DontAsk => "dont_ask",
            Mode::Bypass => "bypass",
        }
    }
}

/// What a permission request is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Whether a call runs at all.
    #[default]
    Tool,
    /// Whether a command that the sandbox stopped runs once more, outside of it.
    Sandbox,
}

/// The longest command that can be granted for a session to run outside, in bytes: a grant is shown whole.
const LONGEST_OUTSIDE: usize = 2_000;

/// The grant that lets exactly this command run outside the sandbox for as long as the session lives;
/// `None` if it is too long to be shown whole.
#[must_use]
pub fn outside_grant(command: &str) -> Option<String> {
    (command.len() <= LONGEST_OUTSIDE).then(|| format!("Outside({command})"))
}

/// What the rules say of one tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

/// A judgement with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub verdict: VerdictKind,
    /// The rule that decided, as written, if one did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Grants that a person could give for calls like this one, narrowest first.
    #[serde(default)]
    pub suggestions: Vec<String>,
    /// For commands: what becomes of each simple command in the line (at most 64).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<CommandPart>,
    /// A command of which no rule speaks and of which every part only looks, inside the workspace and at no secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_looks: bool,
    /// A command that is known to change nothing, also not the working directory, whatever the rules say of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// One simple command of a command line, as it was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandPart {
    /// The text as it stands in the line; its start, if the parts of a line of nested substitutions come
    /// to more than 256 KiB.
    pub command: String,
    /// Its words without their quotes; expansions as written.
    pub words: Vec<String>,
    /// Allow, or ask; a denial is the whole line's.
    pub verdict: VerdictKind,
    /// The rule that allows it, if one does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// Why, for people.
    pub reason: String,
}

/// A person's answer to a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Allow,
    /// Do not run it.
    Deny,
}

/// How long an allow holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this call only.
    #[default]
    Once,
    /// For calls that the grant covers, as long as the session lives.
    Session,
    /// For calls in this workspace, until revoked.
    Project,
}

/// What becomes of a request of an unattended session that nobody answered in time (P6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// No.
    #[default]
    Deny,
    /// Yes, if the call only reads and reads no secret; else no.
    AllowReadOnly,
    /// It waits on, and the session is paused.
    Pause,
    /// The turn ends as `permission_denied`.
    Fail,
}

impl OnTimeout {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OnTimeout::Deny => "deny",
            OnTimeout::AllowReadOnly => "allow_read_only",
            OnTimeout::Pause => "pause",
            OnTimeout::Fail => "fail",
        }
    }
}

/// What a rule says of the calls that it covers. Deny wins over ask, and ask over allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// They pass without asking.
    #[default]
    Allow,
    /// They always ask.
    Ask,
    /// They never pass.
    Deny,
}

impl RuleKind {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RuleKind::Allow => "allow",
            RuleKind::Ask => "ask",
            RuleKind::Deny => "deny",
        }
    }
}

/// Whose a rule is (P2). The verdict does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// The system's configuration in `/etc`.
    Managed,
    /// The user's configuration, or a rule of the user's for every folder.
    User,
    /// One workspace, kept among the user's data.
    Project,
    /// One session.
    Session,
}

impl RuleScope {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RuleScope::Managed => "managed",
            RuleScope::User => "user",
            RuleScope::Project => "project",
            RuleScope::Session => "session",
        }
    }
}

/// What an answer is bound to: the call to the letter, and where and for whom it would run (S6).
/// SHA-256 in hexadecimal.
#[must_use]
pub fn digest(session_id: SessionId, folder: &str, tool: &str, input: &Value) -> String {
    // An array of texts: no two different calls are written alike.
    let text = serde_json::json!([tool, input, folder, session_id]).to_string();
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ids::{Mint, Seed};
    use serde_json::json;

    #[test]
    fn request_digest_differs_by_session_folder_and_call() {
        let (one, two) = (Mint::new(1, Seed(1)).session(), Mint::new(1, Seed(2)).session());
        let calls = [
            digest(one, "/w", "Bash", &json!({"command": "ls"})),
            digest(two, "/w", "Bash", &json!({"command": "ls"})),
            digest(one, "/w/a", "Bash", &json!({"command": "ls"})),
            digest(one, "/w", "Read", &json!({"command": "ls"})),
            digest(one, "/w", "Bash", &json!({"command": "ls "})),
            digest(one, "/w\",\"Bash", "", &json!({"command": "ls"})),
        ];
        for (at, digest) in calls.iter().enumerate() {
            assert_eq!(digest.len(), 64);
            assert!(!calls[..at].contains(digest), "{at}");
        }
        assert_eq!(calls[0], super::digest(one, "/w", "Bash", &json!({"command": "ls"})));
    }
}
