//! `command.list`

use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use crate::convert::{self, invalid_param};
use api::Fault;
use api::params::{CommandListParams, CommandListReply, FileDiagnostic};
use session::{Diagnostic, McpOwner};

pub(super) async fn list(
    ctx: Arc<RpcContext>,
    _: Caller,
    p: CommandListParams,
) -> Result<CommandListReply, Fault> {
    if p.session_id.is_some() == p.cwd.is_some() {
        return Err(invalid_param("session_id", "name a session_id or a cwd, and not both"));
    }
    let place = McpOwner { cwd: p.cwd, session_id: p.session_id };
    let found = ctx.registry.commands(&place).await.map_err(convert::fault)?;
    Ok(CommandListReply {
        commands: found.commands,
        diagnostics: found.diagnostics.into_iter().map(diagnostic).collect(),
    })
}

pub(super) fn diagnostic(found: Diagnostic) -> FileDiagnostic {
    FileDiagnostic { path: found.path.display().to_string(), message: found.message }
}
