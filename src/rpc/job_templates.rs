//! `job.templates`

use std::sync::Arc;

use super::job::fault;
use super::params::Caller;
use crate::context::RpcContext;
use api::Fault;
use api::params::{JobTemplatesParams, JobTemplatesReply};
use jobs::template::Templates;

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: JobTemplatesParams,
) -> Result<JobTemplatesReply, Fault> {
    let found = Templates::load(&ctx.registry, p.cwd.as_deref()).await.map_err(fault)?;
    let (templates, diagnostics) = found.list();
    Ok(JobTemplatesReply { templates, diagnostics })
}
