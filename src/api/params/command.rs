//! Parameters of the methods about slash commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::SessionId;

/// `command.list`: exactly one of the two parameters must be present.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommandListParams {
    /// The commands of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The commands that a session in this folder has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandView {
    /// Its name without the slash.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// Hint about its arguments, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// Its origin.
    pub source: CommandSource,
    /// Path of the file that defines it, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// A file that the daemon cannot use, or uses only in part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiagnostic {
    /// The file or folder.
    pub path: String,
    /// The problem and how to correct it.
    pub message: String,
}

/// Reply of `command.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandListReply {
    /// The built-in commands first, then the others by name.
    pub commands: Vec<CommandView>,
    /// Files with commands that the daemon cannot use, or uses only in part.
    pub diagnostics: Vec<FileDiagnostic>,
}
