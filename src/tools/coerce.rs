//! Fits a model's arguments to the schema of its tool, and describes the mistakes that stay.
//!
//! Models sometimes write a value as a text that holds it (`"[…]"` for a list, `"5"` for a number), or one item where
//! a list is wanted. Only a value of the wrong type is changed, and only if the new one has a wanted type; a text
//! stays a text where a text is wanted.

use serde_json::{Map, Value};

/// Maximum levels of lists and objects that are compared with a schema.
const MAX_DEPTH: usize = 32;
/// How often a value may be encoded as a text.
const MAX_ENCODINGS: usize = 3;
/// Maximum characters of a wrong value in a message.
const MAX_SHOWN_CHARS: usize = 40;

/// A value that a schema does not permit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// Path of the value, for example `todos[0].status`; empty for all arguments.
    pub path: String,
    /// The wanted value and the actual one.
    pub problem: String,
}

/// The value with every part that has another form than the schema wants converted, where that is possible.
pub(super) fn coerce(value: Value, schema: &Value) -> Value {
    coerce_within(value, schema, MAX_DEPTH)
}

fn coerce_within(value: Value, schema: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return value };
    let value = convert(value, schema, depth);
    match value {
        Value::Object(fields) => {
            let fit = |(name, field): (String, Value)| {
                let field = match schema["properties"].get(&name) {
                    Some(schema) => coerce_within(field, schema, depth),
                    None => field,
                };
                (name, field)
            };
            Value::Object(fields.into_iter().map(fit).collect::<Map<_, _>>())
        }
        Value::Array(items) if schema["items"].is_object() => {
            items.into_iter().map(|item| coerce_within(item, &schema["items"], depth)).collect()
        }
        other => other,
    }
}

/// The value in a form of a wanted type.
fn convert(value: Value, schema: &Value, depth: usize) -> Value {
    if fits(&value, schema) {
        return value;
    }
    if let Value::String(text) = &value
        && let Some(inner) = read_text(text, schema)
    {
        return inner;
    }
    // Some models omit the arguments of a tool that needs none.
    let is_absent = value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty());
    if is_absent && wants(schema, "object") && schema["required"].as_array().is_none_or(Vec::is_empty) {
        return Value::Object(Map::new());
    }
    if !is_absent && wants(schema, "array") {
        let item = coerce_within(value.clone(), &schema["items"], depth);
        if fits(&item, &schema["items"]) {
            return Value::Array(vec![item]);
        }
    }
    value
}

/// The value that a text holds, if it has a wanted type.
fn read_text(text: &str, schema: &Value) -> Option<Value> {
    let mut inner = match text.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        text => serde_json::from_str(text).ok()?,
    };
    for _ in 0..MAX_ENCODINGS {
        if fits(&inner, schema) {
            return Some(inner);
        }
        inner = serde_json::from_str(inner.as_str()?.trim()).ok()?;
    }
    None
}

/// Whether a schema names this type.
fn wants(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::String(wanted) => wanted == kind,
        Value::Array(wanted) => wanted.iter().any(|wanted| wanted == kind),
        _ => false,
    }
}

/// Whether a value has a type that the schema names. A schema without types permits all.
fn fits(value: &Value, schema: &Value) -> bool {
    if !schema["type"].is_string() && !schema["type"].is_array() {
        return true;
    }
    let kinds: &[&str] = match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            &["integer", "number"]
        }
        Value::Number(_) => &["number"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    };
    kinds.iter().any(|kind| wants(schema, kind))
}

/// The first part of the arguments with a wrong type or outside the range. `null` counts as absent.
pub(super) fn find_mistake(value: &Value, schema: &Value) -> Option<Mistake> {
    find_within(value, schema, String::new(), MAX_DEPTH)
}

fn find_within(value: &Value, schema: &Value, path: String, depth: usize) -> Option<Mistake> {
    let depth = depth.checked_sub(1)?;
    let minimum = schema["minimum"].as_f64();
    let is_low = value.as_f64().is_some_and(|number| minimum.is_some_and(|minimum| number < minimum));
    let is_listed = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    if !fits(value, schema) || is_low || !is_listed {
        let problem = format!("expected {}, got {}", wanted_text(schema), value_text(value));
        return Some(Mistake { path, problem });
    }
    match value {
        Value::Object(fields) => {
            fields.iter().filter(|(_, field)| !field.is_null()).find_map(|(name, field)| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                find_within(field, schema["properties"].get(name)?, path, depth)
            })
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| find_within(item, &schema["items"], format!("{path}[{at}]"), depth)),
        _ => None,
    }
}

/// The wanted value in words.
pub(super) fn wanted_text(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return format!("one of {}", values.join(", "));
    }
    let word = |kind: &str| match kind {
        "string" => "a text".to_owned(),
        "integer" => match schema["minimum"].as_u64() {
            Some(minimum) => format!("a whole number of at least {minimum}"),
            None => "a whole number".to_owned(),
        },
        "number" => "a number".to_owned(),
        "boolean" => "true or false".to_owned(),
        "null" => "null".to_owned(),
        "array" if schema["items"]["type"].is_string() => {
            format!("a list, each item {}", wanted_text(&schema["items"]))
        }
        "array" => "a list".to_owned(),
        "object" => {
            let names: Vec<String> = schema["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            if names.is_empty() {
                "an object".to_owned()
            } else {
                format!("an object with {}", names.join(", "))
            }
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(kind) => word(kind),
        Value::Array(kinds) => {
            let words: Vec<String> = kinds.iter().filter_map(Value::as_str).map(word).collect();
            words.join(" or ")
        }
        _ => "another value".into(),
    }
}

