//! The use of a session's context window, as `session.context` returns it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The heading of the project's instructions in the system prompt.
pub const INSTRUCTIONS_HEADING: &str = "\n\n# Project instructions\n";
/// The heading of the notes about the project, which follow the instructions.
pub const MEMORY_HEADING: &str = "\n\n# Memory\n";
/// The heading of the surroundings, which follow the notes.
pub const SURROUNDINGS_HEADING: &str = "\n\n# Surroundings\n";

/// The use of the context window of a session's model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextView {
    /// Tokens that fit in a request and its answer; `null` if unknown.
    pub window: Option<u64>,
    /// Tokens of the next request, as far as they are known.
    pub used: u64,
    /// Tokens that are reserved for the answer.
    pub reserved_output: u64,
    /// The parts of `used`. If the window is known, the part `free` is the unused rest of it.
    pub parts: Vec<ContextPart>,
    /// How often a summary replaced the conversation.
    pub compactions: u32,
    /// Whether `used` is an estimate. Otherwise the provider reported the length of the newest request, and only
    /// later additions are estimated.
    pub estimated: bool,
}

/// One part of the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextPart {
    /// Name of the part.
    pub name: PartName,
    /// Its tokens, estimated.
    pub tokens: u64,
}

/// Names of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PartName {
    /// The system prompt without the project's instructions.
    System,
    /// The project's instructions.
    Instructions,
    /// Notes about the project.
    Memory,
    /// Names, descriptions and schemas of the tools.
    Tools,
    /// Instructions of MCP servers, and the names, descriptions and schemas of their tools.
    Mcp,
    /// Messages of users and models, and tool calls.
    Messages,
    /// Results of tools.
    ToolResults,
    /// Reminders of the daemon to the model.
    Reminders,
    /// The unused rest of the window.
    Free,
}

impl PartName {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}
