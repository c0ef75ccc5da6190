//! The definitions of all tools, as models get them.

use std::sync::Arc;

use serde_json::json;

use crate::error::ToolError;
use crate::files::{edit, glob, grep, ls, multi_edit, notebook, patch, read, write};
use crate::{input, knowledge_search, session_tools, shell, task, web};
use types::tool::ToolDefinition;

/// All definitions, always in the same order.
pub(super) fn definitions() -> Arc<[ToolDefinition]> {
    let card = |name: &str, description: &str, input_schema, read_only| ToolDefinition {
        name: name.into(),
        description: description.into(),
        input_schema,
        read_only,
    };
    let mut definitions = vec![
        card("Bash", shell::DESCRIPTION, input::schema::<shell::Input>(), false),
        card("BashOutput", shell::OUTPUT, input::schema::<shell::OutputInput>(), true),
        card("KillBash", shell::KILL, input::schema::<shell::KillInput>(), false),
        card("Read", read::DESCRIPTION, input::schema::<read::Input>(), true),
        card("Write", write::DESCRIPTION, input::schema::<write::Input>(), false),
        card("Edit", edit::DESCRIPTION, input::schema::<edit::Input>(), false),
        card("MultiEdit", multi_edit::DESCRIPTION, input::schema::<multi_edit::Input>(), false),
        card("ApplyPatch", patch::DESCRIPTION, input::schema::<patch::Input>(), false),
        card("NotebookEdit", notebook::DESCRIPTION, input::schema::<notebook::Input>(), false),
        card("Glob", glob::DESCRIPTION, input::schema::<glob::Input>(), true),
        card("Grep", grep::DESCRIPTION, input::schema::<grep::Input>(), true),
        card("LS", ls::DESCRIPTION, input::schema::<ls::Input>(), true),
        card("WebFetch", web::DESCRIPTION, input::schema::<web::Input>(), false),
        card("Task", task::DESCRIPTION, input::schema::<task::Input>(), false),
    ];
    definitions.extend(session_tools::session_definitions());
    let search = input::schema::<knowledge_search::Input>();
    definitions.push(card(knowledge_search::NAME, knowledge_search::DESCRIPTION, search, true));
    definitions.into()
}

/// The error for a name that no tool has, with the nearest name.
pub(super) fn unknown_tool(tool: &str, definitions: &[ToolDefinition]) -> ToolError {
    let names: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    let near = names
        .iter()
        .map(|name| {
            (strsim::normalized_damerau_levenshtein(&name.to_lowercase(), &tool.to_lowercase()), name)
        })
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| *name);
    let hint = near.map_or(String::new(), |name| format!(" Did you mean {name}?"));
    ToolError::new(
        "unknown_tool",
        format!("there is no tool {tool:?}.{hint} The tools are: {}", names.join(", ")),
    )
    .with(json!({ "tool": tool, "did_you_mean": near, "tools": names }))
}
