//! Agents from Markdown files: the front matter names the agent and its tools, the body is its prompt.

use std::path::{Path, PathBuf};

use super::agent_keys::{self, READ_ONLY_TOOLS};
use super::agent_model_options::AgentModelOptions;
use super::agent_tools::AgentTools;
use super::front_matter;
use super::{Diagnostic, ExtensionSource, MarkdownFile, merged_notes};
use types::permission::Mode;
use types::slug::slug;
use types::subagent::{AgentRestrictions, AgentSource};
use types::tool::ToolChoice;

/// The folders of a project with agents, the most specific first.
pub const PROJECT_FOLDERS: [&str; 3] = [".agentd/agents", ".claude/agents", ".kode/agents"];
/// The agent for work that no other agent fits.
pub const GENERAL_PURPOSE: &str = "general-purpose";

/// Maximum characters of a description in the prompt.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Maximum characters of a name.
const MAX_NAME_CHARS: usize = 100;
/// Maximum bytes of an agent's prompt.
const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// An agent that a session can work as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name, as its file has it.
    pub name: String,
    /// The name to type: the `subagent_type` of `Task`.
    pub slug: String,
    /// The model reads this to decide when to use the agent.
    pub description: String,
    /// Its tools, such as `Read` or `Bash(git:*)`; `None` for all.
    pub tools: Option<Vec<String>>,
    /// Names of tools that it does not have.
    pub denied_tools: Vec<String>,
    /// What its file forbids.
    pub restrictions: AgentRestrictions,
    /// The mode that it has at most.
    pub mode: Option<Mode>,
    /// How many model calls a task may take.
    pub max_turns: Option<u64>,
    /// A model, a pointer of `[models]`, one of its aliases, or `inherit`; `None` for the pointer `task`.
    pub model_name: Option<String>,
    /// How its model answers.
    pub model_options: AgentModelOptions,
    /// The colour in which clients show it.
    pub color: Option<String>,
    /// Its instructions.
    pub prompt: String,
    /// The owner of its file.
    pub source: AgentSource,
    /// Its file; `None` for a built-in agent.
    pub path: Option<PathBuf>,
}

impl Agent {
    /// Whether the agent has no tool that changes anything.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        let is_harmless = |tool: &String| READ_ONLY_TOOLS.contains(&tool.as_str());
        self.tools.as_ref().is_some_and(|tools| tools.iter().all(is_harmless))
    }

    /// The names of its tools; absent for all.
    #[must_use]
    pub fn tool_choice(&self) -> ToolChoice {
        // The search for tools of servers is in the list only if the agent has such tools.
        let lists = self.restrictions.tools.iter().filter_map(|choice| choice.allow.as_ref());
        let allow = lists.cloned().reduce(|all, more| {
            let more = ToolChoice { allow: Some(more), deny: Vec::new() };
            all.into_iter().filter(|name| more.offers(name)).collect()
        });
        ToolChoice { allow, deny: self.denied_tools.clone() }
    }

    /// Whether a text is its name, or a name with the same slug.
    #[must_use]
    pub fn is_named(&self, text: &str) -> bool {
        self.name == text || self.slug == slug(text)
    }
}

/// The user's folders with agents, the most specific first.
#[must_use]
pub fn user_folders(config_dir: Option<&Path>, home: &Path) -> Vec<PathBuf> {
    let own = config_dir.map(|dir| dir.join("agents"));
    own.into_iter().chain([home.join(".claude/agents"), home.join(".kode/agents")]).collect()
}

/// The agents that are always there.
#[must_use]
pub fn built_in_agents() -> Vec<Agent> {
    let agent = |name: &str, description: &str, tools: Option<&[&str]>, prompt: &str| {
        let tools: Option<Vec<String>> =
            tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let choice = tools.clone().map(|tools| ToolChoice { allow: Some(tools), deny: Vec::new() });
        Agent {
            name: name.into(),
            slug: name.into(),
            description: description.into(),
            tools,
            denied_tools: Vec::new(),
            restrictions: AgentRestrictions {
                tools: choice.into_iter().collect(),
                ..AgentRestrictions::default()
            },
            mode: None,
            max_turns: None,
            model_name: None,
            model_options: AgentModelOptions::default(),
            color: None,
            prompt: prompt.into(),
            source: AgentSource::BuiltIn,
            path: None,
        }
    };
    vec![
        agent(
            GENERAL_PURPOSE,
            "Research and work with several steps that need many tool calls. It has all tools.",
            None,
            "You work on one task for another agent. Complete it without questions. Your last message is the only \
             text that the other agent gets: state what you did and what you found, with paths and lines.",
        ),
        agent(
            "explore",
            "Finds files and answers questions about the code. It only reads.",
            Some(&["Read", "Glob", "Grep", "LS"]),
            "You search and read code for another agent. Change nothing. Your last message is the only text that the \
             other agent gets: answer the question, with paths and lines.",
        ),
    ]
}

