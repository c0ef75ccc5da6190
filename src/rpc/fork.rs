//! `session.fork`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ForkParams, SessionReply};
use session::ForkRequest;

pub(super) async fn fork(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ForkParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let request = ForkRequest { item_id: p.item_id, title: p.title, keyed, origin: caller.origin() };
    let session = ctx.registry.fork(p.session_id, request).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
