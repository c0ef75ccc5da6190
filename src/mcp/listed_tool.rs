//! One tool of a server's list. Each is read by itself, because servers write entries that the protocol does not have.

use rmcp::model::Tool;
use serde_json::{Value, json};

/// A tool as its server lists it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ListedTool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

impl From<Tool> for ListedTool {
    fn from(tool: Tool) -> Self {
        let title = || tool.title.or(tool.annotations.and_then(|hints| hints.title));
        Self {
            name: tool.name.into_owned(),
            description: tool.description.map(Into::into).or_else(title).unwrap_or_default(),
            input_schema: Value::Object((*tool.input_schema).clone()),
        }
    }
}

impl ListedTool {
    /// The problem of a tool without a name, at this place of a list.
    pub fn nameless(index: usize) -> String {
        format!("the tool at place {} of its list is left out: it has no name", index + 1)
    }

    /// Reads an entry that is not as the protocol wants it. `index` is its place in the list. Parts that are not used
    /// are reported.
    ///
    /// # Errors
    /// The tool cannot be used; the text names it.
    pub fn read(mut entry: Value, index: usize, report: &mut dyn FnMut(String)) -> Result<Self, String> {
        // Most entries of a list with one wrong entry are fine.
        if let Ok(tool) = serde_json::from_value::<Tool>(entry.clone())
            && !tool.name.is_empty()
        {
            return Ok(tool.into());
        }
        let Some(fields) = entry.as_object_mut() else {
            return Err(format!("entry {} of its list is left out: it is not an object", index + 1));
        };
        let Some(name) = text(fields.get("name")).map(str::to_owned) else {
            return Err(Self::nameless(index));
        };
        let title =
            text(fields.get("title")).or(text(fields.get("annotations").and_then(|it| it.get("title"))));
        let description = text(fields.get("description")).or(title).unwrap_or_default().to_owned();
        let input_schema = match fields.remove("inputSchema").or_else(|| fields.remove("input_schema")) {
            Some(schema @ Value::Object(_)) => schema,
            None | Some(Value::Null) => {
                report(format!("the tool {name:?} has no inputSchema: it is offered without arguments"));
                json!({"type": "object", "properties": {}})
            }
            Some(_) => {
                return Err(format!("the tool {name:?} is left out: its inputSchema is not an object"));
            }
        };
        for key in ["description", "title", "outputSchema", "annotations", "icons", "_meta"] {
            let Some(value) = fields.get(key).filter(|value| !value.is_null()) else { continue };
            let is_right = match key {
                "description" | "title" => value.is_string(),
                "icons" => value.is_array(),
                "annotations" => {
                    serde_json::from_value::<rmcp::model::ToolAnnotations>(value.clone()).is_ok()
                }
                _ => value.is_object(),
            };
            if !is_right {
                report(format!("the {key} of the tool {name:?} cannot be read and is not used"));
            }
        }
        Ok(Self { name, description, input_schema })
    }
}

/// A text that is not empty.
fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_entries_are_read_one_by_one_and_named() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        for (entry, name, noted) in [
            (json!({"name": "a", "description": "d", "inputSchema": schema}), Some("a"), None),
            (
                json!({"name": "a", "inputSchema": schema, "outputSchema": true}),
                Some("a"),
                Some("outputSchema"),
            ),
            (
                json!({"name": "a", "inputSchema": schema, "annotations": {"readOnlyHint": "true"}}),
                Some("a"),
                Some("annotations"),
            ),
            (json!({"name": "a", "inputSchema": schema, "description": 5}), Some("a"), Some("description")),
            (json!({"name": "a", "inputSchema": schema, "icons": "x"}), Some("a"), Some("icons")),
            (json!({"name": "a", "inputSchema": schema, "_meta": []}), Some("a"), Some("_meta")),
            (json!({"name": "a", "title": "t"}), Some("a"), Some("no inputSchema")),
            (json!({"name": "a", "inputSchema": null}), Some("a"), Some("no inputSchema")),
            (json!({"name": "a", "inputSchema": true}), None, Some("\"a\"")),
            (json!({"name": "a", "inputSchema": "{}"}), None, Some("\"a\"")),
            (json!({"inputSchema": schema}), None, Some("place 4")),
            (json!({"name": "", "inputSchema": schema}), None, Some("place 4")),
            (json!({"name": 7, "inputSchema": schema}), None, Some("place 4")),
            (json!("a"), None, Some("entry 4")),
        ] {
            let mut notes = Vec::new();
            let read = ListedTool::read(entry.clone(), 3, &mut |note| notes.push(note));
            assert_eq!(read.as_ref().ok().map(|tool| tool.name.as_str()), name, "{entry}");
            notes.extend(read.err());
            assert_eq!(notes.len(), usize::from(noted.is_some()), "{entry}: {notes:?}");
            assert!(noted.is_none_or(|part| notes[0].contains(part)), "{entry}: {notes:?}");
        }
        let titled = ListedTool::read(json!({"name": "a", "title": "t"}), 0, &mut |_| {}).expect("a tool");
        assert_eq!((titled.description.as_str(), &titled.input_schema["type"]), ("t", &json!("object")));
    }
}
