//! `agentctl agents`: the agents that sessions in this folder can use.

use crate::api::params::{AgentListParams, AgentListReply};
use crate::client::connection::connector::Connector;
use crate::client::connection::paths;
use crate::client::failure::Failure;
use crate::client::terminal::escape;
use crate::client::terminal::out::Out;
use crate::client::terminal::style::{Line, Tone, pad, width};
use crate::types::subagent::AgentSource;

pub(in crate::client) async fn agents(reach: &Connector, json: bool, out: &mut Out) -> Result<(), Failure> {
    let client = reach.observing().connect_or_start().await?;
    let cwd = paths::current_folder()?.to_string_lossy().into_owned();
    let reply: AgentListReply = client.call("agent.list", &AgentListParams { cwd }).await?;
    if json {
        return Ok(out.json(&reply)?);
    }
    let wide = reply.agents.iter().map(|agent| width(&agent.name)).max().unwrap_or(0);
    for agent in &reply.agents {
        let source = match agent.source {
            AgentSource::BuiltIn => "",
            AgentSource::User => " (user)",
            AgentSource::Project => " (project)",
        };
        let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = Line::new(Tone::Tool, pad(&escape::line(&agent.name), wide))
            .and(Tone::Plain, format!("  {}", escape::line(&description)))
            .and(Tone::Dim, format!("  tools: {}{source}", escape::line(&agent.tools.join(", "))));
        out.line(&line)?;
    }
    for found in &reply.diagnostics {
        out.note(&format!("{}: {}", escape::line(&found.path), escape::line(&found.message)))?;
    }
    Ok(())
}
