//! `session.diff`: the file changes of a session, by file.

use std::path::Path;
use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{DiffParams, DiffReply};
use session::{SessionError, changes_of};

pub(super) async fn diff(ctx: Arc<RpcContext>, _: Caller, p: DiffParams) -> Result<DiffReply, Fault> {
    let skip = convert::cursor(p.cursor.as_deref())?.unwrap_or(0);
    let limit = convert::limit(p.limit, 100, 500) as usize;
    let store = &ctx.registry.shared().store;
    let failed = |error| convert::fault(SessionError::Store(error));
    let view = ctx.registry.view(p.session_id).await.map_err(convert::fault)?;
    let key = store.find(p.session_id).await.map_err(failed)?;
    let key = key.ok_or_else(|| convert::fault(SessionError::NotFound))?;
    let all = changes_of(store, key, Path::new(&view.cwd)).await.map_err(failed)?;
    let (mut files, mut bytes) = (Vec::new(), 0);
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let count = all.len();
    for file in all.into_iter().skip(skip).take(limit) {
        bytes += file.diff.len();
        if bytes > convert::PAGE_BYTES && !files.is_empty() {
            break;
        }
        files.push(file);
    }
    let done = skip.saturating_add(files.len());
    Ok(DiffReply { files, next_cursor: (done < count).then(|| done.to_string()) })
}
