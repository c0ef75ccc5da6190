//! The table of the configuration for permissions.

use serde::{Deserialize, Deserializer, Serialize};

use judge::Rule;
use types::permission::RuleKind;
use types::unattended::UnattendedSettings;

/// `[permissions]`
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    /// Whether read-only commands run without a rule.
    pub safe_commands: bool,
    /// Whether the mode `bypass` is allowed.
    pub allow_bypass: bool,
    /// Whether `bypass` is allowed for root.
    pub allow_bypass_as_root: bool,
    /// Whether `bypass` still needs a permission request for some calls: deleting the root, the home folder or
    /// a folder above the workspace, and writing SSH or GnuPG keys.
    pub bypass_guard: bool,
    /// Allow rules.
    #[serde(deserialize_with = "allow_rules")]
    pub allow: Vec<String>,
    /// Ask rules.
    #[serde(deserialize_with = "restricting_rules")]
    pub ask: Vec<String>,
    /// Deny rules.
    #[serde(deserialize_with = "restricting_rules")]
    pub deny: Vec<String>,
    /// Settings of unattended sessions.
    pub unattended: UnattendedSettings,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            safe_commands: true,
            allow_bypass: false,
            allow_bypass_as_root: false,
            bypass_guard: true,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            unattended: UnattendedSettings::default(),
        }
    }
}

/// Deserializes allow rules. They are parsed here, so that an error names their line. The result is the text that
/// is kept: `Bash(rm *)` becomes `Bash(rm:*)`.
fn allow_rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    rules(RuleKind::Allow, deserializer)
}

/// Deserializes ask or deny rules, as [`allow_rules`]. Each of them must be able to match a call.
fn restricting_rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    rules(RuleKind::Deny, deserializer)
}

fn rules<'de, D: Deserializer<'de>>(kind: RuleKind, deserializer: D) -> Result<Vec<String>, D::Error> {
    let kept = |text: &String| {
        let rule = Rule::in_list(kind, text).map_err(serde::de::Error::custom)?;
        if rule.is_unsandboxed() {
            let why = "running outside the sandbox is granted to a session only, when it is asked";
            return Err(serde::de::Error::custom(format!("{rule}: {why}")));
        }
        Ok(rule.to_string())
    };
    Vec::<String>::deserialize(deserializer)?.iter().map(kept).collect()
}
