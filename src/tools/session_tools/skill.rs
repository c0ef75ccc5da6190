//! Skill: loads the text of a skill, or finds skills.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::session_tools::{data_error, prepare_session_read, project_data};
use types::tool::{PreparedCall, ToolOutcome};

pub(super) const NAME: &str = "Skill";

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Name of the skill, as in the list of skills.
    #[serde(default, alias = "skill", alias = "command")]
    name: Option<String>,
    /// Words about the task, to find skills that are not in the list. Give either this or the name.
    #[serde(default)]
    query: Option<String>,
}

pub(super) const DESCRIPTION: &str = "Loads a skill: instructions of the user or the project for a kind of task. The \
    system prompt lists the skills; of many it lists only some, and a query finds others. Load one before you begin a \
    task that it fits, and follow it. The result names the folder with the other files of the skill.";

fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// What a call is for.
enum Wanted<'i> {
    Skill(&'i str),
    Matches(&'i str),
}

/// A name is taken as a user would type it: `/pdf` is `pdf`.
fn wanted(input: &Input) -> Result<Wanted<'_>, ToolError> {
    match (given(input.name.as_ref()), given(input.query.as_ref())) {
        (Some(name), None) => Ok(Wanted::Skill(name.trim_start_matches('/'))),
        (None, Some(query)) => Ok(Wanted::Matches(query)),
        _ => Err(ToolError::new("invalid_input", "give either the name of a skill or a query")),
    }
}

pub(super) fn prepare(input: &Input) -> Result<PreparedCall, ToolError> {
    let shorten = |text: &str| text.chars().take(64).collect::<String>();
    let summary = match wanted(input)? {
        Wanted::Skill(name) => format!("Load the skill {}", shorten(name)),
        Wanted::Matches(query) => format!("Find skills for {}", shorten(query)),
    };
    Ok(prepare_session_read(NAME, summary))
}

/// Blocks on the disk.
pub(super) fn run(context: &ToolContext, input: &Input) -> Result<ToolOutcome, ToolError> {
    let project = project_data(context)?;
    let text = match wanted(input)? {
        Wanted::Skill(name) => project.skill(name),
        Wanted::Matches(query) => project.find_skills(query),
    };
    Ok(ToolOutcome::completed(text.map_err(data_error)?))
}
