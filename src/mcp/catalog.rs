//! The lists of a server: its tools and instructions, adapted for models.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::listed_tool::ListedTool;
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
    pub prompts: Vec<Prompt>,
    /// Tools that are left out or changed, each with the reason.
    pub problems: Vec<String>,
    /// Entries of the configuration's lists that name no tool.
    pub unmatched_entries: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The name on the server.
    pub name: String,
    pub description: String,
    /// Its arguments in order, each with whether it is required.
    pub arguments: Vec<(String, bool)>,
}

/// Maximum number of problems that are kept.
const MAX_PROBLEMS: usize = 50;

/// Adds a problem, or counts it if there are many.
#[derive(Default)]
pub(super) struct Problems {
    kept: Vec<String>,
    others: usize,
}

impl Problems {
    pub fn add(&mut self, problem: String) {
        match self.kept.len() < MAX_PROBLEMS {
            true => self.kept.push(problem),
            false => self.others += 1,
        }
    }

    pub fn into_texts(mut self) -> Vec<String> {
        if self.others > 0 {
            self.kept.push(format!("{} more problems of this kind", self.others));
        }
        self.kept
    }
}

/// The tools of a list, for the server `server` with the name part `part`.
pub(super) fn tools(
    server: &str,
    part: &str,
    listed: Vec<ListedTool>,
    is_used: impl Fn(&str) -> bool,
    problems: &mut Problems,
) -> Vec<McpTool> {
    let (mut tools, mut names): (Vec<McpTool>, _) = (Vec::new(), BTreeSet::new());
    let used: Vec<ListedTool> = listed.into_iter().filter(|tool| is_used(&tool.name)).collect();
    let count = used.len();
    for ListedTool { name: tool, description, input_schema } in used {
        if tools.len() == MAX_TOOLS {
            problems.add(format!("only the first {MAX_TOOLS} of {count} tools are used"));
            break;
        }
        let name = tool_name(part, &tool);
        if description.len() > MAX_DESCRIPTION_BYTES {
            problems.add(format!(
                "the description of the tool {tool:?} has {} bytes; the model gets the first {MAX_DESCRIPTION_BYTES}",
                description.len()
            ));
        }
        let description = cut(&description, MAX_DESCRIPTION_BYTES).to_owned();
        let input_schema = match object_schema(input_schema) {
            Ok(schema) if schema.to_string().len() <= MAX_SCHEMA_BYTES => schema,
            Ok(_) => {
                problems.add(format!(
                    "the tool {tool:?} is left out: its schema has more than {MAX_SCHEMA_BYTES} bytes"
                ));
                continue;
            }
            Err(why) => {
                problems.add(format!("the tool {tool:?} is left out: {why}"));
                continue;
            }
        };
        if !names.insert(name.clone()) {
            problems.add(format!("the tool {tool:?} is left out: another tool has the name {name}"));
            continue;
        }
        let digest = hex::encode(&Sha256::digest(format!("{description}\0{input_schema}")));
        let description = match description {
            // Not part of the digest, which stands for what the server says.
            empty if empty.trim().is_empty() => format!("MCP tool from {server}"),
            written => written,
        };
        tools.push(McpTool { name, server: server.to_owned(), tool, description, input_schema, digest });
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

/// The schema of an object: arguments are one. `model` fits it to each provider.
fn object_schema(mut schema: Value) -> Result<Value, String> {
    let Some(fields) = schema.as_object_mut() else { return Err("its schema is not an object".into()) };
    let is_object = match fields.get("type") {
        None | Some(Value::Null) => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    if !is_object {
        return Err(format!("its schema describes {} instead of an object", fields["type"]));
    }
    fields.remove("$schema");
    fields.insert("type".into(), "object".into());
    fields.entry("properties").or_insert_with(|| json!({}));
    Ok(schema)
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

    fn tool(name: &str, schema: Value) -> ListedTool {
        ListedTool { name: name.into(), description: "d".into(), input_schema: schema }
    }

    fn offered(listed: Vec<ListedTool>, is_used: impl Fn(&str) -> bool) -> (Vec<McpTool>, Vec<String>) {
        let mut problems = Problems::default();
        let tools = tools("my server", "my_server", listed, is_used, &mut problems);
        (tools, problems.into_texts())
    }

    #[test]
    fn tools_with_colliding_names_are_left_out() {
        let listed = vec![
            tool("b", json!({"type": "object"})),
            tool("a.x", json!({"$schema": "s", "properties": {"p": {"type": "string"}}})),
            tool("a/x", json!({})),
            tool("secret", json!({})),
        ];
        let (tools, problems) = offered(listed, |name| name != "secret");
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["mcp__my_server__a_x", "mcp__my_server__b"]);
        assert_eq!(tools[0].input_schema, json!({"type": "object", "properties": {"p": {"type": "string"}}}));
        assert!(problems.len() == 1 && problems[0].contains("a/x"), "{problems:?}");
    }

    #[test]
    fn unusable_and_oversized_tools_are_left_out_and_named() {
        let large =
            json!({"type": "object", "properties": {"p": {"description": "x".repeat(MAX_SCHEMA_BYTES)}}});
        let listed = vec![
            tool("list", json!({"type": "array"})),
            tool("text", json!("no schema")),
            tool("number", json!({"type": 5})),
            tool("large", large),
            tool("both", json!({"type": ["object", "null"]})),
            ListedTool { description: "é".repeat(1 << 20), ..tool("long", json!({})) },
        ];
        let (tools, problems) = offered(listed, |_| true);
        let names: Vec<&str> = tools.iter().map(|tool| tool.tool.as_str()).collect();
        assert_eq!(names, ["both", "long"]);
        assert_eq!(tools[1].description.len(), MAX_DESCRIPTION_BYTES);
        for (problem, name) in problems.iter().zip(["list", "text", "number", "large", "long"]) {
            assert!(problem.contains(&format!("{name:?}")), "{problem}");
        }
        assert_eq!(problems.len(), 5);
    }

    #[test]
    fn server_with_thousands_of_tools_is_bounded_and_reported() {
        let many = (0..2_000).map(|number| tool(&format!("t{number:04}"), json!({}))).collect();
        let (tools, problems) = offered(many, |_| true);
        assert_eq!(tools.len(), MAX_TOOLS);
        assert_eq!(problems, [format!("only the first {MAX_TOOLS} of 2000 tools are used")]);
        let bad = (0..2_000).map(|number| tool(&format!("t{number:04}"), json!(1))).collect();
        let (tools, problems) = offered(bad, |_| true);
        assert_eq!((tools.len(), problems.len()), (0, MAX_PROBLEMS + 1));
        assert!(problems[MAX_PROBLEMS].contains("1950 more"), "{problems:?}");
    }

    #[test]
    fn tool_without_description_is_named_by_its_server() {
        let without = ListedTool { description: " \n".into(), ..tool("t", json!({})) };
        let (tools, _) = offered(vec![without], |_| true);
        assert!(tools[0].description.starts_with("MCP tool from "), "{tools:?}");
    }

    #[test]
    fn tool_digest_changes_with_description_and_schema() {
        let digest = |description: &str, schema: Value| {
            let listed = vec![ListedTool { description: description.into(), ..tool("t", schema) }];
            offered(listed, |_| true).0.remove(0).digest
        };
        let first = digest("d", json!({}));
        assert_eq!(first, digest("d", json!({})));
        assert_ne!(first, digest("e", json!({})));
        assert_ne!(first, digest("d", json!({"required": ["x"]})));
    }
}
