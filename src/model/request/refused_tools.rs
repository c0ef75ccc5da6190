//! Tools that a provider refuses although their schema was fitted. A request is tried again without such a tool, so that
//! one tool of a server does not end the session.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::tool_schema::wire_tools;
use base::sync::lock;
use types::mcp_names::MCP_PREFIX;
use types::model::{FaultKind, ModelFault, ModelRef, ModelRequest};
use types::tool::ToolDefinition;

/// How many tools of one request may be refused one after the other.
pub(crate) const MAX_REFUSALS: usize = 8;

/// Texts before the place of a tool in the request, the most exact first.
const PLACES: [&str; 4] = ["function_declarations[", "functionDeclarations[", "tools[", "tools."];

/// The refused tools of each model, as their names and schemas.
#[derive(Debug, Default)]
pub(crate) struct RefusedTools {
    by_model: Mutex<BTreeMap<String, BTreeSet<(String, String)>>>,
}

impl RefusedTools {
    /// The request without tools that the model's provider refused before.
    pub fn without_known<'r>(&self, request: &'r ModelRequest) -> Cow<'r, ModelRequest> {
        let by_model = lock(&self.by_model);
        let Some(refused) = by_model.get(&request.model.to_string()) else { return Cow::Borrowed(request) };
        let is_refused = |tool: &ToolDefinition| refused.contains(&key(tool));
        match request.tools.iter().any(is_refused) {
            true => Cow::Owned(without(request, is_refused)),
            false => Cow::Borrowed(request),
        }
    }

    /// Remembers a tool until its definition changes.
    pub fn add(&self, model: &ModelRef, tool: &ToolDefinition) {
        lock(&self.by_model).entry(model.to_string()).or_default().insert(key(tool));
    }
}

fn key(tool: &ToolDefinition) -> (String, String) {
    (tool.name.clone(), tool.input_schema.to_string())
}

/// The request without some of its tools.
pub(crate) fn without(request: &ModelRequest, is_left_out: impl Fn(&ToolDefinition) -> bool) -> ModelRequest {
    let tools = request.tools.iter().filter(|tool| !is_left_out(tool)).cloned().collect();
    ModelRequest { tools, ..request.clone() }
}

/// The tool of a server that a refusal names, or whose place in the request it names.
pub(crate) fn refused_tool<'r>(
    refusal: &ModelFault,
    request: &'r ModelRequest,
) -> Option<&'r ToolDefinition> {
    if refusal.kind != FaultKind::BadRequest || refusal.overflow.is_some() {
        return None;
    }
    let text = &refusal.message;
    let is_of_server = |tool: &&ToolDefinition| tool.name.starts_with(MCP_PREFIX);
    let named = request.tools.iter().filter(is_of_server).find(|tool| names_tool(text, &tool.name));
    named.or_else(|| {
        let place = PLACES.iter().find_map(|begin| number_after(text, begin))?;
        wire_tools(&request.tools).get(place).map(|tool| tool.definition).filter(is_of_server)
    })
}

/// Whether a text contains the name as a whole word.
fn names_tool(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

fn number_after(text: &str, begin: &str) -> Option<usize> {
    text.match_indices(begin).find_map(|(at, _)| {
        let rest = &text[at + begin.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> ModelRequest {
        let tool = |name: &str| ToolDefinition {
            name: name.into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            read_only: false,
        };
        let unfit = ToolDefinition { input_schema: json!({"type": "string"}), ..tool("mcp__s__unfit") };
        let tools = vec![tool("Bash"), unfit, tool("mcp__s__a"), tool("mcp__s__a_b")];
        ModelRequest { tools: tools.into(), ..ModelRequest::new("p/m".parse().expect("a model")) }
    }

    #[test]
    fn refusal_names_tool_or_its_place_in_request() {
        let request = request();
        for (text, expected) in [
            ("tools.1.custom.input_schema: JSON schema is invalid", Some("mcp__s__a")),
            ("tools.2.input_schema.properties: Property keys should match pattern", Some("mcp__s__a_b")),
            ("Invalid schema for function 'mcp__s__a_b': array schema missing items", Some("mcp__s__a_b")),
            ("Invalid 'tools[1].function.parameters'", Some("mcp__s__a")),
            ("GenerateContentRequest.tools[0].function_declarations[2].parameters", Some("mcp__s__a_b")),
            ("the tool mcp__s__a.", Some("mcp__s__a")),
            ("tools.0.name: not allowed", None),
            ("tools.7.name: not allowed", None),
            ("messages.1: unexpected role", None),
            ("mcp__s__abc is unknown", None),
            ("the tool Bash is not allowed", None),
        ] {
            let refusal = ModelFault::new(FaultKind::BadRequest, text);
            let found = refused_tool(&refusal, &request).map(|tool| tool.name.as_str());
            assert_eq!(found, expected, "{text}");
            let other = ModelFault::new(FaultKind::Server, text);
            assert!(refused_tool(&other, &request).is_none(), "{text}");
        }
    }

    #[test]
    fn refused_tool_is_left_out_until_its_schema_changes() {
        let request = request();
        let refused = RefusedTools::default();
        assert!(matches!(refused.without_known(&request), Cow::Borrowed(_)));
        refused.add(&request.model, &request.tools[2]);
        let names =
            |request: &ModelRequest| request.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&refused.without_known(&request)), ["Bash", "mcp__s__unfit", "mcp__s__a_b"]);
        let mut changed = request.tools.to_vec();
        changed[2].input_schema = json!({"type": "object", "properties": {}});
        let changed = ModelRequest { tools: changed.into(), ..request.clone() };
        assert_eq!(names(&refused.without_known(&changed)).len(), 4);
        let other = ModelRequest { model: "p/other".parse().expect("a model"), ..request };
        assert_eq!(names(&refused.without_known(&other)).len(), 4, "another model");
    }
}
