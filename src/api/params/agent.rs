//! Parameters of the methods about agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FileDiagnostic;
use types::permission::Mode;
use types::subagent::AgentSource;

/// `agent.list`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentListParams {
    /// The folder of the sessions.
    pub cwd: String,
}

/// One agent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Its name, as its file has it.
    pub name: String,
    /// The name to type: `subagent_type` of the tool `Task`, `agent` of `session.create`. The name is accepted there
    /// as well.
    #[serde(default)]
    pub slug: String,
    /// When to use it.
    pub description: String,
    /// Its tools, such as `Read` or `Bash(git:*)`; `["*"]` for all.
    pub tools: Vec<String>,
    /// Names of tools that it does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// Approval mode that it has at most.
    pub mode: Option<Mode>,
    /// Maximum number of model calls of a task.
    pub max_turns: Option<u64>,
    /// Its model: `PROVIDER/MODEL`, a pointer of `[models]`, one of `[models.aliases]`, or `inherit` for the model of
    /// the session. If it is absent or not known, the pointer `task` applies, or else the session's model.
    pub model_name: Option<String>,
    /// The colour in which clients show it.
    pub color: Option<String>,
    /// The owner of its definition.
    pub source: AgentSource,
    /// Its file; absent for a built-in agent.
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
