//! `session.update`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{SessionReply, UpdateParams};
use crate::rpc::context::RpcContext;
use crate::session::Changes;
use crate::types::sampling::Sampling;
use crate::types::turn_options::TurnOptions;

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: UpdateParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let changes = Changes {
        title: p.title,
        options: TurnOptions {
            budgets: p.budgets,
            mode: p.mode,
            model: p.model,
            thinking: p.thinking,
            tools: p.tools,
            sampling: Sampling { temperature: p.temperature, top_p: p.top_p },
            command: None,
            output_schema: None,
        },
        additional_dirs: p.additional_dirs,
        keyed,
        origin: caller.origin(),
    };
    let session = ctx.registry.update(p.session_id, changes).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
