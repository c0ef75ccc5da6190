//! One policy file: its content and the conditions under which it is valid.

use std::path::Path;

use serde::{Deserialize, Serialize};

use judge::{Rule, Rules};
use types::event::Origin;
use types::ids::{PermissionId, SessionId};
use types::permission::RuleKind;
use types::time::Timestamp;

/// The version of the file format.
const VERSION: u32 = 1;

/// One rule with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyEntry {
    /// Allow, ask or deny.
    pub kind: RuleKind,
    /// The rule as text, `Tool(pattern)`.
    pub rule: String,
    /// When the rule was added.
    pub added_at_ms: Timestamp,
    /// The client that added it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<Origin>,
    /// The session in which the user granted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_id: Option<SessionId>,
    /// The permission request whose answer granted it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request_id: Option<PermissionId>,
}

/// The file as it is serialised.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    version: u32,
    /// The workspace's real path; absent in the file for all workspaces.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    workspace: Option<String>,
    rules: Vec<PolicyEntry>,
}

/// The content of a policy file.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The rules in the order in which they were added.
    pub entries: Vec<PolicyEntry>,
    /// The same rules, parsed for judging.
    pub rules: Rules,
}

impl Policy {
    /// Creates a policy from rules. Each text has its exact meaning, also if it was stored by an earlier version.
    ///
    /// # Errors
    /// A rule is invalid.
    pub(super) fn from_entries(entries: Vec<PolicyEntry>) -> Result<Self, String> {
        let mut rules = Rules::default();
        for entry in &entries {
            let rule = Rule::stored(&entry.rule).map_err(|error| format!("{error}"))?;
            match entry.kind {
                RuleKind::Allow => rules.allow.push(rule),
                RuleKind::Ask => rules.ask.push(rule),
                RuleKind::Deny => rules.deny.push(rule),
            }
        }
        Ok(Self { entries, rules })
    }

    /// Parses a file that belongs to `workspace`.
    ///
    /// # Errors
    /// A reason for the user why the file is invalid.
    pub(super) fn read(text: &str, workspace: Option<&Path>) -> Result<Self, String> {
        let written: PolicyFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if written.version != VERSION {
            return Err(format!("its version is {}, and this daemon knows {VERSION}", written.version));
        }
        let expected = workspace.map(|path| path.to_string_lossy().into_owned());
        if written.workspace != expected {
            let of = written.workspace.unwrap_or_else(|| "all workspaces".into());
            return Err(format!("it belongs to {of}"));
        }
        Self::from_entries(written.rules)
    }

    /// Serialises the policy for its file.
    pub(super) fn text(&self, workspace: Option<&Path>) -> String {
        let written = PolicyFile {
            version: VERSION,
            workspace: workspace.map(|path| path.to_string_lossy().into_owned()),
            rules: self.entries.clone(),
        };
        // Plain data with string keys: serialising it cannot fail.
        let mut text = serde_json::to_string_pretty(&written).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Whether the policy contains this rule.
    #[must_use]
    pub fn contains(&self, kind: RuleKind, rule: &str) -> bool {
        self.entries.iter().any(|entry| entry.kind == kind && entry.rule == rule)
    }
}
