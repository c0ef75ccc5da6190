//! `session.wait`

use std::sync::Arc;
use std::time::Duration;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{WaitParams, WaitReply};
use session::SessionError;
use types::session::SessionState;

/// States that end a wait by default.
const DEFAULT_STATES: [SessionState; 3] =
    [SessionState::Idle, SessionState::RequiresAction, SessionState::Ended];
/// Maximum `timeout_ms`: 30 days.
const MAX_TIMEOUT_MS: u64 = 30 * 24 * 3_600 * 1_000;

pub(super) async fn wait(ctx: Arc<RpcContext>, _: Caller, p: WaitParams) -> Result<WaitReply, Fault> {
    let until = p.until.unwrap_or_else(|| DEFAULT_STATES.to_vec());
    if until.is_empty() {
        return Err(convert::invalid_param("until", "name at least one state, or leave it out"));
    }
    if p.timeout_ms.is_some_and(|ms| ms > MAX_TIMEOUT_MS) {
        return Err(convert::invalid_param("timeout_ms", &format!("at most {MAX_TIMEOUT_MS} (30 days)")));
    }
    let timeout = async {
        match p.timeout_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
    };
    // Biased: a state that is already reached counts even with `timeout_ms: 0`.
    let reached = tokio::select! {
        biased;
        view = ctx.registry.wait(p.session_id, &until) => Some(view.map_err(convert::fault)?),
        () = ctx.stop.requested().cancelled() => return Err(convert::fault(SessionError::ShuttingDown)),
        () = timeout => None,
    };
    let timed_out = reached.is_none();
    let session = match reached {
        Some(view) => view,
        None => ctx.registry.view(p.session_id).await.map_err(convert::fault)?,
    };
    let result = ctx.registry.last_result(p.session_id).await.map_err(convert::fault)?;
    Ok(WaitReply { session, result, timed_out })
}