/// The agents of these files. `tools` are the names of the daemon's tools.
#[must_use]
pub fn parse(
    files: Vec<MarkdownFile>,
    source: ExtensionSource,
    tools: &[String],
) -> (Vec<Agent>, Vec<Diagnostic>) {
    let (mut agents, mut diagnostics, mut all_notes) = (Vec::new(), Vec::new(), Vec::new());
    // Tools of other programs are named in many files, and nothing can be done about them.
    let (mut of_others, mut in_files): (Vec<String>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for file in files {
        let path = file.path.clone();
        match agent(file, source, tools) {
            Ok((agent, found)) => {
                let notes = found.notes.into_iter();
                all_notes.extend(notes.map(|message| Diagnostic { path: path.clone(), message }));
                if !found.of_others.is_empty() {
                    in_files.push(path);
                }
                for tool in found.of_others {
                    if !of_others.contains(&tool) {
                        of_others.push(tool);
                    }
                }
                agents.push(agent);
            }
            Err(message) => diagnostics.push(Diagnostic { path, message }),
        }
    }
    diagnostics.extend(merged_notes(all_notes));
    if let Some(path) = in_files.first() {
        let message = match in_files.len() - 1 {
            0 => format!("tools that do not exist here are left out: {}", of_others.join(", ")),
            more => format!(
                "tools that do not exist here are left out, also in {more} more files: {}",
                of_others.join(", ")
            ),
        };
        diagnostics.push(Diagnostic { path: path.clone(), message });
    }
    (agents, diagnostics)
}

/// The agent of a file, with what its file says about tools.
fn agent(
    file: MarkdownFile,
    source: ExtensionSource,
    tools: &[String],
) -> Result<(Agent, AgentTools), String> {
    let (front, body) = front_matter::read(&file.text, agent_keys::restricts)?;
    let of_file = file.name.last().cloned().unwrap_or_default();
    let shown = |name: String| {
        let words = name.split(|c: char| c.is_whitespace() || c.is_control());
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let name = shown(front.text("name").unwrap_or_else(|| of_file.clone()));
    // A name without letters and digits gets those of the file, so that rules can name the agent.
    let name = if slug(&name).is_empty() { format!("{name} ({of_file})") } else { name };
    let slug = slug(&name);
    if slug.is_empty() {
        return Err(format!("{name:?} is not an agent name: it has neither letters nor digits"));
    }
    if name.chars().count() > MAX_NAME_CHARS || name.starts_with('$') {
        return Err(format!(
            "{name:?} is not an agent name: use at most {MAX_NAME_CHARS} characters, and no $ at the beginning"
        ));
    }
    let Some(description) = front.text("description") else {
        return Err("the front matter has no description, by which the model chooses the agent".into());
    };
    if body.len() > MAX_PROMPT_BYTES {
        return Err(format!("the prompt has {} bytes; at most {MAX_PROMPT_BYTES} are possible", body.len()));
    }
    let mut found = AgentTools::read(&front, tools)?;
    let (model_options, notes) = AgentModelOptions::read(&front);
    found.notes.extend(notes);
    let agent = Agent {
        name,
        slug,
        description: description.replace("\\n", "\n").chars().take(MAX_DESCRIPTION_CHARS).collect(),
        tools: found.tools.clone(),
        denied_tools: found.denied.clone(),
        restrictions: found.restrictions.clone(),
        mode: found.mode,
        max_turns: found.max_turns,
        model_name: front.text("modelname").or_else(|| front.text("model")),
        model_options,
        color: front.text("color"),
        prompt: body.trim().to_owned(),
        source: match source {
            ExtensionSource::User => AgentSource::User,
            ExtensionSource::Project => AgentSource::Project,
        },
        path: Some(file.path),
    };
    Ok((agent, found))
}

#[cfg(test)]
mod tests;
