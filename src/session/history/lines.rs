//! The lines of an export as JSON Lines. The first line contains the values that differ between copies
//! of a session: ids and times. All other lines stay the same after an import and another export.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use types::history::ForkedFrom;
use types::ids::{BlobId, SessionId};
use types::time::Timestamp;

/// Name of the format, in the first line.
pub(super) const FORMAT: &str = "agentd-session";
/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// Kinds that an export omits, because they are about clients and the daemon.
pub(super) const UNEXPORTED_KINDS: &[&str] =
    &["session.attached", "session.detached", "config.reloaded", "mcp.status", "mcp.tools"];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FirstLine {
    pub format: String,
    pub version: u32,
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub forked_from: Option<ForkedFrom>,
    pub exported_at_ms: Timestamp,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlobLine {
    pub blob_id: BlobId,
    pub media_type: String,
    /// The content in base64.
    pub content: String,
}

/// The event of a line, as a session stores it.
pub(super) fn event_body(
    mut event: Map<String, Value>,
    session_id: SessionId,
    forked_from: Option<&ForkedFrom>,
) -> Option<String> {
    event.insert("session_id".into(), session_id.to_string().into());
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    if matches!(kind, "session.created" | "session.forked")
        && let Some(from) = forked_from
    {
        event.insert("forked_from".into(), serde_json::to_value(from).ok()?);
    }
    serde_json::to_string(&event).ok()
}
