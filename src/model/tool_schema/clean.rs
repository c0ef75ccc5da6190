//! Makes a schema and all schemas in it valid for providers, and gives properties names that providers accept.

use serde_json::{Map, Number, Value, json};
use sha2::{Digest as _, Sha256};

use super::kinds::{known_type, required_names};
use types::hex;

/// Maximum length of a property's name.
const MAX_NAME_CHARS: usize = 64;
/// Characters of a changed name that come from the name itself.
const KEPT_NAME_CHARS: usize = 48;
/// Characters of the digest at the end of a changed name.
const DIGEST_CHARS: usize = 6;
/// Keys whose values are data.
pub(super) const DATA_KEYS: [&str; 5] = ["default", "const", "enum", "examples", "example"];
/// Keys that hold one schema.
pub(super) const SCHEMA_KEYS: [&str; 11] = [
    "additionalProperties",
    "additionalItems",
    "items",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keys that hold a list of schemas.
pub(super) const LIST_KEYS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keys that hold schemas by name.
pub(super) const MAP_KEYS: [&str; 5] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];
/// Keys that hold a text.
const TEXT_KEYS: [&str; 6] = ["description", "title", "format", "pattern", "$ref", "$comment"];

/// Keys that hold a number.
const NUMBER_KEYS: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Makes a schema and all schemas in it valid for providers.
pub(super) fn clean(schema: &mut Value, changed: &mut Vec<(String, String)>) {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(false) => return,
        // Anything is valid.
        _ => {
            *schema = json!({});
            return;
        }
    };
    fields.retain(|key, value| !value.is_null() || DATA_KEYS.contains(&key.as_str()));
    clean_types(fields);
    clean_values(fields);
    clean_tuple(fields);
    for key in SCHEMA_KEYS {
        match fields.get_mut(key) {
            // A switch says whether other values are accepted.
            Some(Value::Bool(_)) if key != "items" => {}
            Some(inner) => clean(inner, changed),
            None => {}
        }
    }
    for key in LIST_KEYS {
        match fields.get_mut(key) {
            Some(Value::Array(list)) if !list.is_empty() => {
                list.iter_mut().for_each(|inner| clean(inner, changed))
            }
            Some(_) => _ = fields.remove(key),
            None => {}
        }
    }
    for key in MAP_KEYS {
        match fields.get_mut(key) {
            Some(Value::Object(map)) => {
                if key == "properties" {
                    rename_properties(map, changed);
                }
                map.values_mut().for_each(|inner| clean(inner, changed));
            }
            Some(_) => _ = fields.remove(key),
            None => {}
        }
    }
    clean_required(fields);
    if let Some(Value::String(target)) = fields.get_mut("$ref") {
        *target = renamed_reference(target);
    }
}

/// The type, in the names of JSON Schema. A list needs `items`.
fn clean_types(fields: &mut Map<String, Value>) {
    let kind = fields.remove("type");
    let kind = match kind {
        Some(Value::String(kind)) => known_type(&kind).map(Value::from),
        Some(Value::Array(kinds)) => {
            let mut known: Vec<&str> = Vec::new();
            for kind in kinds.iter().filter_map(Value::as_str).filter_map(known_type) {
                if !known.contains(&kind) {
                    known.push(kind);
                }
            }
            (!known.is_empty()).then(|| known.into())
        }
        _ => None,
    };
    let kind =
        kind.or_else(|| fields.get("properties").is_some_and(Value::is_object).then(|| "object".into()));
    if let Some(kind) = kind {
        let is_list = kind == "array" || kind.as_array().is_some_and(|kinds| kinds.contains(&"array".into()));
        fields.insert("type".into(), kind);
        if is_list {
            fields.entry("items").or_insert_with(|| json!({}));
        }
    }
}

/// Removes values of a type that the draft does not have, and writes those of older drafts in the newest form.
fn clean_values(fields: &mut Map<String, Value>) {
    for (key, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(is_exclusive)) = fields.get(key) {
            let is_exclusive = *is_exclusive;
            fields.remove(key);
            if is_exclusive && let Some(value) = fields.remove(limit) {
                fields.insert(key.into(), value);
            }
        }
    }
    for key in TEXT_KEYS {
        if fields.get(key).is_some_and(|value| !value.is_string()) {
            fields.remove(key);
        }
    }
    for key in NUMBER_KEYS {
        let Some(value) = fields.get(key).filter(|value| !value.is_number()) else { continue };
        match value.as_str().and_then(|text| serde_json::from_str::<Number>(text).ok()) {
            Some(number) => _ = fields.insert(key.into(), number.into()),
            None => _ = fields.remove(key),
        }
    }
    if fields.get("uniqueItems").is_some_and(|value| !value.is_boolean()) {
        fields.remove("uniqueItems");
    }
    if fields.get("enum").is_some_and(|values| values.as_array().is_none_or(Vec::is_empty)) {
        fields.remove("enum");
    }
    if let Some(Value::Bool(_)) = fields.get("required") {
        fields.remove("required");
    }
    fields.remove("dependencies");
}

/// Older drafts have a list of schemas as `items`.
fn clean_tuple(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(_)) = fields.get("items")
        && let Some(list) = fields.remove("items")
    {
        let rest = fields.remove("additionalItems").unwrap_or_else(|| json!({}));
        fields.insert("items".into(), rest);
        fields.insert("prefixItems".into(), list);
    }
}

fn clean_required(fields: &mut Map<String, Value>) {
    if fields.contains_key("required") {
        let mut required: Vec<String> = Vec::new();
        for name in required_names(fields) {
            let name = changed_name(&name).unwrap_or(name);
            if !required.contains(&name) {
                required.push(name);
            }
        }
        fields.insert("required".into(), required.into());
    }
    if let Some(Value::Object(dependent)) = fields.remove("dependentRequired") {
        let renamed = |name: String| changed_name(&name).unwrap_or(name);
        let pair = |(name, others): (String, Value)| {
            let others: Vec<String> = serde_json::from_value(others).unwrap_or_default();
            (renamed(name), Value::from(others.into_iter().map(renamed).collect::<Vec<_>>()))
        };
        fields.insert("dependentRequired".into(), Value::Object(dependent.into_iter().map(pair).collect()));
    }
}

fn rename_properties(map: &mut Map<String, Value>, changed: &mut Vec<(String, String)>) {
    let names: Vec<String> = map.keys().filter(|name| changed_name(name).is_some()).cloned().collect();
    for name in names {
        if let (Some(value), Some(new)) = (map.remove(&name), changed_name(&name)) {
            map.insert(new.clone(), value);
            changed.push((new, name));
        }
    }
}

/// Another name for a property; `None` if providers accept its name. The digest keeps names apart.
pub(super) fn changed_name(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if !name.is_empty() && name.len() <= MAX_NAME_CHARS && name.chars().all(is_plain) {
        return None;
    }
    let plain: String =
        name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(KEPT_NAME_CHARS).collect();
    let plain = Some(plain.trim_matches('_')).filter(|plain| !plain.is_empty()).unwrap_or("property");
    let digest = hex::encode(&Sha256::digest(name));
    Some(format!("{plain}_{}", &digest[..DIGEST_CHARS]))
}

/// A reference to a property by its changed name.
fn renamed_reference(target: &str) -> String {
    let mut is_name = false;
    let segments = target.split('/').map(|segment| {
        let plain = segment.replace("~1", "/").replace("~0", "~");
        let renamed = if is_name { changed_name(&plain) } else { None };
        is_name = segment == "properties";
        renamed.unwrap_or_else(|| segment.to_owned())
    });
    segments.collect::<Vec<_>>().join("/")
}
