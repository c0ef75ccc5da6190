//! Sub-agents: sessions that a `Task` call of another session starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{CallId, SessionId};

/// The name of the tool that starts sub-agents.
pub const TASK: &str = "Task";

/// The call that started a session. Sessions that a client created have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParentCall {
    /// The session that made the call.
    pub session_id: SessionId,
    /// The `Task` call.
    pub call_id: CallId,
    /// The first session of the tree: the one that a client created.
    pub root_session_id: SessionId,
    /// Number of calls between the first session and this one, from 1.
    pub depth: u32,
}

/// The agent of hidden sessions. No file can define it, because its name is not allowed in files.
pub const HIDDEN_AGENT: &str = "$knowledge";

/// The agent as which a session works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentProfile {
    /// Its name.
    pub name: String,
    /// Its instructions for the model, a part of the system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prompt: String,
}

/// The owner of an agent's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentSource {
    /// The daemon itself.
    BuiltIn,
    /// A Markdown file of the user.
    User,
    /// A Markdown file of the trusted project.
    Project,
}
