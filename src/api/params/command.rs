//! Parameters of the methods about slash commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use types::ids::SessionId;
use types::slash_command::CommandView;

/// `command.list`: exactly one of the two parameters must be present.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CommandListParams {
    /// The commands of this session.
    pub session_id: Option<SessionId>,
    /// The commands that a session in this folder has.
    pub cwd: Option<String>,
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
