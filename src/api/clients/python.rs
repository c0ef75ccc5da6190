//! Types for Python: a `TypedDict` for each struct, an alias for each choice, and one overload of `call` for each method.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Shape, is_required, methods, schemas, text};
use crate::openrpc::openrpc;

/// Words of Python that cannot be names of fields in a class.
const KEYWORDS: [&str; 7] = ["from", "import", "class", "global", "is", "in", "for"];

/// The text of `types.py`.
#[must_use]
pub fn python_types() -> String {
    let document = openrpc();
    let mut page = format!(
        "# Printed from the daemon's OpenRPC document; do not edit.\n\"\"\"{}\"\"\"\n\nfrom __future__ import annotations\n\n\
         from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, overload\n\n\
         PROTOCOL_VERSION = {}\n",
        text(&document["info"]["description"]).replace('\\', "\\\\"),
        text(&document["info"]["version"]),
    );
    for (name, schema) in schemas(&document) {
        let about = text(&schema["description"]).replace('\\', "\\\\").replace('\n', " ");
        match Shape::from_schema(schema) {
            Shape::Struct(fields) if fields.keys().any(|field| KEYWORDS.contains(&field.as_str())) => {
                let _ = write!(page, "\n# {about}\n{name} = TypedDict(\n    {name:?},\n    {{\n");
                for (field, schema_of_field) in fields {
                    let _ =
                        writeln!(page, "        {field:?}: {:?},", of_field(schema, field, schema_of_field));
                }
                page.push_str("    },\n)\n");
            }
            Shape::Struct(fields) => {
                let _ = write!(page, "\n\nclass {name}(TypedDict):\n    \"\"\"{about}\"\"\"\n");
                for (field, schema_of_field) in fields {
                    let _ = write!(page, "\n    {field}: {}\n", of_field(schema, field, schema_of_field));
                    let about =
                        text(&schema_of_field["description"]).replace('\\', "\\\\").replace('\n', " ");
                    if !about.is_empty() {
                        let _ = writeln!(page, "    \"\"\"{}\"\"\"", about.replace('"', "'"));
                    }
                }
            }
            _ => {
                let _ = write!(page, "\n# {about}\n{name}: TypeAlias = {:?}\n", expression(schema));
            }
        }
    }
    page.push_str("\n\nclass Call(Protocol):\n    \"\"\"A call with the types of its method.\"\"\"\n");
    for method in methods(&document) {
        let params = method.params.unwrap_or("dict[str, Any]");
        let default = if method.is_callable_without { " = ..." } else { "" };
        let _ = write!(
            page,
            "\n    @overload\n    async def __call__(self, method: Literal[{:?}], params: {params}{default}) -> {}: ...\n",
            method.name,
            expression(method.reply)
        );
    }
    page
}

fn of_field(owner: &Value, name: &str, field: &Value) -> String {
    let expression = expression(field);
    if is_required(owner, name) { expression } else { format!("NotRequired[{expression}]") }
}

fn expression(schema: &Value) -> String {
    match Shape::from_schema(schema) {
        Shape::Named(name) => name.to_owned(),
        Shape::Literals(values) => {
            let values: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
            format!("Literal[{}]", values.join(", "))
        }
        Shape::OneOf(choices) => choices.into_iter().map(expression).collect::<Vec<_>>().join(" | "),
        Shape::List(items) => format!("list[{}]", expression(items)),
        Shape::Map(values) => {
            format!("dict[str, {}]", values.map_or_else(|| "Any".to_owned(), expression))
        }
        Shape::Plain("string") => "str".into(),
        Shape::Plain("integer") => "int".into(),
        Shape::Plain("number") => "float".into(),
        Shape::Plain("boolean") => "bool".into(),
        Shape::Plain("null") => "None".into(),
        Shape::Struct(_) | Shape::Plain(_) | Shape::Any => "Any".into(),
    }
}
