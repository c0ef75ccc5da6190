//! Parameters and replies for submitting inputs, and for updating, compacting and aborting.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::input::SubmitInput;
use super::turn_options::params;
use types::ids::{CallId, Seq, SessionId, TurnId};
use types::queue::WhenBusy;
use types::session_environment::SessionEnvironment;

types::with_turn_options!(params {
    /// `session.submit`. An option that is absent has the session's value.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    pub struct SubmitParams {
        required {
            /// Id of the session.
            pub session_id: SessionId,
            /// Text or blocks; must not be empty.
            pub input: SubmitInput,
        }
        optional {
            /// The action if a turn runs. By default the input is queued, and pending questions whether to continue are
            /// settled with `continue`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub when_busy: Option<WhenBusy>,
            /// The submit is refused unless this is the current turn.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub expected_turn_id: Option<TurnId>,
            /// The same key with the same input returns the same turn, also after a restart.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub idempotency_key: Option<String>,
            /// Whether to send the text to the model even if it looks like a slash command or a note. Otherwise a single text
            /// block of one line is a command (`/name …`) or a note for the project instructions (`# …`).
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub raw: bool,
        }
    }
});

types::with_turn_options!(params {
    /// `session.update`. Absent values stay unchanged.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    pub struct UpdateParams {
        required {
            /// Id of the session.
            pub session_id: SessionId,
        }
        optional {
            /// Short name.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub title: Option<String>,
            /// A repeated call with the same key returns the reply of the first call.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub idempotency_key: Option<String>,
            /// Variables of the environment of its commands, in place of all that were sent before; from the next command
            /// on. See `session.create`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub env: Option<SessionEnvironment>,
            /// MCP servers for only this session and its sub-agents, in place of all that were given for it before; from
            /// the next turn on. See `session.create`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub mcp_servers: Option<BTreeMap<String, serde_json::Value>>,
        }
    }
});

/// `session.compact`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompactParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// Instructions about the content that the summary must keep; at most 10,000 characters.
    pub instructions: Option<String>,
    /// A repeated call with the same key returns the same reply.
    pub idempotency_key: Option<String>,
}

/// Reply of `session.compact`: the request is on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactReply {
    /// The turn that compacts the conversation.
    pub turn_id: TurnId,
    /// Seq of the event that records the request.
    pub seq: Seq,
}

/// `session.abort`
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AbortParams {
    /// Id of the session.
    pub session_id: SessionId,
    /// The turn to stop; by default the running turn. If another turn runs, the daemon refuses the abort.
    pub turn_id: Option<TurnId>,
    /// The only tool call to stop; the turn continues.
    pub call_id: Option<CallId>,
    /// The same key with the same parameters returns the same `stopped`, and stops no work that started later.
    pub idempotency_key: Option<String>,
}

/// Reply of `session.abort`: the work has stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbortReply {
    /// Ids of the turn and tool calls that were stopped; empty if nothing ran.
    pub stopped: Vec<String>,
    /// Process ids that could not be stopped.
    pub survivors: Vec<i32>,
}
