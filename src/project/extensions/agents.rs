//! Agents from Markdown files: the front matter names the agent and its tools, the body is its prompt.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use super::front_matter;
use super::{Diagnostic, ExtensionSource, MarkdownFile};
use types::subagent::AgentSource;

/// The folders of a project with agents, the most specific first.
pub const PROJECT_FOLDERS: [&str; 3] = [".agentd/agents", ".claude/agents", ".kode/agents"];
/// The agent for work that no other agent fits.
pub const GENERAL_PURPOSE: &str = "general-purpose";

/// Tools that change nothing. An agent with no other tool is read-only.
const READ_ONLY_TOOLS: [&str; 10] = [
    "Read",
    "Glob",
    "Grep",
    "LS",
    "BashOutput",
    "TodoRead",
    "TodoWrite",
    "Skill",
    "KnowledgeSearch",
    "ToolSearch",
];
/// Maximum characters of a description in the prompt.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// Maximum bytes of an agent's prompt.
const MAX_PROMPT_BYTES: usize = 64 * 1024;

/// An agent that a session can work as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name, the `subagent_type` of `Task`.
    pub name: String,
    /// The model reads this to decide when to use the agent.
    pub description: String,
    /// Names of its tools; `None` for all.
    pub tools: Option<Vec<String>>,
    /// A model or a pointer of `[models]`; `None` for the pointer `task`.
    pub model_name: Option<String>,
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
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FrontMatter {
    name: Option<String>,
    description: Option<String>,
    #[serde(deserialize_with = "deserialize_tools")]
    tools: Option<Vec<String>>,
    model_name: Option<String>,
    model: Option<String>,
    color: Option<String>,
}

/// The list of tools. A missing value and `*` are all tools, an empty list is none.
fn deserialize_tools<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let list = front_matter::optional_list(deserializer)?;
    Ok(list.filter(|list| !list.iter().any(|tool| tool == "*")))
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
    let agent = |name: &str, description: &str, tools: Option<&[&str]>, prompt: &str| Agent {
        name: name.into(),
        description: description.into(),
        tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
        model_name: None,
        color: None,
        prompt: prompt.into(),
        source: AgentSource::BuiltIn,
        path: None,
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

/// The agents of these files.
#[must_use]
pub fn parse(files: Vec<MarkdownFile>, source: ExtensionSource) -> (Vec<Agent>, Vec<Diagnostic>) {
    let (mut agents, mut diagnostics) = (Vec::new(), Vec::new());
    for file in files {
        match agent(&file, source) {
            Ok((agent, problem)) => {
                let path = file.path;
                diagnostics.extend(problem.map(|message| Diagnostic { path, message }));
                agents.push(agent);
            }
            Err(message) => diagnostics.push(Diagnostic { path: file.path, message }),
        }
    }
    (agents, diagnostics)
}

/// The agent of a file, and the error in an ignored part.
fn agent(file: &MarkdownFile, source: ExtensionSource) -> Result<(Agent, Option<String>), String> {
    let (front, body) = front_matter::read::<FrontMatter>(&file.text)?;
    let non_empty = |text: Option<String>| text.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let name = non_empty(front.name).or_else(|| file.name.last().cloned()).unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !is_name || name.len() > 64 {
        return Err(format!("{name:?} is not an agent name: use letters, digits, - and _, at most 64"));
    }
    let Some(description) = non_empty(front.description) else {
        return Err("the front matter has no description, by which the model chooses the agent".into());
    };
    if body.len() > MAX_PROMPT_BYTES {
        return Err(format!("the prompt has {} bytes; at most {MAX_PROMPT_BYTES} are possible", body.len()));
    }
    let agent = Agent {
        name,
        description: description.replace("\\n", "\n").chars().take(MAX_DESCRIPTION_CHARS).collect(),
        tools: front.tools,
        model_name: non_empty(front.model_name),
        color: non_empty(front.color),
        prompt: body.trim().to_owned(),
        source: match source {
            ExtensionSource::User => AgentSource::User,
            ExtensionSource::Project => AgentSource::Project,
        },
        path: Some(file.path.clone()),
    };
    let problem = non_empty(front.model).map(|model| {
        format!("model: {model} is not used; write model_name with a model or a pointer of [models]")
    });
    Ok((agent, problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<(Agent, Option<String>), String> {
        let file =
            MarkdownFile { path: "a/review.md".into(), name: vec!["review".into()], text: text.into() };
        agent(&file, ExtensionSource::Project)
    }

    #[test]
    fn agent_file_gives_name_tools_and_prompt() {
        let text = "---\nname: code-reviewer\ndescription: Reviews.\\nUse after changes.\ntools: Read, Grep\n\
                    model_name: quick\ncolor: red\n---\n\nYou review code.\n";
        let (agent, problem) = load(text).expect("right");
        assert_eq!((agent.name.as_str(), problem), ("code-reviewer", None));
        assert_eq!(agent.description, "Reviews.\nUse after changes.");
        assert_eq!(agent.tools, Some(vec!["Read".to_owned(), "Grep".to_owned()]));
        assert_eq!(agent.model_name.as_deref(), Some("quick"));
        assert_eq!((agent.color.as_deref(), agent.prompt.as_str()), (Some("red"), "You review code."));
        assert!(agent.is_read_only());
    }

    #[test]
    fn missing_tools_are_all_and_empty_list_is_none() {
        let tools =
            |line: &str| load(&format!("---\ndescription: x\n{line}---\nDo it.")).expect("right").0.tools;
        assert_eq!(tools(""), None);
        assert_eq!(tools("tools: \"*\"\n"), None);
        assert_eq!(tools("tools: ['*']\n"), None);
        assert_eq!(tools("tools: []\n"), Some(Vec::new()));
        assert_eq!(tools("tools:\n  - Bash\n"), Some(vec!["Bash".to_owned()]));
        assert_eq!(tools("tools:\n"), None);
    }

    #[test]
    fn deprecated_model_is_reported_and_bad_files_are_refused() {
        let (agent, problem) = load("---\ndescription: x\nmodel: opus\n---\nDo it.").expect("right");
        assert_eq!((agent.name.as_str(), agent.model_name), ("review", None));
        assert!(problem.expect("reported").contains("model_name"));
        for bad in ["Do it.", "---\nname: two words\ndescription: x\n---\n", "---\ndescription: [\n---\nx"] {
            assert!(load(bad).is_err(), "{bad}");
        }
    }
}
