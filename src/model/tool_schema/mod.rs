//! Fits the schemas of tools to what providers accept. Servers of MCP write any JSON Schema, and a provider that refuses
//! one refuses the whole request.
//!
//! Rules of the providers (docs.anthropic.com, "Tool use", and platform.openai.com, "Function calling", 2026-11): the
//! input is an object without `anyOf`, `oneOf`, `allOf`, `enum` and `not` at the top; names of properties have at most 64
//! letters, digits and `_.-`; a list has `items`; a schema is valid in the draft of 2020-12.
//!
//! - `branches`: references and alternatives at the top; `clean`: every schema inside; `kinds`: names of types.

mod branches;
mod clean;
mod kinds;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Value, json};

use branches::merge_branches;
use clean::clean;
use kinds::is_object_schema;
use types::tool::ToolDefinition;

/// Keys that no provider takes at the top of a schema.
const TOP_KEYS: [&str; 9] = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "if", "then", "else"];

/// A tool in the form that providers accept.
#[derive(Debug)]
pub(crate) struct WireTool<'r> {
    pub definition: &'r ToolDefinition,
    pub schema: Value,
}

/// The tools of a request. Tools whose schema cannot be fitted are missing.
pub(crate) fn wire_tools(tools: &[ToolDefinition]) -> Vec<WireTool<'_>> {
    let wire_tool = |definition| Some(WireTool { definition, schema: fit(definition).ok()?.0 });
    tools.iter().filter_map(wire_tool).collect()
}

/// The names of properties that were changed for a request, by tool.
#[derive(Debug, Default)]
pub(crate) struct ChangedNames {
    by_tool: HashMap<String, HashMap<String, String>>,
}

impl ChangedNames {
    /// The changed names of a request's tools, and the problem of each tool that is left out.
    pub fn from_tools(tools: &[ToolDefinition]) -> (Self, Vec<String>) {
        let (mut names, mut problems) = (Self::default(), Vec::new());
        for tool in tools {
            match fit(tool) {
                Ok((_, changed)) if changed.is_empty() => {}
                Ok((_, changed)) => {
                    _ = names.by_tool.insert(tool.name.clone(), changed.into_iter().collect())
                }
                Err(why) => problems.push(format!("the tool {} is left out: {why}", tool.name)),
            }
        }
        (names, problems)
    }

    /// Gives the arguments of a call the names that the tool has for them.
    pub fn restore(&self, tool: &str, input: &mut Value) {
        if let Some(names) = self.by_tool.get(tool) {
            restore(names, input);
        }
    }
}

fn restore(names: &HashMap<String, String>, input: &mut Value) {
    match input {
        Value::Object(fields) => {
            let changed: Vec<String> =
                fields.keys().filter(|key| names.contains_key(*key)).cloned().collect();
            for name in changed {
                if !fields.contains_key(&names[&name])
                    && let Some(value) = fields.remove(&name)
                {
                    fields.insert(names[&name].clone(), value);
                }
            }
            fields.values_mut().for_each(|value| restore(names, value));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| restore(names, item)),
        _ => {}
    }
}

/// The schema of a tool for providers, with the names that were changed and the names before.
fn fit(tool: &ToolDefinition) -> Result<(Value, Vec<(String, String)>), String> {
    let mut branches = 0;
    let Value::Object(mut top) = tool.input_schema.clone() else {
        return Err("its schema is not an object".into());
    };
    merge_branches(&mut top, &tool.input_schema, &mut branches)?;
    if !is_object_schema(&top) {
        return Err(format!("its schema describes {} instead of an object", top["type"]));
    }
    TOP_KEYS.iter().for_each(|key| _ = top.remove(*key));
    top.insert("type".into(), "object".into());
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".into(), json!({}));
    }
    let mut changed = Vec::new();
    let mut schema = Value::Object(top);
    clean(&mut schema, &mut changed);
    Ok((schema, changed))
}
