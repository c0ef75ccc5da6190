//! `session.compact`, `session.context` and `session.request`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{CompactParams, CompactReply, SessionParams};
use api::{Code, Fault};
use types::compaction::CompactRequest;
use types::context_view::ContextView;
use types::request_view::RequestView;

/// Maximum characters of the user's instructions for a summary.
const MAX_INSTRUCTIONS_CHARS: usize = 10_000;

pub(super) async fn compact(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: CompactParams,
) -> Result<CompactReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let instructions = p.instructions.filter(|text| !text.trim().is_empty());
    if instructions.as_ref().is_some_and(|text| text.chars().count() > MAX_INSTRUCTIONS_CHARS) {
        let why = format!("instructions: at most {MAX_INSTRUCTIONS_CHARS} characters");
        return Err(Fault::new(Code::InvalidParams, why).with("path", "instructions"));
    }
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    let request = CompactRequest { instructions };
    let added = session.compact(request, keyed, caller.origin()).await.map_err(convert::fault)?;
    Ok(CompactReply { turn_id: added.turn_id, seq: added.seq })
}

pub(super) async fn context(ctx: Arc<RpcContext>, _: Caller, p: SessionParams) -> Result<ContextView, Fault> {
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    session.context().await.map_err(convert::fault)
}

pub(super) async fn request(ctx: Arc<RpcContext>, _: Caller, p: SessionParams) -> Result<RequestView, Fault> {
    ctx.registry.next_request(p.session_id).await.map_err(convert::fault)
}
