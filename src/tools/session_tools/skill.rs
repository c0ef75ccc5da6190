//! Skill: loads the text of a skill.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::session_tools::{data_error, prepare_session_call, project_data};
use types::tool::{PreparedCall, ToolOutcome};

pub(super) const NAME: &str = "Skill";

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Name of the skill, as in the list of skills.
    #[serde(alias = "skill", alias = "command")]
    name: String,
}

pub(super) const DESCRIPTION: &str = "Loads a skill: instructions of the user or the project for a kind of task. The \
    system prompt lists the skills. Load one before you begin a task that it fits, and follow it. The result names \
    the folder with the other files of the skill.";

/// The name as a user would type it: `/pdf` is `pdf`.
fn name(input: &Input) -> &str {
    input.name.trim().trim_start_matches('/')
}

pub(super) fn prepare(input: &Input) -> Result<PreparedCall, ToolError> {
    let shown: String = name(input).chars().take(64).collect();
    Ok(prepare_session_call(NAME, format!("Load the skill {shown}"), true))
}

/// Blocks on the disk.
pub(super) fn run(context: &ToolContext, input: &Input) -> Result<ToolOutcome, ToolError> {
    let text = project_data(context)?.skill(name(input)).map_err(data_error)?;
    Ok(ToolOutcome::completed(text))
}
