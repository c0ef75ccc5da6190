//! `model.list`, `model.check`, `model.usage`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{
    ModelCheckParams, ModelCheckReply, ModelListParams, ModelListReply, ModelUsageParams, ModelUsageReply,
};
use api::{Code, Fault};
use session::LedgerQuery;
use types::ids::SessionId;

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: ModelListParams,
) -> Result<ModelListReply, Fault> {
    let limit = convert::limit(p.limit, 100, 500) as usize;
    let after = p.cursor.unwrap_or_default();
    let mut models = ctx.registry.models();
    models.retain(|view| view.model > after);
    let more = models.len() > limit;
    models.truncate(limit);
    let next_cursor = if more { models.last().map(|view| view.model.clone()) } else { None };
    Ok(ModelListReply { models, next_cursor })
}

pub(super) async fn check(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: ModelCheckParams,
) -> Result<ModelCheckReply, Fault> {
    let components = ctx.registry.shared().components();
    let known = components.models.providers();
    if let Some(name) = p.provider.as_ref().filter(|name| !known.contains(name)) {
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        let why = format!("provider: there is no provider {name:?}; configured: {known}");
        return Err(Fault::new(Code::InvalidParams, why).with("path", "provider"));
    }
    Ok(ModelCheckReply { providers: components.models.check(p.provider.as_deref()).await })
}

pub(super) async fn usage(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: ModelUsageParams,
) -> Result<ModelUsageReply, Fault> {
    let after = p.cursor.as_deref().map(cursor).transpose()?;
    let limit = convert::limit(p.limit, 100, 500);
    let query = LedgerQuery { session_id: p.session_id, since: p.since_ms, until: p.until_ms };
    let (rows, total, more) = ctx.registry.ledger(query, after, limit).await.map_err(convert::fault)?;
    let next_cursor =
        if more { rows.last().map(|row| format!("{} {}", row.session_id, row.model)) } else { None };
    Ok(ModelUsageReply { rows, total, next_cursor })
}

/// Parses the cursor, which names the last row of the previous page.
fn cursor(text: &str) -> Result<(SessionId, String), Fault> {
    let parts = text.split_once(' ').and_then(|(id, model)| Some((id.parse().ok()?, model.to_owned())));
    parts.ok_or_else(|| {
        Fault::new(Code::InvalidParams, "cursor: take it from next_cursor as it is").with("path", "cursor")
    })
}