/// The actual value in words.
fn value_text(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "",
        Value::Number(_) => "the number ",
        Value::String(_) => "the text ",
        Value::Array(_) => "the list ",
        Value::Object(_) => "the object ",
    };
    let text = value.to_string();
    let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    format!("{kind}{shown}{rest}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "todos": {"type": "array", "items": {
                    "type": "object",
                    "properties": {"content": {"type": "string"}, "done": {"type": "boolean"}},
                }},
                "names": {"type": "array", "items": {"type": "string"}},
                "count": {"type": "integer", "minimum": 0},
                "part": {"type": "number"},
                "all": {"type": "boolean"},
                "text": {"type": "string"},
                "box": {"type": "object", "properties": {"n": {"type": "integer"}}},
                "either": {"type": ["string", "array"]},
                "any": {},
            },
            "required": ["text"],
        })
    }

    #[test]
    fn texts_become_values_of_wanted_type() {
        let todo = json!({"content": "a"});
        for (input, expected) in [
            (json!({"todos": "[{\"content\":\"a\"}]"}), json!({"todos": [todo]})),
            (json!({"todos": " [ {\"content\":\"a\"} ] \n"}), json!({"todos": [todo]})),
            (json!({"todos": "\"[{\\\"content\\\":\\\"a\\\"}]\""}), json!({"todos": [todo]})),
            (json!({"todos": ["{\"content\":\"a\"}"]}), json!({"todos": [todo]})),
            (json!({"todos": todo}), json!({"todos": [todo]})),
            (json!({"todos": "{\"content\":\"a\"}"}), json!({"todos": [todo]})),
            (
                json!({"todos": [{"done": "true"}, {"done": "False"}]}),
                json!({"todos": [{"done": true}, {"done": false}]}),
            ),
            (json!({"names": "a"}), json!({"names": ["a"]})),
            (json!({"names": "[\"a\",\"b\"]"}), json!({"names": ["a", "b"]})),
            (json!({"names": "[not a list"}), json!({"names": ["[not a list"]})),
            (
                json!({"count": "5", "part": "0.5", "all": "true"}),
                json!({"count": 5, "part": 0.5, "all": true}),
            ),
            (json!({"box": "{\"n\":\"7\"}"}), json!({"box": {"n": 7}})),
            (json!("{\"count\":\"5\"}"), json!({"count": 5})),
            // A wanted text stays as it is, also if it holds JSON.
            (
                json!({"text": "[1]", "either": "[1]", "any": "[1]"}),
                json!({"text": "[1]", "either": "[1]", "any": "[1]"}),
            ),
            (json!({"text": "5"}), json!({"text": "5"})),
            // Nothing fits.
            (json!({"count": "ten", "all": "maybe"}), json!({"count": "ten", "all": "maybe"})),
            (json!({"todos": "a"}), json!({"todos": "a"})),
            (json!({"text": 5}), json!({"text": 5})),
            (json!({"unknown": "[1]"}), json!({"unknown": "[1]"})),
            (json!({"names": null}), json!({"names": null})),
        ] {
            assert_eq!(coerce(input.clone(), &schema()), expected, "{input}");
        }
        let no_fields = json!({"type": "object", "properties": {}});
        assert_eq!(coerce(Value::Null, &no_fields), json!({}));
        assert_eq!(coerce(json!(""), &no_fields), json!({}));
    }

    #[test]
    fn mistakes_name_field_and_wanted_value() {
        let check = |input: Value, path: &str, problem: &str| {
            let expected = Mistake { path: path.into(), problem: problem.into() };
            assert_eq!(find_mistake(&input, &schema()), Some(expected), "{input}");
        };
        check(
            json!({"count": "ten"}),
            "count",
            "expected a whole number of at least 0, got the text \"ten\"",
        );
        check(json!({"count": -1}), "count", "expected a whole number of at least 0, got the number -1");
        check(json!({"all": "maybe"}), "all", "expected true or false, got the text \"maybe\"");
        check(json!({"names": [1]}), "names[0]", "expected a text, got the number 1");
        check(
            json!({"todos": 5}),
            "todos",
            "expected a list, each item an object with `content`, `done`, got the number 5",
        );
        check(json!({"todos": [{"done": {}}]}), "todos[0].done", "expected true or false, got the object {}");
        check(json!([]), "", &format!("expected {}, got the list []", wanted_text(&schema())));
        assert_eq!(find_mistake(&json!({"count": 3, "any": {}, "x": 1, "all": null}), &schema()), None);
        let listed = json!({"type": "string", "enum": ["a", "b"]});
        assert_eq!(
            find_mistake(&json!("c"), &listed).map(|mistake| mistake.problem).as_deref(),
            Some("expected one of \"a\", \"b\", got the text \"c\"")
        );
    }
}
