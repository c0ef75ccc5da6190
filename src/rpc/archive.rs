//! `session.archive`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ArchiveParams, SessionReply};

pub(super) async fn archive(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ArchiveParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    session.archive(p.archived, keyed, caller.origin()).await.map_err(convert::fault)?;
    Ok(SessionReply { session: ctx.registry.view(p.session_id).await.map_err(convert::fault)? })
}
