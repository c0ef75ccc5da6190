//! Steps that the calls of several tools share.

use serde_json::json;

use crate::error::ToolError;
use types::tool::{PreparedCall, Subject};

/// Runs work that blocks on the disk. It is not aborted when the caller is dropped.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(internal_error()))
}

/// The error for a bug of the daemon. The log contains the panic.
pub(super) fn internal_error() -> ToolError {
    ToolError::new("internal", "the tool failed by an error of its own; try another way")
}

/// Refuses if the call would affect another target than the judged one.
pub(super) fn same_target(prepared: &PreparedCall, now: &Subject) -> Result<(), ToolError> {
    if prepared.subject == *now {
        return Ok(());
    }
    Err(ToolError::new(
        "target_changed",
        "the call would now touch something else than when it was judged; look again and retry",
    )
    .with(json!({ "judged": prepared.subject, "now": now })))
}
