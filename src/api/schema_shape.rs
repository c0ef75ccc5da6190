//! Brings JSON Schemas into the form that generators of typed clients read: each variant of a union has a name, a
//! reference has no siblings that some tools drop, choices of texts are enumerations, and an optional field is not null.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use types::event::DELTA_KINDS;

/// The largest integer that a JavaScript number holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// The union of all events. Its variants are named for their kinds alone.
const EVENTS: &str = "Envelope";
const PREFIX: &str = "#/components/schemas/";

/// Shapes the schemas of a document's components.
pub(super) fn shape(schemas: &mut Map<String, Value>) {
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in &names {
        name_variants(name, schemas);
    }
    for (name, schema) in schemas.iter_mut() {
        shape_schema(schema);
        // The daemon refuses parameters that it does not know.
        if name.ends_with("Params") && schema.get("properties").is_some() {
            schema["additionalProperties"] = json!(false);
        }
    }
}

/// Removes the schemas to which nothing refers, for example structs whose fields became those of a variant.
pub(super) fn remove_unused(schemas: &mut Map<String, Value>, users: &[&Value]) {
    let mut used = BTreeSet::new();
    let mut open: Vec<String> = users.iter().flat_map(|user| references(user)).collect();
    while let Some(name) = open.pop() {
        if let Some(schema) = schemas.get(&name).filter(|_| !used.contains(&name)) {
            open.extend(references(schema));
            used.insert(name);
        }
    }
    schemas.retain(|name, _| used.contains(name));
}

/// The names of the components that a value refers to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().flat_map(references).collect(),
        Value::Object(members) => {
            let target =
                members.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix(PREFIX));
            target.map(str::to_owned).into_iter().chain(members.values().flat_map(references)).collect()
        }
        _ => Vec::new(),
    }
}

/// The component that a schema refers to.
pub(super) fn component<'s>(schema: &Value, schemas: &'s Map<String, Value>) -> Option<&'s Value> {
    schemas.get(schema["$ref"].as_str()?.strip_prefix(PREFIX)?)
}

/// `session.created` and `not_found` as names of types.
pub(super) fn pascal_case(name: &str) -> String {
    let words = name.split(['.', '_', '-', ' ']);
    words
        .flat_map(|word| {
            let mut chars = word.chars();
            chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>())
        })
        .collect()
}

/// Moves the object variants of a union to components of their own. Fields that stand next to the union become fields
/// of each variant.
fn name_variants(owner: &str, schemas: &mut Map<String, Value>) {
    let Some(union) = schemas.get(owner) else { return };
    let Some(key) = ["oneOf", "anyOf"].into_iter().find(|key| union[*key].is_array()) else { return };
    let Some(variants) = union[key].as_array().cloned() else { return };
    let common = union.clone();
    let tags: Vec<Option<(String, String)>> = variants.iter().map(tag).collect();
    let tag_name = tags[0]
        .as_ref()
        .map(|(name, _)| name.clone())
        .filter(|name| tags.iter().all(|tag| tag.as_ref().is_some_and(|(other, _)| other == name)));
    let (mut references, mut mapping) = (Vec::new(), Map::new());
    for (variant, tag) in variants.iter().zip(tags) {
        if variant.get("properties").is_none() {
            references.push(variant.clone());
            continue;
        }
        let suffix = match &tag {
            Some((_, value)) => pascal_case(value),
            None => variant["properties"]
                .as_object()
                .and_then(|fields| fields.keys().next())
                .map_or_else(String::new, |first| pascal_case(first)),
        };
        let name = if owner == EVENTS { format!("{suffix}Event") } else { format!("{owner}{suffix}") };
        let mut named = merge(&common, variant, schemas);
        if owner == EVENTS && tag.as_ref().is_some_and(|(_, kind)| DELTA_KINDS.contains(&kind.as_str())) {
            named["x-pruned"] = json!(true);
        }
        named["x-variant-of"] = json!(owner);
        let reference = format!("{PREFIX}{name}");
        assert!(
            schemas.insert(name, named).is_none(),
            "a variant of {owner} has the name of another type: {suffix}"
        );
        if let Some((_, value)) = tag {
            mapping.insert(value, json!(reference));
        }
        references.push(json!({"$ref": reference}));
    }
    let mut shaped = Map::new();
    if let Some(about) = common.get("description") {
        shaped.insert("description".into(), about.clone());
    }
    shaped.insert(key.into(), Value::Array(references));
    if let Some(property) = tag_name {
        shaped.insert("discriminator".into(), json!({"propertyName": property, "mapping": mapping}));
    }
    schemas.insert(owner.to_owned(), Value::Object(shaped));
}

/// The field with a constant text, which tells a variant from the others.
fn tag(variant: &Value) -> Option<(String, String)> {
    let fields = variant["properties"].as_object()?;
    fields.iter().find_map(|(name, field)| Some((name.clone(), field["const"].as_str()?.to_owned())))
}

