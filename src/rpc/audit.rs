//! `permission.audit`, `permission.verify_audit`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{AuditParams, AuditReply, VerifyAuditParams, VerifyAuditReply};
use session::AuditQuery;

pub(super) async fn audit(ctx: Arc<RpcContext>, _: Caller, p: AuditParams) -> Result<AuditReply, Fault> {
    let after = convert::cursor(p.cursor.as_deref())?.unwrap_or(0);
    let limit = convert::limit(p.limit, 100, 500);
    let query = AuditQuery { session_id: p.session_id, since: p.since_ms, after, limit: limit + 1 };
    let mut entries = ctx.registry.shared().store.audit(query).await.map_err(|e| convert::fault(e.into()))?;
    let more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next_cursor = if more { entries.last().map(|last| last.id.to_string()) } else { None };
    Ok(AuditReply { entries, next_cursor })
}

pub(super) async fn verify(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: VerifyAuditParams,
) -> Result<VerifyAuditReply, Fault> {
    let check =
        ctx.registry.shared().store.check_audit(p.known).await.map_err(|e| convert::fault(e.into()))?;
    Ok(VerifyAuditReply { rows: check.rows, head: check.head, faults: check.faults })
}
