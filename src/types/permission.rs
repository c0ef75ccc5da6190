//! Approval modes, verdicts and answers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::hex;
use super::ids::SessionId;
use super::origin::Origin;
use super::time::Timestamp;

/// How much a session may do without a permission request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Mode {
    /// Reading inside the workspace is allowed; everything else needs a request.
    #[default]
    Default,
    /// File edits in the workspace are allowed as well.
    #[serde(alias = "autoEdit")]
    AcceptEdits,
    /// Only reading is allowed until a plan is approved.
    Plan,
    /// Never raises a request: a call without an allow rule is denied.
    DontAsk,
    /// Everything is allowed, except calls that a rule denies. Only if the configuration permits this mode.
    #[serde(alias = "yolo")]
    Bypass,
}

impl Mode {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Mode {
    /// The mode that allows no more than this one and the other one, as far as one mode can: `plan` and `dont_ask`
    /// are equally strict, and the first stays.
    #[must_use]
    pub const fn narrowed_to(self, other: Self) -> Self {
        if other.rank() < self.rank() { other } else { self }
    }

    const fn rank(self) -> u8 {
        match self {
            Mode::Plan | Mode::DontAsk => 0,
            Mode::Default => 1,
            Mode::AcceptEdits => 2,
            Mode::Bypass => 3,
        }
    }
}

/// The subject of a permission request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Whether a call may run at all.
    #[default]
    Tool,
    /// Whether a command that the sandbox blocked may run once more, outside the sandbox.
    Sandbox,
    /// Whether a proposed plan is approved. `session.approve {mode}` names the mode that follows plan mode.
    Plan,
}

/// Maximum bytes of a command with a session grant to run outside the sandbox, because clients show a grant
/// completely.
const MAX_GRANT_COMMAND_BYTES: usize = 2_000;

/// The grant that allows exactly this command outside the sandbox until the session ends; `None` if the command
/// is too long to be shown completely.
#[must_use]
pub fn unsandboxed_grant(command: &str) -> Option<String> {
    (command.len() <= MAX_GRANT_COMMAND_BYTES).then(|| format!("Unsandboxed({command})"))
}

/// Whether a rule is a grant to leave the sandbox.
#[must_use]
pub fn is_unsandboxed_grant(rule: &str) -> bool {
    // `Outside` is its name in older journals.
    rule.starts_with("Unsandboxed(") || rule.starts_with("Outside(")
}

/// The verdict of the rules on one tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It may run.
    Allow,
    /// The user decides.
    Ask,
    /// It may not run.
    Deny,
}

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub verdict: VerdictKind,
    /// The rule that decided, as written, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// The reason, as text for users.
    pub reason: String,
    /// Grants that a user could give for calls like this one, narrowest first.
    #[serde(default)]
    pub suggestions: Vec<String>,
    /// For commands: the verdict on each simple command in the line (at most 64).
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<CommandPart>,
    /// Whether the call is a command without a matching rule whose parts are all read-only, inside the workspace, and
    /// read no secrets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only_command: bool,
    /// Whether the call is a command that certainly changes nothing, including the working directory. This does not
    /// depend on the rules.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// One simple command of a command line with its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandPart {
    /// The text as written in the line. It is only the beginning if nested substitutions exceed 256 KiB in
    /// total.
    pub command: String,
    /// Its words without their quotes; expansions as written.
    pub words: Vec<String>,
    /// Allow, or ask; a deny verdict applies to the whole line.
    pub verdict: VerdictKind,
    /// The rule that allows it, if any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<String>,
    /// The reason, as text for users.
    pub reason: String,
}

/// A user's answer to a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Allow,
    /// Do not run it.
    Deny,
}

/// How long an allow is valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// For this call only.
    #[default]
    Once,
    /// For calls that the grant covers, until the session ends.
    Session,
    /// For calls in this workspace, until revoked.
    Project,
}

/// The action for an unanswered request of an unattended session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OnTimeout {
    /// Deny the call.
    #[default]
    Deny,
    /// Allow a call that only reads and reads no secret; deny any other.
    AllowReadOnly,
    /// The request stays pending, and the session is paused.
    Pause,
    /// The turn ends as `permission_denied`.
    Fail,
}

impl OnTimeout {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The effect of a rule on the calls that it covers. Deny overrides ask, and ask overrides allow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RuleKind {
    /// The calls run without a request.
    #[default]
    Allow,
    /// The calls always need a request.
    Ask,
    /// The calls never run.
    Deny,
}

impl RuleKind {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The scope of a rule. The verdict does not depend on it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RuleScope {
    /// The system's configuration in `/etc`.
    Managed,
    /// The user's configuration, or a user's rule for every folder.
    User,
    /// One workspace; stored in the user's data folder.
    Project,
    /// One session.
    Session,
}

impl RuleScope {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A rule with its origin.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleView {
    /// Whether the rule allows, asks or denies.
    pub kind: RuleKind,
    /// The rule as written.
    pub rule: String,
    /// Scope of the rule.
    pub scope: RuleScope,
    /// The file that contains it; absent for rules of a session.
    pub file: Option<String>,
    /// Time at which it was added, if known.
    pub added_at_ms: Option<Timestamp>,
    /// The client that added it, if known.
    pub by: Option<Origin>,
    /// Why the rule matches nothing, or why it would be refused if it were written now.
    pub note: Option<String>,
}

/// A rule to add or remove: the parameters of `permission.add_rule` and `permission.remove_rule`.
#[serde_with::skip_serializing_none]
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
    pub session_id: Option<SessionId>,
    /// With scope `project`: the folder, absolute.
    pub workspace: Option<String>,
    /// The same key with the same parameters returns the first reply: for a session's rule until the session is
    /// deleted, else within 24 hours.
    pub idempotency_key: Option<String>,
}

/// A call to judge and the values that its verdict depends on: the parameters of `permission.explain`.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainParams {
    /// The folder of the session that would call, absolute. It need not exist.
    pub workspace: PathBuf,
    /// The user's home folder, absolute; that of the daemon's user by default.
    pub home: Option<PathBuf>,
    /// The session's mode; `default` by default.
    pub mode: Option<Mode>,
    /// Whether read-only commands run without a rule; true by default.
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

/// The digest that binds an answer to the exact call, its folder and its session. SHA-256 in hexadecimal.
#[must_use]
pub fn digest(session_id: SessionId, folder: &str, tool: &str, input: &Value) -> String {
    // An array of strings, so that two different calls never have the same text.
    let text = serde_json::json!([tool, input, folder, session_id]).to_string();
    hex::encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Mint, Seed};
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
