//! Sub-agents: sessions that a `Task` call of another session starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ids::{CallId, SessionId};
use super::permission::Mode;
use super::tool::ToolChoice;

pub use super::tool::TASK;

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
    /// What its definition forbids.
    #[serde(default, skip_serializing_if = "AgentRestrictions::is_none")]
    pub restrictions: AgentRestrictions,
}

/// What the definitions of an agent, and of the agents that started it, forbid. It never allows a call. No option of
/// the session and no answer of a user removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentRestrictions {
    /// Lists of tools. Each of them must offer the tool of a call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolChoice>,
    /// Lists of rules such as `Bash(git:*)`. In each list that has rules for the tool of a call, one must cover it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Vec<String>>,
    /// Rules that deny calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Rules for calls that always need a permission request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// Modes by which each call is judged as well; the strictest verdict counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
}

impl AgentRestrictions {
    /// Whether nothing is forbidden.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Both restrictions together.
    #[must_use]
    pub fn and(mut self, more: Self) -> Self {
        fn add<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
            for entry in more {
                if !list.contains(&entry) {
                    list.push(entry);
                }
            }
        }
        add(&mut self.tools, more.tools);
        add(&mut self.only, more.only);
        add(&mut self.deny, more.deny);
        add(&mut self.ask, more.ask);
        add(&mut self.modes, more.modes);
        self
    }
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
