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
    /// Whether these rules hold only while the folder is trusted, because the command is a file of the project.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub needs_trust: bool,
    /// The parts of the expansion, if some of them are filled in before the model receives the text.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub parts: Vec<CommandPart>,
}

/// A part of the expansion of a command's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommandPart {
    /// Text as it is.
    Text {
        /// The text itself.
        text: String,
    },
    /// The output of a shell command takes this place.
    Output {
        /// The command, with the arguments put in.
        command: String,
    },
    /// A file that the text names here, and that follows the text.
    File {
        /// The path, with the arguments put in.
        path: String,
    },
}

impl CommandPart {
    /// The part as the file has it.
    #[must_use]
    pub fn source(&self) -> String {
        match self {
            CommandPart::Text { text } => text.clone(),
            CommandPart::Output { command } => format!("!`{command}`"),
            CommandPart::File { path } => format!("@{path}"),
        }
    }
}

impl SlashCommand {
    /// A slash command without rules.
    #[must_use]
    pub fn new(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: arguments.into(),
            allow_rules: Vec::new(),
            needs_trust: false,
            parts: Vec::new(),
        }
    }

    /// The command as its user's message names it.
    #[must_use]
    pub fn without_details(self) -> Self {
        Self { allow_rules: Vec::new(), needs_trust: false, parts: Vec::new(), ..self }
    }

    /// The line that the user typed.
    #[must_use]
    pub fn line(&self) -> String {
        format!("/{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandSource {
    /// The daemon itself.
    BuiltIn,
    /// A Markdown file of the user.
    User,
    /// A Markdown file of the trusted project.
    Project,
    /// A prompt of an MCP server.
    Mcp,
    /// A skill of the user or of the trusted project.
    Skill,
}

/// One slash command.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandView {
    /// Its name without the slash.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// Hint about its arguments, for users.
    pub argument_hint: Option<String>,
    /// Its origin.
    pub source: CommandSource,
    /// Path of the file that defines it, if there is one.
    pub path: Option<String>,
}