/// A variant with the fields next to its union, and those of the struct that it wraps.
fn merge(common: &Value, variant: &Value, schemas: &Map<String, Value>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let parts = [Some(variant), component(variant, schemas), Some(common)];
    for part in parts.into_iter().flatten() {
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            properties.entry(name.clone()).or_insert_with(|| field.clone());
        }
        for name in part["required"].as_array().into_iter().flatten() {
            if !required.contains(name) {
                required.push(name.clone());
            }
        }
    }
    let mut merged = json!({"type": "object", "properties": properties, "required": required});
    if let Some(about) = variant.get("description") {
        merged["description"] = about.clone();
    }
    merged
}

fn shape_schema(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(shape_schema),
        Value::Object(members) => {
            let required = members.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                let is_required =
                    |name: &str| required.as_array().is_some_and(|all| all.contains(&json!(name)));
                for (_, field) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
                    remove_null(field);
                }
            }
            for (key, inner) in members.iter_mut() {
                if !matches!(key.as_str(), "enum" | "required" | "discriminator" | "default") {
                    shape_schema(inner);
                }
            }
            wrap_reference(members);
            list_choices(members);
            if members.get("format").is_some_and(|it| it == "uint64" || it == "int64") {
                members.entry("maximum").or_insert(json!(MAX_SAFE_INTEGER));
            }
        }
        _ => {}
    }
}

/// Takes `null` from an optional field: the daemon leaves the field out.
fn remove_null(field: &mut Value) {
    let Some(members) = field.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = members.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [kind] = kinds.as_slice() {
            members["type"] = kind.clone();
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            members.remove("anyOf");
            for (key, value) in only {
                members.entry(key).or_insert(value);
            }
        }
    }
}

/// `$ref` with siblings becomes `allOf` with one reference, because some tools drop the siblings.
fn wrap_reference(members: &mut Map<String, Value>) {
    if members.len() > 1
        && let Some(target) = members.remove("$ref")
    {
        members.insert("allOf".into(), json!([{"$ref": target}]));
    }
}

/// A choice of constant texts becomes an enumeration. The descriptions stay in the same order.
fn list_choices(members: &mut Map<String, Value>) {
    let Some(choices) = members.get("oneOf").and_then(Value::as_array) else { return };
    let is_text = |choice: &Value| choice["const"].is_string() && choice.get("properties").is_none();
    if choices.is_empty() || !choices.iter().all(is_text) {
        return;
    }
    let values: Vec<Value> = choices.iter().map(|choice| choice["const"].clone()).collect();
    let about: Vec<Value> = choices
        .iter()
        .map(|choice| choice.get("description").cloned().unwrap_or_else(|| json!("")))
        .collect();
    members.remove("oneOf");
    members.insert("type".into(), json!("string"));
    members.insert("enum".into(), Value::Array(values));
    members.insert("x-enum-descriptions".into(), Value::Array(about));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_get_names_and_the_fields_next_to_their_union() {
        let mut schemas: Map<String, Value> = serde_json::from_value(json!({
            "Inner": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "Choice": {
                "description": "One of two.",
                "properties": {"seq": {"type": "integer", "format": "uint64"}},
                "required": ["seq"],
                "oneOf": [
                    {"$ref": "#/components/schemas/Inner", "description": "First.",
                     "properties": {"type": {"const": "x.first", "type": "string"}}, "required": ["type"]},
                    {"properties": {"type": {"const": "second", "type": "string"}, "b": {"type": ["string", "null"]}},
                     "required": ["type"]},
                ],
            },
            "Mode": {"oneOf": [{"const": "a", "description": "A.", "type": "string"}, {"const": "b", "type": "string"}]},
            "SetParams": {"type": "object", "properties": {
                "mode": {"anyOf": [{"$ref": "#/components/schemas/Mode"}, {"type": "null"}], "description": "The mode."},
            }},
        }))
        .expect("schemas");
        shape(&mut schemas);
        let choice = &schemas["Choice"];
        assert_eq!(choice["discriminator"]["mapping"]["x.first"], "#/components/schemas/ChoiceXFirst");
        assert_eq!(choice["oneOf"][1]["$ref"], "#/components/schemas/ChoiceSecond");
        assert_eq!(schemas["ChoiceXFirst"]["required"], json!(["type", "a", "seq"]));
        assert_eq!(schemas["ChoiceXFirst"]["properties"]["seq"]["maximum"], MAX_SAFE_INTEGER);
        assert_eq!(schemas["ChoiceSecond"]["properties"]["b"]["type"], "string");
        assert_eq!(schemas["Mode"]["enum"], json!(["a", "b"]));
        assert_eq!(schemas["Mode"]["x-enum-descriptions"], json!(["A.", ""]));
        let params = &schemas["SetParams"];
        assert_eq!(params["additionalProperties"], false);
        assert_eq!(params["properties"]["mode"]["allOf"], json!([{"$ref": "#/components/schemas/Mode"}]));
        assert_eq!(params["properties"]["mode"]["description"], "The mode.");
    }
}
