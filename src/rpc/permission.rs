//! `permission.list`

use std::sync::Arc;

use super::convert;
use super::office::Office;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{PendingRequest, PermissionListParams, PermissionListReply};
use crate::session::Pending;

pub(super) async fn list(
    office: Arc<Office>,
    _: Caller,
    p: PermissionListParams,
) -> Result<PermissionListReply, Fault> {
    let after = convert::cursor(p.cursor.as_deref())?;
    let limit = convert::limit(p.limit, 100, 500);
    let (requests, next) =
        office.registry.pending(p.session_id, after, limit).await.map_err(convert::fault)?;
    let requests = requests
        .into_iter()
        .map(|Pending { session_id, at_ms, cut, request }| PendingRequest { session_id, at_ms, cut, request })
        .collect();
    Ok(PermissionListReply { requests, next_cursor: next.map(|id| id.to_string()) })
}
