//! Types for TypeScript: an interface for each struct, a union for each choice, and a map of all methods.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Shape, is_required, methods, notifications, schemas, text};
use crate::openrpc::openrpc;

/// The text of `types.ts`.
#[must_use]
pub fn typescript_types() -> String {
    let document = openrpc();
    let mut page = format!(
        "// Printed from the daemon's OpenRPC document; do not edit.\n\
         // {}\n\n/** The protocol version of these types. */\nexport const PROTOCOL_VERSION = {};\n",
        text(&document["info"]["description"]),
        text(&document["info"]["version"]),
    );
    for (name, schema) in schemas(&document) {
        page.push('\n');
        comment(&mut page, "", text(&schema["description"]));
        match Shape::from_schema(schema) {
            Shape::Struct(fields) => {
                let _ = writeln!(page, "export interface {name} {{");
                for (field, schema_of_field) in fields {
                    comment(&mut page, "  ", text(&schema_of_field["description"]));
                    let mark = if is_required(schema, field) { "" } else { "?" };
                    let _ = writeln!(page, "  {field}{mark}: {};", expression(schema_of_field));
                }
                page.push_str("}\n");
            }
            _ => _ = writeln!(page, "export type {name} = {};", expression(schema)),
        }
    }
    page.push_str("\n/** The parameters and the reply of each method. */\nexport interface Methods {\n");
    for method in methods(&document) {
        comment(&mut page, "  ", method.summary);
        let params = method.params.unwrap_or("Record<string, never>");
        let mark = if method.is_callable_without { "?" } else { "" };
        let reply = expression(method.reply);
        let _ = writeln!(page, "  {:?}: {{ params{mark}: {params}; reply: {reply} }};", method.name);
    }
    page.push_str("}\n\n/** The parameters of each notification. */\nexport interface Notifications {\n");
    for (name, params) in notifications(&document) {
        let _ = writeln!(page, "  {name:?}: {params};");
    }
    page.push_str("}\n");
    page
}

fn expression(schema: &Value) -> String {
    match Shape::from_schema(schema) {
        Shape::Named(name) => name.to_owned(),
        Shape::Literals(values) => join(values.iter().map(|value| format!("{value:?}"))),
        Shape::OneOf(choices) => join(choices.into_iter().map(expression)),
        Shape::List(items) => format!("Array<{}>", expression(items)),
        Shape::Map(values) => {
            format!("Record<string, {}>", values.map_or_else(|| "unknown".to_owned(), expression))
        }
        Shape::Struct(_) => "Record<string, unknown>".into(),
        Shape::Plain("integer" | "number") => "number".into(),
        Shape::Plain(kind) => kind.to_owned(),
        Shape::Any => "unknown".into(),
    }
}

fn join(choices: impl Iterator<Item = String>) -> String {
    choices.collect::<Vec<_>>().join(" | ")
}

fn comment(page: &mut String, indent: &str, about: &str) {
    if !about.is_empty() {
        let about = about.replace("*/", "* /").replace('\n', " ");
        let _ = writeln!(page, "{indent}/** {about} */");
    }
}
