//! Slash commands as events, items and queued turns name them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A slash command that a user typed: `/name arguments`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlashCommand {
    /// The name without the slash, for example `review` or `team:review`.
    pub name: String,
    /// The text after the name, as it was typed.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub arguments: String,
    /// Allow rules that hold until the turn ends, from the command's `allowed-tools`. Rules that deny or ask have
    /// priority.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub allow_rules: Vec<String>,
}

impl SlashCommand {
    /// A slash command without rules.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into(), allow_rules: Vec::new() }
    }

    /// The line that the user typed.
    #[must_use]
    pub fn line(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}
