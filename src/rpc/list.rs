//! `session.list`, `session.get`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{ListParams, ListReply, SessionParams, SessionReply};
use session::SessionQuery;

pub(super) async fn list(ctx: Arc<RpcContext>, _: Caller, p: ListParams) -> Result<ListReply, Fault> {
    let before = convert::cursor(p.cursor.as_deref())?;
    let limit = convert::limit(p.limit, 100, 500);
    let states = p.states.unwrap_or_default();
    let wanted = SessionQuery {
        states: &states,
        cwd: p.cwd.as_deref(),
        search: p.search.as_deref(),
        include_children: p.include_children,
        parent: None,
    };
    let (sessions, next) = ctx.registry.views(before, limit, wanted).await.map_err(convert::fault)?;
    Ok(ListReply { sessions, next_cursor: next.map(|position| position.to_string()) })
}

pub(super) async fn get(ctx: Arc<RpcContext>, _: Caller, p: SessionParams) -> Result<SessionReply, Fault> {
    let session = ctx.registry.view_with_models(p.session_id).await.map_err(convert::fault)?;
    Ok(SessionReply { session })
}
