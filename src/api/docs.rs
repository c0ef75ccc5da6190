//! Generates the pages of `proto-docs/` from the OpenRPC document.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::examples;
use super::fault::Code;
use super::methods::METHODS;
use super::openrpc::openrpc;
use super::params::ClientRole;

/// The text of `proto-docs/methods.md`.
#[must_use]
pub fn methods_page() -> String {
    let mut page = String::from(
        "# Methods\n\nPrinted from the code. Parameters are given by name, or by position in the order of this page; an \
         unknown one is refused. The full schemas are in `openrpc.json`. The examples \
         were recorded by a test; long lists and texts are cut, `…` marks it.\n",
    );
    roles(&mut page);
    let document = openrpc();
    let empty = Vec::new();
    for method in document["methods"].as_array().unwrap_or(&empty) {
        let _ = write!(
            page,
            "\n## {}\n{}\n\n",
            method["name"].as_str().unwrap_or_default(),
            method["summary"].as_str().unwrap_or_default()
        );
        let params = method["params"].as_array().unwrap_or(&empty);
        if !params.is_empty() {
            page.push_str("Parameters:\n\n");
        }
        for param in params {
            let name = param["name"].as_str().unwrap_or_default();
            field(&mut page, name, param["required"] == true, &param["schema"]);
        }
        if !params.is_empty() {
            page.push('\n');
        }
        let reply = resolve(&document, &method["result"]["schema"]);
        fields(&mut page, "Reply", reply);
        if let (None, Some(kind)) =
            (reply["properties"].as_object(), reply["type"].as_str().filter(|it| *it != "object"))
        {
            let about =
                reply["description"].as_str().map(|about| format!(": {}", about.trim_end_matches('.')));
            let about = about.unwrap_or_default();
            let _ = writeln!(page, "Reply: {kind}{about}.\n");
        }
        if let Some(found) = METHODS.iter().find(|m| Some(m.name) == method["name"].as_str()) {
            if !found.traits.unsupported_params.is_empty() {
                let _ = writeln!(
                    page,
                    "Not built yet, refused as `unsupported`: {}.",
                    found.traits.unsupported_params.join(", ")
                );
            }
            if !found.traits.errors.is_empty() {
                let kinds: Vec<&str> = found.traits.errors.iter().map(|code| code.kind()).collect();
                let _ = writeln!(page, "Errors: {}.", kinds.join(", "));
            }
            if let Some((params, result)) = examples::example(found.name) {
                let (params, result) = (pretty(&json!(params)), pretty(result));
                let _ = write!(
                    page,
                    "\nExample, parameters and reply:\n\n```json\n{params}\n```\n```json\n{result}\n```\n"
                );
            }
        }
    }
    page
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// Adds a table of the methods that each role may call.
fn roles(page: &mut String) {
    page.push_str(
        "\n## Roles\nA client is a `controller` unless it asks for `observer` in `daemon.hello`. A process that a tool \
         of this daemon has started is a `tool`, whatever it asks for: it is told by its parents when it connects. Who \
         may not call a method gets `not_authorised` with `data.role`, and the audit log gets a row.\n\n\
         | method | controller | observer | tool |\n| --- | --- | --- | --- |\n",
    );
    for method in METHODS {
        let may = |role| if method.is_for(role) { "yes" } else { "no" };
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            method.name,
            may(ClientRole::Controller),
            may(ClientRole::Observer),
            may(ClientRole::Tool)
        );
    }
}

/// The text of `proto-docs/events.md`.
#[must_use]
pub fn events_page() -> String {
    let mut page = String::from(
        "# Events\n\nPrinted from the code. Every event also carries `seq`, `session_id`, `at_ms` and, where they \
         apply, `turn_id`, `item_id` and `origin`. An event has at most 64 KiB; a longer one has the list \
         `truncated_fields` (see [README](README.md#large-contents)). Ignore kinds and fields that you do not know. \
         Events that are *pruned* are removed from the journal when their item completes; all others are permanent.\n",
    );
    let document = openrpc();
    let events = &document["components"]["schemas"]["Envelope"];
    let empty = Vec::new();
    let variants: Vec<&Value> = events["oneOf"]
        .as_array()
        .unwrap_or(&empty)
        .iter()
        .map(|variant| resolve(&document, variant))
        .collect();
    for variant in &variants {
        let kind = variant["properties"]["type"]["const"].as_str().unwrap_or_default();
        let about = variant["description"].as_str().unwrap_or_default();
        let _ = write!(page, "\n## {kind}\n{about}\n\n");
        let mut own = (*variant).clone();
        if let Some(fields) = own["properties"].as_object_mut() {
            let is_common = |name: &str| variants.iter().all(|other| other["properties"].get(name).is_some());
            fields.retain(|name, _| !is_common(name));
        }
        fields(&mut page, "Fields", &own);
    }
    page
}

