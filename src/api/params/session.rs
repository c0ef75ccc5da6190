//! Parameters and replies for creating, ending and listing sessions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::SubmitInput;
use types::ablation::Ablation;
use types::ids::SessionId;
use types::message::Role;
use types::permission::Mode;
use types::sampling::{Temperature, TopP};
use types::session::{OnRestart, SessionState, SessionView};
use types::thinking::Thinking;
use types::tool::ToolChoice;
use types::usage::Budgets;

/// `session.create`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CreateParams {
    /// An id that the client chooses: the same id with the same parameters returns the same session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// An existing folder, absolute.
    pub cwd: String,
    /// Short name; by default the first words of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `PROVIDER/MODEL`; by default `[models] main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Approval mode; by default `[session] mode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Whether the session is unattended.
    #[serde(default)]
    pub background: bool,
    /// Whether tools run one at a time and every call needs a permission request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safe_mode: Option<bool>,
    /// Handling of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_restart: Option<OnRestart>,
    /// Limits of each turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// How much its models may think; by default `[session] thinking`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// Temperature of its models, by default the model's own. From 0, which nearly always selects the most
    /// likely token, to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Temperature>,
    /// The probability mass of the most likely tokens to choose from, from 0 to 1. Vendors advise to set only
    /// one of `temperature` and `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<TopP>,
    /// Replaces the default system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// The tools on offer; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<ToolChoice>,
    /// Additional existing folders of the workspace, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_dirs: Option<Vec<String>>,
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// `PROVIDER/MODEL` that replaces an overloaded, missing or unreachable model; by default `[models]
    /// fallback`. Empty for that default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Texts at which the model stops its answer: at most 4, of at most 256 bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Labels that the provider receives with each model request: at most 16, with keys of at most 64 and values of
    /// at most 512 bytes. Anthropic accepts only `user_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Optimisations that are turned off; by default `[session.ablation]`. Fixed when the session is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ablation: Option<Ablation>,
    /// Whether the model answers every request twice and a client chooses one answer (`feedback.request`); by default
    /// `[session] binary_feedback`. Not for unattended sessions. Fixed when the session is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary_feedback: Option<bool>,
    /// MCP servers for only this session and its sub-agents, by name, each with the keys of `[mcp.NAME]`. They
    /// override servers of the same names from other sources. Events and exports do not contain them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<BTreeMap<String, serde_json::Value>>,
    /// Whether the session only plans and gives its work to sub-agents, which share a scratch folder with it. It gets
    /// no tool that changes anything outside that folder. Not together with `agent` or `tools`. Fixed when the
    /// session is created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coordinator: bool,
    /// Name of the agent as which the session works (`agent.list`). The agent's tools and model apply unless others
    /// are given. Fixed when the session is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Messages with which the conversation begins: at most 1,000, of at most 4 MiB together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_items: Option<Vec<InitialItem>>,
    /// JSON Schema of the results of turns, as in `session.submit`; `{}` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<serde_json::Value>,
}

/// A message with which the conversation of a new session begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitialItem {
    /// Its author.
    pub role: Role,
    /// Text, or a list of text blocks; must not be empty.
    pub content: SubmitInput,
}

/// Reply of `session.create` and `session.get`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReply {
    /// The session as `session.list` shows it.
    pub session: SessionView,
}

/// Selects one session.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionParams {
    /// Id of the session.
    pub session_id: SessionId,
}

/// `session.kill` and `session.delete`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// A repeated call with the same key returns the reply of the first call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// `session.list`
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListParams {
    /// `next_cursor` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Sessions per page, 1 to 500; 100 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Only these states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<SessionState>>,
    /// Only sessions of this folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only sessions that match this text. Either the title, the folder or the last line contains the text, or a
    /// message contains all its words. The last word may be the beginning of a word. `matches` names the matching
    /// messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// Whether the sessions of sub-agents are listed as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub include_children: bool,
}

/// Reply of `session.list`: newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListReply {
    /// Sessions of this page.
    pub sessions: Vec<SessionView>,
    /// Cursor of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}
