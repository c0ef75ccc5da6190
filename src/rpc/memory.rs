//! `memory.list`, `memory.set`, `memory.remove`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{
    MemoryListParams, MemoryListReply, MemoryRemoveParams, MemoryRemoveReply, MemorySetParams, MemorySetReply,
};

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: MemoryListParams,
) -> Result<MemoryListReply, Fault> {
    let notes = ctx.registry.notes(&p.cwd, p.name.as_deref()).await.map_err(convert::fault)?;
    Ok(MemoryListReply { notes })
}

pub(super) async fn set(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: MemorySetParams,
) -> Result<MemorySetReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let set = async {
        let note = ctx.registry.write_note(&p.cwd, &p.name, &p.text, caller.origin()).await;
        note.map(|note| MemorySetReply { note }).map_err(convert::fault)
    };
    ctx.registry.once("memory.set", None, keyed, convert::fault, set).await
}

pub(super) async fn remove(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: MemoryRemoveParams,
) -> Result<MemoryRemoveReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let remove = async {
        let removed = ctx.registry.remove_note(&p.cwd, &p.name, caller.origin()).await;
        removed.map(|()| MemoryRemoveReply { name: p.name.clone() }).map_err(convert::fault)
    };
    ctx.registry.once("memory.remove", None, keyed, convert::fault, remove).await
}
