//! Parameters of the methods about agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FileDiagnostic;
use types::subagent::AgentSource;

/// `agent.list`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentListParams {
    /// The folder of the sessions.
    pub cwd: String,
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Its name: `subagent_type` of the tool `Task`, `agent` of `session.create`.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// Names of its tools; `["*"]` for all.
    pub tools: Vec<String>,
    /// Its model: `PROVIDER/MODEL` or a pointer of `[models]`. If it is absent, the pointer `task` applies, or else
    /// the session's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_name: Option<String>,
    /// The colour in which clients show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The owner of its definition.
    pub source: AgentSource,
    /// Its file; absent for a built-in agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Reply of `agent.list`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentListReply {
    /// The agents, by descending priority: project, user, built-in.
    pub agents: Vec<AgentView>,
    /// Files with agents that the daemon cannot use, or uses only in part.
    pub diagnostics: Vec<FileDiagnostic>,
}
