//! Merges the references and alternatives at the top of a schema into one object.

use serde_json::{Map, Value, json};

use super::kinds::{is_object_schema, required_names};

/// Maximum number of alternatives and references at the top of a schema.
const MAX_BRANCHES: usize = 200;

/// Replaces references and alternatives at the top of a schema by the properties of all of them. What is required then is
/// what each alternative requires; the server checks the rest.
pub(super) fn merge_branches(
    schema: &mut Map<String, Value>,
    root: &Value,
    branches: &mut usize,
) -> Result<(), String> {
    *branches += 1;
    if *branches > MAX_BRANCHES {
        return Err(format!("its schema has more than {MAX_BRANCHES} alternatives and references"));
    }
    if let Some(target) = schema.remove("$ref") {
        let target = target.as_str().and_then(|target| target.strip_prefix('#'));
        let Some(Value::Object(mut target)) = target.and_then(|pointer| root.pointer(pointer)).cloned()
        else {
            return Err("its schema refers to another one that is not in it".into());
        };
        merge_branches(&mut target, root, branches)?;
        for (key, value) in target {
            schema.entry(key).or_insert(value);
        }
    }
    if let Some(Value::Array(parts)) = schema.remove("allOf") {
        for part in parts {
            let Value::Object(mut part) = part else { continue };
            merge_branches(&mut part, root, branches)?;
            if !is_object_schema(&part) {
                return Err("its schema combines an object with something else".into());
            }
            let required = required_names(&part);
            add_properties(schema, part, "allOf");
            require(schema, required);
        }
        schema.remove("additionalProperties");
    }
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(alternatives)) = schema.remove(key) else { continue };
        let mut required: Vec<Vec<String>> = Vec::new();
        for alternative in &alternatives {
            let Value::Object(mut alternative) = alternative.clone() else { continue };
            merge_branches(&mut alternative, root, branches)?;
            if is_object_schema(&alternative) {
                required.push(required_names(&alternative));
                add_properties(schema, alternative, "anyOf");
            }
        }
        schema.remove("additionalProperties");
        let Some((first, others)) = required.split_first() else {
            if alternatives.is_empty() {
                continue;
            }
            return Err("no alternative of its schema is an object".into());
        };
        let common = first.iter().filter(|name| others.iter().all(|other| other.contains(name)));
        require(schema, common.cloned().collect());
        if others.iter().any(|other| other != first) {
            add_hint(schema, &required);
        }
    }
    Ok(())
}

/// Adds the properties of another schema. A property of both has the schemas of both below `combination`.
fn add_properties(schema: &mut Map<String, Value>, mut other: Map<String, Value>, combination: &str) {
    for key in ["$defs", "definitions", "properties"] {
        let Some(Value::Object(more)) = other.remove(key) else { continue };
        let own = schema.entry(key).or_insert_with(|| json!({}));
        if !own.is_object() {
            *own = json!({});
        }
        let Some(own) = own.as_object_mut() else { continue };
        for (name, value) in more {
            match own.get_mut(&name) {
                None => _ = own.insert(name, value),
                Some(known) if *known == value || key != "properties" => {}
                Some(known) => match known.get_mut(combination).and_then(Value::as_array_mut) {
                    Some(list) if list.contains(&value) => {}
                    Some(list) => list.push(value),
                    None => *known = json!({ combination: [known.take(), value] }),
                },
            }
        }
    }
    for key in ["description", "title"] {
        if let Some(text) = other.remove(key) {
            schema.entry(key).or_insert(text);
        }
    }
    if schema.get("type").is_none_or(Value::is_null) {
        schema.insert("type".into(), "object".into());
    }
}

fn require(schema: &mut Map<String, Value>, more: Vec<String>) {
    let mut required = required_names(schema);
    for name in more {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
}

/// Tells the model which properties belong together, as the schema no longer does.
fn add_hint(schema: &mut Map<String, Value>, required: &[Vec<String>]) {
    const MAX_SETS: usize = 10;
    let set = |names: &Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let sets: Vec<String> = required.iter().take(MAX_SETS).map(set).collect();
    let known = schema.get("description").and_then(Value::as_str).map(|text| format!("{text} "));
    let hint = format!(
        "{}Required is one of these sets of properties: {}.",
        known.unwrap_or_default(),
        sets.join("; ")
    );
    schema.insert("description".into(), hint.into());
}
