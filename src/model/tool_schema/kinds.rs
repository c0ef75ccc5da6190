//! The types of a schema, and what it requires.

use serde_json::{Map, Value};

/// The types of JSON Schema, with names of other languages for them.
const TYPES: [(&str, &[&str]); 7] = [
    ("string", &["str", "text"]),
    ("integer", &["int", "long"]),
    ("number", &["float", "double", "decimal"]),
    ("boolean", &["bool"]),
    ("object", &["dict", "map", "struct"]),
    ("array", &["list", "tuple", "set"]),
    ("null", &["none", "nil"]),
];

/// Whether a schema can describe an object.
pub(super) fn is_object_schema(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        None | Some(Value::Null) => true,
        Some(Value::String(kind)) => known_type(kind) == Some("object"),
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    }
}

/// The type that a name means.
pub(super) fn known_type(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let is_same =
        |(known, others): &&(&'static str, &[&str])| *known == lower || others.contains(&lower.as_str());
    TYPES.iter().find(is_same).map(|(known, _)| *known)
}

/// The required properties.
pub(super) fn required_names(schema: &Map<String, Value>) -> Vec<String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    required.filter_map(Value::as_str).map(str::to_owned).collect()
}
