//! `session.update`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{SessionReply, UpdateParams};
use crate::rpc::context::RpcContext;
use crate::session::Changes;
use crate::types::sampling::Sampling;

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: UpdateParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let origin = caller.origin();
    let changes = Changes {
        title: p.title,
        mode: p.mode,
        budgets: p.budgets,
        thinking: p.thinking,
        sampling: Sampling { temperature: p.temperature, top_p: p.top_p },
        model: p.model,
        tools: p.tools,
        additional_dirs: p.additional_dirs,
        keyed,
        origin,
    };
    let session = ctx.registry.update(p.session_id, changes).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
