//! `session.update`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{SessionReply, UpdateParams};
use api::{Fault, methods};
use session::SettingsUpdate;

pub(super) async fn update(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: UpdateParams,
) -> Result<SessionReply, Fault> {
    let keyed = convert::ordered_idempotency_key::<methods::session::Update>(p.idempotency_key.take(), &p);
    let changes = SettingsUpdate {
        options: p.options(),
        title: p.title,
        environment: p.env,
        mcp_servers: p.mcp_servers,
        keyed,
        origin: caller.origin(),
    };
    let session = ctx.registry.update(p.session_id, changes).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
