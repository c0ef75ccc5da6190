//! Generates the reference from the table of methods: the OpenRPC document and the pages of `proto-docs/`.

use std::fmt::Write as _;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::fault::Code;
use super::methods::{METHODS, Method, SCHEMAS};
use super::params::ClientRole;
use super::{DAEMON_EVENT, PERMISSION_EVENT, PROTOCOL_VERSION, SESSION_EVENT};
use types::daemon_event::DaemonEvent;
use types::event::Envelope;

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|s| s.definitions_path = "/components/schemas".into())
        .into_generator()
}

/// The OpenRPC document (<https://spec.open-rpc.org>, version 1.3).
#[must_use]
pub fn openrpc() -> Value {
    let mut generator = generator();
    let mut methods = Vec::new();
    for (method, schemas) in METHODS.iter().zip(SCHEMAS) {
        let schema = (schemas.params)(&mut generator);
        let errors: Vec<Value> = method
            .traits
            .errors
            .iter()
            .map(|code| json!({"code": code.number(), "message": code.meaning(), "data": {"kind": code.kind()}}))
            .collect();
        methods.push(json!({
            "name": method.name,
            "summary": method.summary,
            "paramStructure": "either",
            "params": params(method, &schema, &generator),
            "result": {"name": "result", "schema": (schemas.reply)(&mut generator)},
            "errors": errors,
        }));
    }
    let event = generator.subschema_for::<Envelope>().to_value();
    let daemon_event = generator.subschema_for::<DaemonEvent>().to_value();
    let schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    json!({
        "openrpc": "1.3.2",
        "info": {"title": "agentd", "version": PROTOCOL_VERSION.to_string()},
        "methods": methods,
        "x-notifications": [
            {"name": SESSION_EVENT, "params": {"subscription": {"type": "string"}, "result": event}},
            {"name": PERMISSION_EVENT, "params": {"subscription": {"type": "string"}, "result": event}},
            {"name": DAEMON_EVENT, "params": {"subscription": {"type": "string"}, "result": daemon_event}},
        ],
        "components": {"schemas": schemas},
    })
}

/// The parameters of a method, each with its schema, in their declared order.
fn params(method: &Method, schema: &Value, generator: &SchemaGenerator) -> Vec<Value> {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let all = generator.definitions().get(name).unwrap_or(schema);
    let required = all["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let param = |name: &&str| json!({"name": name, "required": required.contains(&json!(name)), "schema": all["properties"][*name]});
    method.param_names().iter().map(param).collect()
}

/// The text of `proto-docs/methods.md`.
#[must_use]
pub fn methods_page() -> String {
    let mut page = String::from(
        "# Methods\n\nPrinted from the code. Parameters are given by name, or by position in the order of this page; an \
         unknown one is refused. The full schemas are in `openrpc.json`.\n",
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
            let about = reply["description"].as_str().map(|about| format!(": {about}")).unwrap_or_default();
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
        }
    }
    page
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
    let envelope = resolve(&document, &document["x-notifications"][0]["params"]["result"]);
    let empty = Vec::new();
    for variant in envelope["oneOf"].as_array().unwrap_or(&empty) {
        let kind = variant["properties"]["type"]["const"].as_str().unwrap_or_default();
        let about = variant["description"].as_str().unwrap_or_default();
        let _ = write!(page, "\n## {kind}\n{about}\n\n");
        // The schema of a variant that wraps a struct refers to the struct. Other variants list their fields.
        let mut merged = variant.clone();
        if variant.get("$ref").is_some() {
            let inner = resolve(&document, &json!({"$ref": variant["$ref"]})).clone();
            merged = inner;
        }
        if let Some(properties) = merged["properties"].as_object_mut() {
            properties.remove("type");
        }
        fields(&mut page, "Fields", &merged);
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
    let is_listed = |name: &str| !name.ends_with("Params") && !name.ends_with("Reply") && name != "Envelope";
    for (name, schema) in types.iter().filter(|(name, _)| is_listed(name)) {
        let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        let _ = write!(page, "\n## {name}\n{about}\n\n");
        if let Some(pattern) = schema["pattern"].as_str() {
            let _ = writeln!(page, "A string like `{pattern}`.\n");
        }
        fields(&mut page, "Fields", schema);
        let empty = Vec::new();
        for choice in schema["oneOf"].as_array().unwrap_or(&empty) {
            let about = choice["description"].as_str().unwrap_or_default().replace('\n', " ");
            match choice["const"].as_str() {
                Some(value) => {
                    let _ = writeln!(page, "- `{value}`: {about}");
                }
                None => write_variant(&mut page, choice, &about),
            }
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
