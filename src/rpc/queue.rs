//! `session.queue.list`, `.clear`, `.update`, `.remove`, `.move`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use crate::input_files;
use api::Fault;
use api::params::{
    QueueClearParams, QueueListParams, QueueMoveParams, QueueRemoveParams, QueueReply, QueueUpdateParams,
};
use session::{IdempotencyKey, QueueChange, QueueEdit};
use types::ids::{SessionId, TurnId};
use types::queue::QueuedTurn;

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, p: QueueListParams) -> Result<QueueReply, Fault> {
    let after: Option<TurnId> = convert::cursor(p.cursor.as_deref())?;
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    let queue = session.queue().await.map_err(convert::fault)?;
    let start = match after {
        None => 0,
        Some(after) => {
            queue.iter().position(|queued| queued.turn_id == after).map(|at| at + 1).ok_or_else(|| {
                convert::invalid_param(
                    "cursor",
                    "that turn is not queued any more; begin again without a cursor",
                )
            })?
        }
    };
    Ok(page(queue, start, convert::limit(p.limit, 100, 500)))
}

pub(super) async fn clear(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: QueueClearParams,
) -> Result<QueueReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    edit(&ctx, caller, p.session_id, QueueEdit::Clear, keyed).await
}

pub(super) async fn remove(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: QueueRemoveParams,
) -> Result<QueueReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    edit(&ctx, caller, p.session_id, QueueEdit::Remove { turn_id: p.turn_id }, keyed).await
}

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: QueueUpdateParams,
) -> Result<QueueReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let input = input_files::ingest(&ctx, p.session_id, p.input).await?;
    let change = QueueEdit::Update { turn_id: p.turn_id, input: input.blocks, blobs: input.blobs };
    edit(&ctx, caller, p.session_id, change, keyed).await
}

pub(super) async fn move_turn(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: QueueMoveParams,
) -> Result<QueueReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    edit(&ctx, caller, p.session_id, QueueEdit::Move { turn_id: p.turn_id, before: p.before }, keyed).await
}

async fn edit(
    ctx: &RpcContext,
    caller: Caller,
    session_id: SessionId,
    edit: QueueEdit,
    keyed: Option<IdempotencyKey>,
) -> Result<QueueReply, Fault> {
    let session = ctx.registry.open(session_id).await.map_err(convert::fault)?;
    let change = QueueChange { edit, keyed, origin: caller.origin() };
    let queue = session.edit_queue(change).await.map_err(convert::fault)?;
    Ok(page(queue, 0, 500))
}

/// Returns at most `limit` turns from index `start`. A page has fewer turns if their inputs are long,
/// but at least one.
fn page(queue: Vec<QueuedTurn>, start: usize, limit: u32) -> QueueReply {
    let rest = queue.len().saturating_sub(start);
    let mut bytes = 0;
    let fits = |turn: &QueuedTurn| {
        bytes += serde_json::to_string(turn).map_or(0, |text| text.len());
        bytes <= convert::PAGE_BYTES
    };
    let count = queue.iter().skip(start).take(limit as usize).map(fits).take_while(|fits| *fits).count();
    let queue: Vec<QueuedTurn> = queue.into_iter().skip(start).take(count.max(1)).collect();
    let next = queue.last().map(|turn| turn.turn_id.to_string()).filter(|_| queue.len() < rest);
    QueueReply { queue, next_cursor: next }
}
