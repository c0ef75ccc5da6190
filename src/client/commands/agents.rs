//! `agentctl agents`: the agents that sessions in this folder can use.

use crate::connection::connector::Connector;
use crate::connection::paths;
use crate::failure::Failure;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{AgentColor, Tone};
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
                tone(agent),
                escape::line(if agent.slug.is_empty() { &agent.name } else { &agent.slug }).into_owned(),
            ),
            (Tone::Plain, escape::line(&description).into_owned()),
            (Tone::Dim, source.to_owned()),
            (Tone::Dim, escape::line(&tools(agent)).into_owned()),
        ]);
    }
    table.print(out)?;
    for diagnostic in &reply.diagnostics {
        out.note(&format!("{}: {}", escape::line(&diagnostic.path), escape::line(&diagnostic.message)))?;
    }
    Ok(())
}

/// The colour of an agent's name: that of its file, if it is known.
fn tone(agent: &AgentView) -> Tone {
    agent.color.as_deref().and_then(AgentColor::from_name).map_or(Tone::Tool, Tone::Agent)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::style::StyledLine;

    #[test]
    fn agent_name_is_shown_in_colour_of_its_file() {
        let agent = |color: Option<&str>| {
            let view = serde_json::json!({"name": "a", "description": "x", "tools": [], "source": "user", "color": color});
            serde_json::from_value::<AgentView>(view).expect("an agent")
        };
        let shown = |color| StyledLine::new(tone(&agent(color)), "a").ansi(true);
        assert_eq!(shown(Some("red")), "\x1b[31ma\x1b[0m");
        assert_eq!(shown(Some(" Purple ")), "\x1b[35ma\x1b[0m");
        assert_eq!(shown(Some("orange")), "\x1b[38;5;208ma\x1b[0m");
        // Colours that are not known, and agents without one, look like tools.
        for other in [None, Some("#12ab34"), Some("\x1b[5m")] {
            assert_eq!(shown(other), "\x1b[34ma\x1b[0m", "{other:?}");
        }
        assert_eq!(StyledLine::new(tone(&agent(Some("red"))), "a").ansi(false), "a");
    }
}
