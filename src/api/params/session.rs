//! Parameters and replies for creating, ending and listing sessions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::SubmitInput;
use super::turn_options::params;
use types::ablation::Ablation;
use types::ids::SessionId;
use types::message::Role;
use types::session::{OnRestart, SessionState, SessionView};
use types::session_environment::SessionEnvironment;
use types::worktree::WorktreeChoice;

types::with_turn_options!(params {
    /// `session.create`. An option that is absent has the value of the configuration, for example `[models] main`,
    /// `[session] mode` and `[session] thinking`.
    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
    pub struct CreateParams {
        required {
            /// An existing folder, absolute.
            pub cwd: String,
        }
        optional {
            /// An id that the client chooses: the same id with the same parameters returns the same session.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub session_id: Option<SessionId>,
            /// Short name; by default the first words of the first prompt.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub title: Option<String>,
            /// Whether the session is unattended.
            #[serde(default)]
            pub background: bool,
            /// Handling of a turn that a restart of the daemon interrupts; by default `[daemon] on_restart`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub on_restart: Option<OnRestart>,
            /// A repeated call with the same key returns the reply of the first call.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub idempotency_key: Option<String>,
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
            /// Variables of the environment of its commands: `PATH`, virtual environments, locale and others. Refused are
            /// names that look like secrets or change which programs run, unless `[tools] env` lists them. Absent: those
            /// that the daemon has. Events and exports do not contain them; `session.get` shows the names.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub env: Option<SessionEnvironment>,
            /// Makes a git worktree of the folder's repository on a branch of its own, in which the session works: `true`, or
            /// an object with `base`, `branch`, `keep`, `include` and `commit`.
            #[serde(
                default,
                skip_serializing_if = "Option::is_none",
                deserialize_with = "types::worktree::optional_worktree"
            )]
            pub worktree: Option<WorktreeChoice>,
        }
    }
});

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
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListParams {
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
    /// Sessions per page, 1 to 500; 100 by default.
    pub limit: Option<u32>,
    /// Only these states.
    pub states: Option<Vec<SessionState>>,
    /// Only sessions of this folder.
    pub cwd: Option<String>,
    /// Only sessions that match this text. Either the title, the folder or the last line contains the text, or a
    /// message contains all its words. The last word may be the beginning of a word. `matches` names the matching
    /// messages.
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
