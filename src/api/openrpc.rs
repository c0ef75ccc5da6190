//! Prints the OpenRPC document (<https://spec.open-rpc.org>, version 1.3) from the table of methods, in a form from
//! which typed clients are generated without loss.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::examples;
use super::fault::Code;
use super::methods::{METHODS, Method, SCHEMAS};
use super::params::{ClientRole, SubscriptionId};
use super::schema_shape::{component, remove_unused, shape};
use super::{DAEMON_EVENT, KNOWLEDGE_EVENT, PERMISSION_EVENT, PROTOCOL_VERSION, SESSION_EVENT};
use types::daemon_event::DaemonEvent;
use types::event::{EVENT_VERSION, Envelope};
use types::knowledge::KnowledgeEvent;

const ABOUT: &str = "Requests and replies are JSON-RPC 2.0 objects, one a line or with LSP framing, on the daemon's Unix \
     socket. Unknown parameters are refused. Readers ignore fields, events and values that they do not know: they may \
     be added within a protocol version, and nothing is removed or changes its meaning. A field that is not required is \
     left out when it has no value; in parameters, null means the same. Integers are at most 2^53-1. A value of an event \
     that exceeds 64 KiB is cut and listed in `truncated_fields`; `session.blob` returns the whole. Events with \
     `x-pruned` leave the journal when their item completes, so a later replay lacks them; all others are permanent.";

/// The document.
#[must_use]
pub fn openrpc() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let pairs: Vec<(Value, Value)> =
        SCHEMAS.iter().map(|row| ((row.params)(&mut generator), (row.reply)(&mut generator))).collect();
    let subscription = generator.subschema_for::<SubscriptionId>().to_value();
    let notifications: Vec<(&str, Value)> = vec![
        (SESSION_EVENT, generator.subschema_for::<Envelope>().to_value()),
        (PERMISSION_EVENT, generator.subschema_for::<Envelope>().to_value()),
        (DAEMON_EVENT, generator.subschema_for::<DaemonEvent>().to_value()),
        (KNOWLEDGE_EVENT, generator.subschema_for::<KnowledgeEvent>().to_value()),
    ];
    let mut schemas: Map<String, Value> = generator.take_definitions(true).into_iter().collect();
    for (name, event) in &notifications {
        let schema = json!({
            "type": "object",
            "description": format!("The parameters of the notification `{name}`."),
            "properties": {"subscription": subscription, "result": event},
            "required": ["subscription", "result"],
        });
        schemas.insert(notification_type(name), schema);
    }
    shape(&mut schemas);
    let methods: Vec<Value> = METHODS
        .iter()
        .zip(pairs)
        .map(|(row, (params, reply))| method(row, &params, &reply, &schemas))
        .collect();
    let errors: Map<String, Value> = Code::ALL.iter().map(|code| (error_name(*code), error(*code))).collect();
    let notifications: Vec<Value> = notifications
        .iter()
        .map(|(name, _)| {
            let params = format!("#/components/schemas/{}", notification_type(name));
            json!({"name": name, "params": {"$ref": params}})
        })
        .collect();
    remove_unused(&mut schemas, &[&json!(methods), &json!(notifications)]);
    schemas.insert("ErrorData".into(), error_data());
    json!({
        "openrpc": "1.3.2",
        "info": {
            "title": "agentd",
            "version": PROTOCOL_VERSION.to_string(),
            "description": ABOUT,
            "x-event-version": EVENT_VERSION,
        },
        "methods": methods,
        "x-notifications": notifications,
        "components": {"schemas": schemas, "errors": errors},
    })
}

fn method(row: &Method, params: &Value, reply: &Value, schemas: &Map<String, Value>) -> Value {
    let errors: Vec<Value> = row
        .traits
        .errors
        .iter()
        .map(|code| json!({"$ref": format!("#/components/errors/{}", error_name(*code))}))
        .collect();
    let roles: Vec<&str> =
        ClientRole::ALL.into_iter().filter(|role| row.is_for(*role)).map(ClientRole::name).collect();
    let noun = row.name.split('.').next().unwrap_or(row.name);
    let mut shown = json!({
        "name": row.name,
        "summary": row.summary,
        "tags": [{"name": noun}],
        "paramStructure": "either",
        "params": positions(row, params, schemas),
        "result": {"name": "result", "schema": reply},
        "errors": errors,
        "examples": examples::pairings(row.name),
        "x-roles": roles,
        "x-idempotent": row.takes_idempotency_key(),
    });
    if params.get("$ref").is_some() && !row.param_names().is_empty() {
        shown["x-params"] = params.clone();
    }
    if let [name] = row.traits.notifications {
        shown["x-notification"] = json!(name);
    }
    if let Some(name) = row.traits.alias_of {
        shown["x-alias-of"] = json!(name);
    }
    shown
}

