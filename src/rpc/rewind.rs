//! `session.rewind`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{RewindParams, RewindReply};
use session::RewindRequest;
use types::history::RewoundFile;

pub(super) async fn rewind(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: RewindParams,
) -> Result<RewindReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let (item_id, files, dry_run) = (p.item_id, p.files, p.dry_run);
    let request = RewindRequest { item_id, files, dry_run, keyed, origin: caller.origin() };
    let session = ctx.registry.open(p.session_id).await.map_err(convert::fault)?;
    let outcome = session.rewind(request).await.map_err(convert::fault)?;
    // Omit the hashes, which are only for the journal.
    let files = outcome.files.into_iter().map(|file| RewoundFile { sha256: None, ..file }).collect();
    Ok(RewindReply { removed_items: outcome.removed_items, files, conflicts: outcome.conflicts })
}