/// The text of `proto-docs/types.md`.
#[must_use]
pub fn types_page() -> String {
    let mut page = String::from(
        "# Types\n\nPrinted from the code: what the parameters, replies and events are made of. `name?` may be \
         absent.\n",
    );
    let document = openrpc();
    let Some(types) = document["components"]["schemas"].as_object() else { return page };
    let is_listed = |name: &str, schema: &Value| {
        let is_elsewhere = ["Params", "Reply", "Notification"].iter().any(|ending| name.ends_with(ending));
        !is_elsewhere && name != "Envelope" && schema.get("x-variant-of").is_none()
    };
    for (name, schema) in types.iter().filter(|(name, schema)| is_listed(name, schema)) {
        let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        let _ = write!(page, "\n## {name}\n{about}\n\n");
        if let Some(pattern) = schema["pattern"].as_str() {
            let _ = writeln!(page, "A string like `{pattern}`.\n");
        }
        fields(&mut page, "Fields", schema);
        let empty = Vec::new();
        let values = schema["enum"].as_array().unwrap_or(&empty).iter().filter_map(Value::as_str);
        let descriptions = schema["x-enum-descriptions"].as_array().unwrap_or(&empty);
        for (value, about) in values.zip(descriptions) {
            let about = about.as_str().unwrap_or_default().replace('\n', " ");
            let _ = writeln!(page, "- `{value}`: {about}");
        }
        for choice in schema["oneOf"].as_array().unwrap_or(&empty) {
            let choice = resolve(&document, choice);
            let about = choice["description"].as_str().unwrap_or_default().replace('\n', " ");
            write_variant(&mut page, choice, &about);
        }
    }
    page
}

/// One variant of a tagged union: the tag, then its other fields.
fn write_variant(page: &mut String, choice: &Value, about: &str) {
    let Some(properties) = choice["properties"].as_object() else { return };
    let tag = properties.iter().find_map(|(name, field)| Some((name, field["const"].as_str()?)));
    let Some((tag, value)) = tag else { return };
    let _ = writeln!(page, "- `{tag}: \"{value}\"`: {about}");
    for (name, schema) in properties.iter().filter(|(name, _)| *name != tag) {
        page.push_str("  ");
        field(
            page,
            name,
            choice["required"].as_array().is_some_and(|all| all.contains(&json!(name))),
            schema,
        );
    }
}

/// The text of `proto-docs/errors.md`.
#[must_use]
pub fn errors_page() -> String {
    let mut page = String::from(
        "# Errors\n\nPrinted from the code. Every error has `data {kind, retryable}` and, where it helps, more.\n\n\
         | code | kind | retryable | meaning |\n| --- | --- | --- | --- |\n",
    );
    for code in Code::ALL {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            code.number(),
            code.kind(),
            if code.is_retryable() { "yes" } else { "no" },
            code.meaning()
        );
    }
    page
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|path| path.strip_prefix("#")) {
        Some(pointer) => document.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

fn fields(page: &mut String, heading: &str, schema: &Value) {
    let Some(properties) = schema["properties"].as_object() else { return };
    if properties.is_empty() {
        return;
    }
    let empty = Vec::new();
    let required: Vec<&str> =
        schema["required"].as_array().unwrap_or(&empty).iter().filter_map(Value::as_str).collect();
    let _ = writeln!(page, "{heading}:\n");
    for (name, schema) in properties {
        field(page, name, required.contains(&name.as_str()), schema);
    }
    page.push('\n');
}

fn field(page: &mut String, name: &str, is_required: bool, schema: &Value) {
    let mark = if is_required { "" } else { "?" };
    let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    let _ = writeln!(page, "- `{name}{mark}` {}: {about}", type_name(schema));
}

fn type_name(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        return path.rsplit('/').next().unwrap_or(path).to_string();
    }
    let empty = Vec::new();
    for key in ["anyOf", "allOf", "oneOf"] {
        if let Some(choices) = schema[key].as_array() {
            let names: Vec<String> = choices.iter().filter(|c| c["type"] != "null").map(type_name).collect();
            return names.join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", type_name(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).filter(|n| *n != "null").collect();
            match names.as_slice() {
                ["array"] => format!("list of {}", type_name(&schema["items"])),
                names => names.join(" or "),
            }
        }
        _ => {
            let values = schema["enum"].as_array().unwrap_or(&empty);
            if values.is_empty() { "any".into() } else { "string".into() }
        }
    }
}
