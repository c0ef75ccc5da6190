//! The lists of a server: its tools and instructions, adapted for models.

use std::collections::BTreeSet;

use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::names::tool_name;
use types::hex;
use types::mcp::{McpInstructions, McpTool};

/// Maximum number of tools of one server.
pub(super) const MAX_TOOLS: usize = 500;
/// Maximum bytes of a description.
const MAX_DESCRIPTION_BYTES: usize = 16 << 10;
/// Maximum bytes of a schema.
const MAX_SCHEMA_BYTES: usize = 64 << 10;
/// Maximum bytes of a server's instructions.
const MAX_INSTRUCTIONS_BYTES: usize = 16 << 10;

/// The offer of a ready server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ServerOffer {
    /// Its tools, sorted by name.
    pub tools: Vec<McpTool>,
    pub instructions: Option<String>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// Tools that are left out, each with the reason.
    pub problems: Vec<String>,
}

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The name on the server.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its arguments in order, each with whether it is required.
    pub arguments: Vec<(String, bool)>,
}

/// The tools of a list, for the server `server` with the name part `part`.
pub(super) fn tools(
    server: &str,
    part: &str,
    listed: Vec<Tool>,
    is_used: impl Fn(&str) -> bool,
) -> (Vec<McpTool>, Vec<String>) {
    let (mut tools, mut problems, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for tool in listed.into_iter().filter(|tool| is_used(&tool.name)) {
        if tools.len() == MAX_TOOLS {
            problems.push(format!("only the first {MAX_TOOLS} tools are used"));
            break;
        }
        let name = tool_name(part, &tool.name);
        let written = tool.description.into_iter().chain(tool.title.map(Into::into));
        let description = written.into_iter().find(|text| !text.trim().is_empty()).unwrap_or_default();
        let mut description = cut(&description, MAX_DESCRIPTION_BYTES).to_owned();
        let input_schema = object_schema(Value::Object((*tool.input_schema).clone()));
        if input_schema.to_string().len() > MAX_SCHEMA_BYTES {
            problems.push(format!("the tool {:?} is left out: its schema is too large", tool.name));
            continue;
        }
        if !names.insert(name.clone()) {
            problems.push(format!("the tool {:?} is left out: another tool has the name {name}", tool.name));
            continue;
        }
        let digest = hex::encode(&Sha256::digest(format!("{description}\0{input_schema}")));
        if description.is_empty() {
            // Not part of the digest, which stands for what the server says.
            description = format!("MCP tool from {server}");
        }
        tools.push(McpTool {
            name,
            server: server.to_owned(),
            tool: tool.name.into_owned(),
            description,
            input_schema,
            digest,
        });
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    (tools, problems)
}

/// Providers accept only objects as input.
fn object_schema(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else { return json!({"type": "object", "properties": {}}) };
    fields.remove("$schema");
    fields.insert("type".into(), "object".into());
    fields.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// A server's instructions for the model.
pub(super) fn instructions(server: &str, text: &str) -> McpInstructions {
    McpInstructions { server: server.to_owned(), text: cut(text.trim(), MAX_INSTRUCTIONS_BYTES).to_owned() }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        let value = json!({"name": name, "description": "d", "inputSchema": schema});
        serde_json::from_value(value).expect("a tool")
    }

    #[test]
    fn tools_with_colliding_names_are_left_out() {
        let listed = vec![
            tool("b", json!({"type": "object"})),
            tool("a.x", json!({"$schema": "s", "properties": {"p": {"type": "string"}}})),
            tool("a/x", json!({})),
            tool("secret", json!({})),
        ];
        let (tools, problems) = tools("my server", "my_server", listed, |name| name != "secret");
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["mcp__my_server__a_x", "mcp__my_server__b"]);
        assert_eq!(tools[0].input_schema, json!({"type": "object", "properties": {"p": {"type": "string"}}}));
        assert!(problems.len() == 1 && problems[0].contains("a/x"), "{problems:?}");
    }

    #[test]
    fn tool_without_description_is_named_by_its_server() {
        for (written, expected) in [
            (json!({}), "MCP tool from my server"),
            (json!({"description": ""}), "MCP tool from my server"),
            (json!({"description": " \n", "title": "Title"}), "Title"),
            (json!({"title": "Title"}), "Title"),
            (json!({"description": "d", "title": "Title"}), "d"),
        ] {
            let mut value = json!({"name": "t", "inputSchema": {}});
            value.as_object_mut().expect("an object").extend(written.as_object().expect("an object").clone());
            let listed = vec![serde_json::from_value(value).expect("a tool")];
            assert_eq!(
                tools("my server", "my_server", listed, |_| true).0[0].description,
                expected,
                "{written}"
            );
        }
    }

    #[test]
    fn tool_digest_changes_with_description_and_schema() {
        let digest = |description: &str, schema: Value| {
            let value = json!({"name": "t", "description": description, "inputSchema": schema});
            let listed = vec![serde_json::from_value(value).expect("a tool")];
            tools("s", "s", listed, |_| true).0.remove(0).digest
        };
        let first = digest("d", json!({}));
        assert_eq!(first, digest("d", json!({})));
        assert_ne!(first, digest("e", json!({})));
        assert_ne!(first, digest("d", json!({"required": ["x"]})));
    }
}
