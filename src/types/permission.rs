//! Approval modes, verdicts and answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
}

/// One simple command of a command line, as it was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandPart {
    /// The text as it stands in the line.
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