/// The parameters by position, each with its schema.
fn positions(row: &Method, params: &Value, schemas: &Map<String, Value>) -> Vec<Value> {
    let all = component(params, schemas).unwrap_or(params);
    let required = all["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let param = |name: &&str| json!({"name": name, "required": required.contains(&json!(name)), "schema": all["properties"][*name]});
    row.param_names().iter().map(param).collect()
}

/// The type of a notification's parameters: `session.event` → `SessionEventNotification`.
fn notification_type(name: &str) -> String {
    super::schema_shape::pascal_case(name) + "Notification"
}

fn error_name(code: Code) -> String {
    super::schema_shape::pascal_case(code.kind())
}

fn error(code: Code) -> Value {
    json!({
        "code": code.number(),
        "message": code.meaning(),
        "data": {"kind": code.kind(), "retryable": code.is_retryable()},
    })
}

/// The schema of an error's `data`.
fn error_data() -> Value {
    let kinds: Vec<&str> = Code::ALL.iter().map(|code| code.kind()).collect();
    json!({
        "type": "object",
        "description": "`data` of an error. Match on `kind`: several kinds share a number. Some errors have further members.",
        "properties": {
            "kind": {"type": "string", "enum": kinds, "description": "The stable code."},
            "retryable": {"type": "boolean", "description": "Whether the same call may succeed later."},
            "path": {"type": "string", "description": "The parameter that is wrong, for example `answers[0].decision`."},
        },
        "required": ["kind", "retryable"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with each object of the document and its path.
    fn walk(value: &Value, path: &str, check: &mut dyn FnMut(&str, &Map<String, Value>)) {
        match value {
            Value::Object(members) => {
                check(path, members);
                members.iter().for_each(|(name, inner)| walk(inner, &format!("{path}/{name}"), check));
            }
            Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(index, inner)| walk(inner, &format!("{path}/{index}"), check));
            }
            _ => {}
        }
    }

    #[test]
    fn document_can_be_read_by_generators_without_loss() {
        let document = openrpc();
        let mut referenced = std::collections::BTreeSet::new();
        walk(&document, "", &mut |path, members| {
            if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                assert_eq!(members.len(), 1, "{path}: a reference with siblings");
                let pointer = target.strip_prefix('#').expect("a pointer");
                assert!(document.pointer(pointer).is_some(), "{path}: {target} does not exist");
                referenced.insert(target.rsplit('/').next().unwrap_or(target).to_owned());
            }
            if members.get("format").is_some_and(|format| format == "uint64") {
                assert!(members["maximum"].as_u64() <= Some(1 << 53), "{path}: not exact in JavaScript");
            }
            for key in ["oneOf", "anyOf"] {
                let inline = members.get(key).and_then(Value::as_array).into_iter().flatten();
                for variant in inline {
                    assert!(variant.get("properties").is_none(), "{path}: a variant without a name");
                    assert!(variant.get("const").is_none(), "{path}: an enumeration in {key}");
                }
            }
        });
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for (name, schema) in schemas {
            assert!(referenced.contains(name) || name == "ErrorData", "{name} is not used");
            let is_id = schema["pattern"].is_string();
            assert!(is_id || schema["description"].is_string(), "{name} has no description");
        }
        let events = &schemas["Envelope"];
        let kinds = events["oneOf"].as_array().expect("variants").len();
        assert!(kinds > 70 && events["discriminator"]["propertyName"] == "type");
        assert_eq!(schemas["MessageTextDeltaEvent"]["x-pruned"], true);
        let methods = document["methods"].as_array().expect("methods");
        let named = |name: &str| methods.iter().find(|method| method["name"] == name).expect("a method");
        assert_eq!(named("session.subscribe")["x-notification"], "session.event");
        assert_eq!(named("permission.respond")["x-alias-of"], "session.approve");
        assert_eq!(named("session.submit")["x-params"]["$ref"], "#/components/schemas/SubmitParams");
        assert_eq!(document["x-notifications"].as_array().map(Vec::len), Some(4));
    }
}
