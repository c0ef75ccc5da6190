//! `agentctl commands`: the slash commands of a folder or a session.

use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{CommandListParams, CommandListReply};
use types::slash_command::{CommandSource, CommandView};

pub(crate) async fn commands(
    reach: &Connector,
    session: Option<&str>,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let params = match session {
        Some(name) => {
            let session_id = resolve_id::session(&client, name).await?.session_id;
            CommandListParams { session_id: Some(session_id), cwd: None }
        }
        None => {
            let cwd = paths::current_folder()?.to_string_lossy().into_owned();
            CommandListParams { session_id: None, cwd: Some(cwd) }
        }
    };
    let reply: CommandListReply = client.call::<methods::command::List>(&params).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let mut table = Table::new([
        column("COMMAND").between(10, 60),
        column("DESCRIPTION").between(20, 120),
        column("SOURCE").between(6, 10).rank(1),
    ]);
    for command in &reply.commands {
        let source = match command.source {
            CommandSource::BuiltIn => "built in",
            CommandSource::User => "user",
            CommandSource::Project => "project",
            CommandSource::Mcp => "mcp",
            CommandSource::Skill => "skill",
        };
        table.push([
            (Tone::Tool, usage(command)),
            (Tone::Plain, escape::line(&command.description).into_owned()),
            (Tone::Dim, source.to_owned()),
        ]);
    }
    table.print(out)?;
    for diagnostic in &reply.diagnostics {
        out.note(&format!("{}: {}", escape::line(&diagnostic.path), escape::line(&diagnostic.message)))?;
    }
    Ok(())
}

fn usage(command: &CommandView) -> String {
    let hint = command.argument_hint.as_deref().map(|hint| format!(" {hint}")).unwrap_or_default();
    escape::line(&format!("/{}{hint}", command.name)).into_owned()
}
