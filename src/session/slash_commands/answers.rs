//! The answers to commands that only show data.

use std::fmt::Write as _;

use crate::agents::AgentList;
use crate::requests::SessionFacts;
use crate::slash_commands::custom::CommandFiles;
use types::context_view::ContextView;
use types::mcp::{McpServerView, McpState};
use types::model::ModelView;
use types::session::SessionView;
use types::subagent::AgentSource;
use types::todo;

/// All commands with their arguments.
pub(super) fn help(files: &CommandFiles) -> String {
    let list = files.describe_commands();
    let width = list.iter().map(|(usage, ..)| usage.chars().count()).max().unwrap_or(0);
    let mut text = String::from("Commands:\n");
    for (usage, description, origin) in list {
        let _ = write!(text, "  {usage:width$}  {description}");
        text += &origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
        text.push('\n');
    }
    text + "  # NOTE  Add a note to the project instructions; # memory: NOTE keeps it in the project's memory\n\
            Own commands are Markdown files in .agentd/commands or .claude/commands of a trusted project, and in \
            ~/.config/agentd/commands."
}

/// The agents, with the files that cannot be used.
pub(super) fn agents(list: &AgentList) -> String {
    let mut text = String::from("Agents for the tool Task and `agentctl run --agent`:");
    for agent in &list.agents {
        let source = match agent.source {
            AgentSource::BuiltIn => "built-in",
            AgentSource::User => "user",
            AgentSource::Project => "project",
        };
        let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut tools = agent.tools.as_ref().map_or_else(|| "all".into(), |tools| tools.join(", "));
        if !agent.denied_tools.is_empty() {
            let _ = write!(tools, " without {}", agent.denied_tools.join(", "));
        }
        let _ = write!(text, "\n  {} ({source}): {description} Tools: {tools}", agent.slug);
    }
    for found in &list.diagnostics {
        let _ = write!(text, "\nNote: {}: {}", found.path.display(), found.message);
    }
    text
}

pub(super) fn status(view: &SessionView, facts: &SessionFacts) -> String {
    let mut text = format!(
        "Session {}: {}\nState: {}\nModel: {}\nMode: {}\nFolder: {}",
        view.session_id,
        if view.summary.title.is_empty() { "(no title)" } else { &view.summary.title },
        view.summary.state.name(),
        if facts.spec.model.is_empty() { "(none)" } else { &facts.spec.model },
        facts.mode.name(),
        facts.spec.cwd,
    );
    for folder in &facts.spec.additional_dirs {
        let _ = write!(text, "\nAdditional folder: {folder}");
    }
    if let Some(turn_id) = view.summary.turn_id {
        let _ = write!(text, "\nTurn: {turn_id}");
    }
    let _ = write!(text, "\nClients: {}\nTokens: {}\nCost: {}", view.clients, tokens(view), money(view));
    text
}

pub(super) fn todos(view: &SessionView) -> String {
    match view.details.as_ref().map(|details| details.todos.as_slice()) {
        None | Some([]) => "The todo list is empty.".into(),
        Some(todos) => todo::list(todos),
    }
}

/// The MCP servers of the session's folder.
pub(super) fn mcp(servers: &[McpServerView]) -> String {
    if servers.is_empty() {
        return "No MCP servers. `agentctl mcp add` adds one; a project's .mcp.json is used once it is trusted.".into();
    }
    let mut text = String::from("MCP servers:");
    for server in servers {
        let _ = write!(text, "\n{} ({}): {}", server.name, server.source, server.state.name());
        if server.state == McpState::Ready {
            let _ = write!(text, ", {} tools", server.tools.len());
        }
        if let Some(error) = &server.error {
            let _ = write!(text, " - {error}");
        }
        for note in &server.notes {
            let _ = write!(text, "\n  Note: {note}");
        }
        for tool in &server.tools {
            let _ = write!(text, "\n  {tool}");
        }
    }
    text
}

pub(super) fn cost(view: &SessionView) -> String {
    let mut text = format!("This session: {} tokens, {}", tokens(view), money(view));
    for (model, spent) in &view.models {
        let usage = &spent.usage;
        let cost = dollars(spent.cost_usd_micros, spent.cost_at_least_usd_micros);
        let _ = write!(
            text,
            "\n{model}: {} calls, {} input, {} output, {} cache read, {} cache write, {cost}",
            spent.calls,
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
        );
    }
    text
}

pub(super) fn context(facts: &SessionFacts, view: &ContextView) -> String {
    let window = match view.window {
        Some(window) => format!("{} of {window} tokens", view.used),
        None => format!("{} tokens; the window is unknown", view.used),
    };
    let about = if view.estimated { ", estimated" } else { "" };
    let mut text = format!("Context of {}: {window}{about}.", facts.model);
    for part in &view.parts {
        let name = serde_json::to_value(part.name).unwrap_or_default();
        let _ = write!(text, "\n{}: {}", name.as_str().unwrap_or_default(), part.tokens);
    }
    let _ = write!(
        text,
        "\nReserved for the answer: {}. Summaries so far: {}.",
        view.reserved_output, view.compactions
    );
    text
}

pub(super) fn model(facts: &SessionFacts, models: &[ModelView]) -> String {
    let mut text = match facts.spec.model.as_str() {
        "" => "No model is set.".to_owned(),
        model => format!("The model is {model}."),
    };
    let named = models.iter().filter(|model| !model.pointers.is_empty());
    for view in named {
        let _ = write!(text, "\n{}: {}", view.pointers.join(", "), view.model);
    }
    text + "\nChange it with /model PROVIDER/MODEL or the name of a pointer."
}

fn tokens(view: &SessionView) -> u64 {
    view.summary.usage.all_tokens()
}

fn money(view: &SessionView) -> String {
    dollars(view.summary.cost_usd_micros, view.summary.cost_at_least_usd_micros)
}

fn dollars(cost: Option<u64>, at_least: u64) -> String {
    let dollars = |micros: u64| format!("${}.{:04}", micros / 1_000_000, micros % 1_000_000 / 100);
    match cost {
        Some(cost) => dollars(cost),
        None => format!("at least {} (a price is unknown)", dollars(at_least)),
    }
}
