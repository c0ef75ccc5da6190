//! `session.export`, `session.import`

use std::sync::Arc;

use super::convert;
use super::items::item;
use super::params::Caller;
use crate::context::RpcContext;
use crate::redact_thinking::redact;
use api::Fault;
use api::params::{ExportParams, ExportReply, ImportParams, ImportReply};
use session::StoredItem;
use types::session::ItemKind;

pub(super) async fn export(ctx: Arc<RpcContext>, _: Caller, p: ExportParams) -> Result<ExportReply, Fault> {
    let include = p.include;
    let shown = move |body: String| redact(body.into(), include).map(|body| body.to_string());
    let read = move |stored: &StoredItem| {
        // The exported answer already contains its reasoning, if the filter allows that.
        if stored.kind == ItemKind::Reasoning.name() {
            return None;
        }
        let last = redact(stored.last.as_str().into(), include)?.to_string();
        item(&StoredItem { last, ..stored.clone() })
    };
    let exported = ctx.registry.export(p.session_id, p.format, p.cursor.as_deref(), &shown, &read).await;
    let (data, next_cursor) = exported.map_err(convert::fault)?;
    Ok(ExportReply { data, next_cursor })
}

pub(super) async fn import(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: ImportParams,
) -> Result<ImportReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p).filter(|_| p.last);
    let imported = ctx.registry.import_part(p.import_id, p.data, p.last, keyed, caller.origin()).await;
    Ok(match imported.map_err(convert::fault)? {
        Ok(session) => ImportReply { import_id: None, session: Some(session) },
        Err(import_id) => ImportReply { import_id: Some(import_id), session: None },
    })
}
