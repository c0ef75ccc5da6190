//! The agents of a workspace: those of the trusted project, of the user, and the built-in ones.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::extension_files;
use crate::file_models::UnknownModels;
use crate::shared::Shared;
use project::extensions::Diagnostic;
use project::extensions::agents::{self, Agent, PROJECT_FOLDERS};
use store::StoreError;
use types::mcp::TOOL_SEARCH;

/// Maximum bytes of the list of agents in a system prompt.
const MAX_LIST_BYTES: usize = 16 * 1024;
/// Files that one notice names.
const MAX_REFUSED_SHOWN: usize = 3;

/// The usable agents of a workspace.
#[derive(Clone, Debug, Default)]
pub struct AgentList {
    /// One agent of each name, in the order of their priority: project, user, built-in.
    pub agents: Vec<Agent>,
    /// Files that cannot be used, or only in part.
    pub diagnostics: Vec<Diagnostic>,
    /// The files of agents that cannot be used at all, with the reasons.
    refused: Vec<String>,
}

impl AgentList {
    fn add(&mut self, more: Vec<Agent>) {
        for agent in more {
            match self.agents.iter().find(|other| other.slug == agent.slug) {
                None => self.agents.push(agent),
                // A file may replace a built-in agent on purpose, or a project's file may replace the user's.
                Some(other) if other.source != agent.source || other.prompt == agent.prompt => {}
                Some(other) => {
                    let by = other.path.as_deref().map(|path| path.display().to_string());
                    let message = format!("{} is defined by {}", agent.name, by.unwrap_or_default());
                    self.diagnostics.extend(agent.path.map(|path| Diagnostic { path, message }));
                }
            }
        }
    }

    /// A line for users about the files of agents that cannot be used. Such a file may hold restrictions that its
    /// author counts on.
    pub(super) fn refusal(&self) -> Option<String> {
        let first: Vec<&str> = self.refused.iter().take(MAX_REFUSED_SHOWN).map(String::as_str).collect();
        let more = self.refused.len() - first.len();
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!first.is_empty())
            .then(|| format!("agents that cannot be used: {}{more} · agentctl doctor", first.join("; ")))
    }

    /// The agent with this name or slug.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.is_named(name))
    }

    /// The section of the system prompt that lists the agents for `Task`.
    #[must_use]
    pub fn prompt_section(&self) -> String {
        let mut text = String::from(
            "# Agents\nThe tool Task starts a sub-agent of one of these types (`subagent_type`):",
        );
        for agent in &self.agents {
            let description = agent.description.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = format!("\n- {}: {description}", agent.slug);
            if text.len() + line.len() > MAX_LIST_BYTES {
                let _ =
                    write!(text, "\n- and others: agent names beyond {MAX_LIST_BYTES} bytes are left out");
                break;
            }
            text += &line;
        }
        text
    }
}

/// Reads the agents that a session in this folder has.
pub(super) async fn load(shared: &Arc<Shared>, cwd: &Path) -> Result<AgentList, StoreError> {
    let user = {
        let settings = &shared.components().settings;
        agents::user_folders(settings.user_dir.as_deref(), &settings.home)
    };
    let files = extension_files::load(shared, cwd, &PROJECT_FOLDERS, user, "agents").await?;
    let components = shared.components();
    let tools = components.tools.definitions();
    let mut tools: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    tools.push(TOOL_SEARCH.to_owned());
    let mut list = AgentList { diagnostics: files.diagnostics, ..AgentList::default() };
    for (source, files) in files.folders {
        let (agents, problems) = agents::parse(files, source, &tools);
        let is_used = |path: &Path| agents.iter().any(|agent| agent.path.as_deref() == Some(path));
        let refused = problems.iter().filter(|it| !is_used(&it.path));
        list.refused.extend(refused.map(|it| format!("{}: {}", it.path.display(), it.message)));
        list.diagnostics.extend(problems);
        list.add(agents);
    }
    let mut unknown = UnknownModels::default();
    for agent in &list.agents {
        unknown.check(&components, agent.model_name.as_deref(), agent.path.as_ref());
    }
    list.diagnostics.extend(unknown.diagnostic("[models] task or the model of the session"));
    list.add(agents::built_in_agents());
    Ok(list)
}
