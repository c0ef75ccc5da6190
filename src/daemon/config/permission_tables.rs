//! The table of the configuration for permissions.

use serde::{Deserialize, Deserializer, Serialize};

use judge::Rule;
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
    #[serde(deserialize_with = "rules")]
    pub allow: Vec<String>,
    /// Ask rules.
    #[serde(deserialize_with = "rules")]
    pub ask: Vec<String>,
    /// Deny rules.
    #[serde(deserialize_with = "rules")]
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

/// Deserializes rules. They are parsed here, so that an error names their line.
pub(super) fn rules<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let rules = Vec::<String>::deserialize(deserializer)?;
    for rule in &rules {
        let rule = rule.parse::<Rule>().map_err(serde::de::Error::custom)?;
        if rule.is_unsandboxed() {
            let why = "running outside the sandbox is granted to a session only, when it is asked";
            return Err(serde::de::Error::custom(format!("{rule}: {why}")));
        }
    }
    Ok(rules)
}
