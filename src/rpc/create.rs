//! `session.create`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::api::Fault;
use crate::api::params::{CreateParams, SessionReply};
use crate::rpc::context::RpcContext;
use crate::session::NewSessionRequest;
use crate::types::sampling::Sampling;

pub(super) async fn create(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: CreateParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::keyed(p.idempotency_key.take(), &p);
    let request = NewSessionRequest {
        session_id: p.session_id,
        cwd: p.cwd,
        title: p.title,
        model: p.model,
        mode: p.mode,
        background: p.background,
        safe_mode: p.safe_mode,
        on_restart: p.on_restart,
        budgets: p.budgets,
        thinking: p.thinking,
        sampling: Sampling { temperature: p.temperature, top_p: p.top_p },
        system_prompt: p.system_prompt,
        append_system_prompt: p.append_system_prompt,
        tools: p.tools.unwrap_or_default(),
        additional_dirs: p.additional_dirs,
        keyed,
        origin: Some(caller.origin()),
    };
    let session = ctx.registry.create(request).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
