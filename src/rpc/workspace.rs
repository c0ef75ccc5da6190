//! `workspace.status`, `workspace.trust`, `workspace.untrust`

use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{RestrictionsParams, TrustParams, UntrustParams, WorkspaceParams};
use session::changed_files;
use types::restriction::Restrictions;
use types::trust::TrustStatus;

pub(super) async fn status(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: WorkspaceParams,
) -> Result<TrustStatus, Fault> {
    let found = ctx.registry.workspace(&p.cwd).await.map_err(convert::fault)?;
    let changed_files = match p.count_changes && found.trusted {
        true => changed_files(std::path::Path::new(&found.cwd)).await,
        false => None,
    };
    Ok(TrustStatus { changed_files, ..found })
}

pub(super) async fn restrictions(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: RestrictionsParams,
) -> Result<Restrictions, Fault> {
    ctx.registry.restrictions(&p.cwd).await.map_err(convert::fault)
}

pub(super) async fn trust(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: TrustParams,
) -> Result<TrustStatus, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let trust = async {
        let trusted = ctx.registry.trust(&p.cwd, p.digest.as_deref(), caller.origin()).await;
        trusted.map_err(convert::fault)
    };
    ctx.registry.once("workspace.trust", None, keyed, convert::fault, trust).await
}

pub(super) async fn untrust(
    ctx: Arc<RpcContext>,
    caller: Caller,
    mut p: UntrustParams,
) -> Result<TrustStatus, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    let untrust = async { ctx.registry.untrust(&p.cwd, caller.origin()).await.map_err(convert::fault) };
    ctx.registry.once("workspace.untrust", None, keyed, convert::fault, untrust).await
}
