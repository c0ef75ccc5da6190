//! `session.abort`, `session.kill`, `session.delete`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{AbortParams, AbortReply, Done, EndParams};
use session::AbortOutcome;

pub(super) async fn abort(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: AbortParams,
) -> Result<AbortReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    let aborted =
        session.abort(p.turn_id, p.call_id, keyed, caller.origin()).await.map_err(convert::fault)?;
    Ok(reply(aborted))
}

pub(super) async fn kill(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: EndParams,
) -> Result<AbortReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let killed = ctx.registry.kill(p.session_id, keyed, caller.origin()).await;
    let aborted = killed.map_err(convert::fault)?;
    Ok(reply(aborted))
}

pub(super) async fn delete(ctx: Arc<RpcContext>, caller: Caller, mut p: EndParams) -> Result<Done, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    ctx.registry.delete(p.session_id, keyed, caller.origin()).await.map_err(convert::fault)?;
    Ok(Done {})
}

fn reply(aborted: AbortOutcome) -> AbortReply {
    let turn = aborted.turn.map(|turn| turn.to_string());
    let calls = aborted.calls.into_iter().map(|call| call.to_string());
    AbortReply { stopped: turn.into_iter().chain(calls).collect(), survivors: aborted.survivors }
}
