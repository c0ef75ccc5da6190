//! `agentctl agents`: the agents that sessions in this folder can use.

use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::Tone;
use crate::terminal::table::{Table, column};
use api::methods;
use api::params::{AgentListParams, AgentListReply, AgentView};
use types::subagent::AgentSource;

pub(crate) async fn agents(reach: &Connector, json: bool, out: &mut OutputStreams) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let cwd = paths::current_folder()?.to_string_lossy().into_owned();
    let reply: AgentListReply = client.call::<methods::agent::List>(&AgentListParams { cwd }).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let mut table = Table::new([
        column("NAME").between(8, 32),
        column("DESCRIPTION").between(20, 100),
        column("SOURCE").between(6, 10).rank(1),
        column("TOOLS").between(10, 60).rank(2),
    ]);
    for agent in &reply.agents {
        let source = match agent.source {
            AgentSource::BuiltIn => "built in",
            AgentSource::User => "user",
            AgentSource::Project => "project",
        };
        let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        table.push([
            (
                Tone::Tool,
                escape::line(if agent.slug.is_empty() { &agent.name } else { &agent.slug }).into_owned(),
            ),
            (Tone::Plain, escape::line(&description).into_owned()),
            (Tone::Dim, source.to_owned()),
            (Tone::Dim, escape::line(&tools(agent)).into_owned()),
        ]);
    }
    table.print(out)?;
    for found in &reply.diagnostics {
        out.note(&format!("{}: {}", escape::line(&found.path), escape::line(&found.message)))?;
    }
    Ok(())
}

/// The tools of an agent, with what they are restricted to.
fn tools(agent: &AgentView) -> String {
    let mut text = agent.tools.join(", ");
    if !agent.denied_tools.is_empty() {
        text += &format!(" without {}", agent.denied_tools.join(", "));
    }
    if let Some(mode) = agent.mode {
        text += &format!("; mode {}", mode.name());
    }
    if let Some(turns) = agent.max_turns {
        text += &format!("; {turns} turns");
    }
    text
}
