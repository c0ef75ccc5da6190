//! `command.list`

use std::sync::Arc;

use super::params::Caller;
use crate::context::RpcContext;
use crate::convert::{self, invalid_param};
use api::Fault;
use api::params::{CommandListParams, CommandListReply, CommandSource, CommandView, FileDiagnostic};
use session::{CommandSource as Source, Diagnostic, ListedCommand, McpOwner};

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
    let commands = found.commands.into_iter().map(command).collect();
    Ok(CommandListReply { commands, diagnostics: found.diagnostics.into_iter().map(diagnostic).collect() })
}

fn command(listed: ListedCommand) -> CommandView {
    CommandView {
        name: listed.name,
        description: listed.description,
        argument_hint: listed.argument_hint,
        source: match listed.source {
            Source::BuiltIn => CommandSource::BuiltIn,
            Source::User => CommandSource::User,
            Source::Project => CommandSource::Project,
            Source::Mcp => CommandSource::Mcp,
            Source::Skill => CommandSource::Skill,
        },
        path: listed.path.map(|path| path.display().to_string()),
    }
}

pub(super) fn diagnostic(found: Diagnostic) -> FileDiagnostic {
    FileDiagnostic { path: found.path.display().to_string(), message: found.message }
}
