//! Parameters and replies of the operations on a session's history.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::types::ids::{ItemId, SessionId};

/// `session.fork`
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForkParams {
    /// The session to copy.
    pub session_id: SessionId,
    /// The last item of the copied conversation; by default all of it. It must be complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// Title of the new session; by default the old title with `(fork)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Makes a repeated call return the first one's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}
