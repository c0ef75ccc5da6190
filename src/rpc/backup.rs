//! `daemon.backup`, `daemon.check`.

use std::path::Path;
use std::sync::Arc;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use api::params::{BackupParams, BackupReply, CheckReply, NoParams};
use api::{Code, Fault};

pub(super) async fn backup(
    ctx: Arc<RpcContext>,
    _: Caller,
    mut p: BackupParams,
) -> Result<BackupReply, Fault> {
    let keyed = convert::idempotency_key(p.idempotency_key.take(), &p);
    ctx.registry.once("daemon.backup", None, keyed, convert::fault, copy_to(&ctx, p)).await
}

async fn copy_to(ctx: &RpcContext, p: BackupParams) -> Result<BackupReply, Fault> {
    let path = Path::new(&p.path);
    let invalid_param =
        |why: String| Fault::new(Code::InvalidParams, format!("path: {why}")).with("path", "path");
    let Some(folder) = path.parent().filter(|_| path.is_absolute() && path.file_name().is_some()) else {
        return Err(invalid_param(format!("expected the absolute path of a new file, got {:?}", p.path)));
    };
    let real = |path: &Path| tokio::fs::canonicalize(path.to_owned());
    let folder =
        real(folder).await.map_err(|error| invalid_param(format!("{}: {error}", folder.display())))?;
    if real(Path::new(&ctx.info.data_dir)).await.is_ok_and(|data| data == folder) {
        return Err(invalid_param(
            "a copy in the folder of the database is lost with it: choose another folder".into(),
        ));
    }
    let bytes =
        ctx.registry.shared().store.backup(path).await.map_err(|error| convert::fault(error.into()))?;
    tracing::info!(path = p.path, bytes, "wrote a backup");
    Ok(BackupReply { path: p.path, bytes })
}

pub(super) async fn check(ctx: Arc<RpcContext>, _: Caller, _: NoParams) -> Result<CheckReply, Fault> {
    let problems =
        ctx.registry.shared().store.problems().await.map_err(|error| convert::fault(error.into()))?;
    Ok(CheckReply { problems })
}
