//! Prints the types of typed clients from the OpenRPC document: `proto-docs/clients/typescript/src/types.ts` and
//! `proto-docs/clients/python/agentd_client/types.py`.

mod python;
mod typescript;

pub use python::python_types;
pub use typescript::typescript_types;

use serde_json::{Map, Value};

/// What a schema is, as both languages print it.
enum Shape<'s> {
    /// Another type of the document.
    Named(&'s str),
    /// One of these texts.
    Literals(Vec<&'s str>),
    OneOf(Vec<&'s Value>),
    List(&'s Value),
    Struct(&'s Map<String, Value>),
    /// A map from texts to values of one type; without one, of any.
    Map(Option<&'s Value>),
    /// `string`, `integer`, `number`, `boolean` or `null`.
    Plain(&'s str),
    Any,
}

impl<'s> Shape<'s> {
    fn from_schema(schema: &'s Value) -> Self {
        if let Some(target) = schema["$ref"].as_str() {
            return Self::Named(target.rsplit('/').next().unwrap_or(target));
        }
        if let Some(values) = schema["enum"].as_array() {
            return Self::Literals(values.iter().filter_map(Value::as_str).collect());
        }
        if let Some(value) = schema["const"].as_str() {
            return Self::Literals(vec![value]);
        }
        if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice) {
            return Self::from_schema(only);
        }
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            return Self::OneOf(choices.iter().collect());
        }
        match (schema["type"].as_str(), schema["properties"].as_object()) {
            (Some("array"), _) => Self::List(&schema["items"]),
            (Some("object"), Some(fields)) => Self::Struct(fields),
            (Some("object"), None) => {
                let values = &schema["additionalProperties"];
                Self::Map(Some(values).filter(|values| values.is_object()))
            }
            (Some(kind), _) => Self::Plain(kind),
            (None, _) => Self::Any,
        }
    }
}

/// A method with the names of its types.
struct TypedMethod<'d> {
    name: &'d str,
    summary: &'d str,
    params: Option<&'d str>,
    reply: &'d Value,
    /// Whether a call without parameters is valid.
    is_callable_without: bool,
}

fn schemas(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document["components"]["schemas"].as_object().into_iter().flatten()
}

fn methods(document: &Value) -> impl Iterator<Item = TypedMethod<'_>> {
    document["methods"].as_array().into_iter().flatten().map(|method| TypedMethod {
        name: text(&method["name"]),
        summary: text(&method["summary"]),
        params: method["x-params"]["$ref"].as_str().and_then(|target| target.rsplit('/').next()),
        reply: &method["result"]["schema"],
        is_callable_without: method["params"]
            .as_array()
            .is_none_or(|params| params.iter().all(|param| param["required"] == false)),
    })
}

/// The names of the notifications with the types of their parameters.
fn notifications(document: &Value) -> impl Iterator<Item = (&str, &str)> {
    document["x-notifications"].as_array().into_iter().flatten().filter_map(|notification| {
        let target = notification["params"]["$ref"].as_str()?;
        Some((notification["name"].as_str()?, target.rsplit('/').next()?))
    })
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|all| all.iter().any(|field| field == name))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
