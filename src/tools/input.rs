//! Parses a model's arguments to typed inputs, and generates the schemas of these types for models.
//!
//! Unknown keys are ignored. Values may be texts that hold them, because some models write them so ([`crate::coerce`]).

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Unexpected};
use serde_json::{Value, json};

use crate::coerce::{Mistake, coerce, find_mistake, wanted_text};
use crate::error::ToolError;
use types::message::ToolCall;
use types::typed_json::{self, WrongJson};

/// Parses the arguments of a call. The error names the wrong field and what is wanted there.
pub(super) fn parse<T: DeserializeOwned + JsonSchema>(call: &ToolCall) -> Result<T, ToolError> {
    if let Some(problem) = &call.input_error {
        return Err(ToolError::new(
            "invalid_json",
            format!("the arguments of {} are not valid JSON: {problem}. Send one JSON object.", call.tool),
        ));
    }
    if let Ok(input) = typed_json::from_value(call.input.clone()) {
        return Ok(input);
    }
    let schema = schema::<T>();
    let input = coerce(call.input.clone(), &schema);
    typed_json::from_value(input.clone()).map_err(|error| {
        let Mistake { path, problem } = describe_mistake(error, &input, &schema);
        let place = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
        ToolError::new("invalid_input", format!("the arguments of {} are wrong{place}: {problem}", call.tool))
            .with(json!({ "path": path, "problem": problem }))
    })
}

/// The mistake in words of the schema. The deserializer's own words are used only where they name no type of this
/// program.
fn describe_mistake(error: WrongJson, input: &Value, schema: &Value) -> Mistake {
    const TYPE_WORDS: [&str; 6] = ["struct ", "enum ", "tuple ", "invalid type", "invalid length", "unit "];
    if let Some(mistake) = find_mistake(input, schema) {
        return mistake;
    }
    let WrongJson { path, why } = error;
    let names_type = TYPE_WORDS.iter().any(|word| why.contains(word));
    let problem =
        if names_type { format!("expected {}", wanted_text(schema_at(schema, &path))) } else { why };
    Mistake { path: if path == "." { String::new() } else { path }, problem }
}

/// The schema of the value at a path.
fn schema_at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    let names = path.split(['.', '[']).filter(|name| !name.is_empty());
    names.fold(schema, |schema, name| match name.ends_with(']') {
        true => &schema["items"],
        false => &schema["properties"][name],
    })
}

/// The schema of an input type, without parts that are of no use to a model.
pub(super) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.for_deserialize().into_generator().into_root_schema_for::<T>().to_value();
    simplify_schema(&mut schema);
    schema
}

/// Removes titles, number formats and the `null` of optional fields.
fn simplify_schema(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("title");
            map.remove("$schema");
            map.remove("format");
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            if let Some(Value::Array(kinds)) = map.get("type") {
                let kinds: Vec<&Value> = kinds.iter().filter(|kind| *kind != "null").collect();
                if let [only] = kinds[..] {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            for (key, value) in map.iter_mut() {
                // Keys under `properties` are field names, not schema keywords.
                match value {
                    Value::Object(fields) if key == "properties" => {
                        fields.values_mut().for_each(simplify_schema)
                    }
                    value => simplify_schema(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(simplify_schema),
        _ => {}
    }
}

/// A whole number of at least 0, possibly written as a string; `null` counts as absent.
pub(super) fn number<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    let wrong = |unexpected| D::Error::invalid_value(unexpected, &"a whole number of at least 0");
    match Value::deserialize(d)? {
        Value::Null => Ok(None),
        Value::Number(n) => match (n.as_u64(), n.as_f64()) {
            (Some(n), _) => Ok(Some(n)),
            // `10.0` means 10.
            (None, Some(f)) if f >= 0.0 && f.fract() == 0.0 && f < 9e15 => Ok(Some(f as u64)),
            (None, f) => Err(wrong(Unexpected::Float(f.unwrap_or(f64::NAN)))),
        },
        Value::String(text) => match text.trim().parse() {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(wrong(Unexpected::Str(&text))),
        },
        other => Err(wrong(Unexpected::Other(kind(&other)))),
    }
}

/// A boolean, possibly written as a string; `null` is false.
pub(super) fn flag<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    let wrong = |unexpected| D::Error::invalid_value(unexpected, &"true or false");
    match Value::deserialize(d)? {
        Value::Null => Ok(false),
        Value::Bool(value) => Ok(value),
        Value::String(text) => match text.trim() {
            "true" | "True" => Ok(true),
            "false" | "False" | "" => Ok(false),
            _ => Err(wrong(Unexpected::Str(&text))),
        },
        other => Err(wrong(Unexpected::Other(kind(&other)))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::ids::{Mint, Seed};

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Sample {
        /// A name.
        name: String,
        /// How many.
        #[serde(default, deserialize_with = "number")]
        #[schemars(with = "Option<u64>")]
        title: Option<u64>,
        #[serde(default, deserialize_with = "flag")]
        #[schemars(with = "bool")]
        all: bool,
    }

    fn check(input: Value, expected: Result<Sample, &str>) {
        let call = ToolCall {
            call_id: Mint::new(0, Seed(1)).call(),
            provider_id: "p".into(),
            tool: "Sample".into(),
            input,
            input_error: None,
        };
        match (parse::<Sample>(&call), expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(refusal), Err(expected_text)) => {
                assert!(refusal.text.contains(expected_text), "{}", refusal.text)
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn tool_input_is_parsed_leniently_with_field_errors() {
        let sample = |title, all| Sample { name: "x".into(), title, all };
        check(json!({"name": "x", "extra": 1}), Ok(sample(None, false)));
        check(json!({"name": "x", "title": "10", "all": "true"}), Ok(sample(Some(10), true)));
        check(json!({"name": "x", "title": 10.0, "all": null}), Ok(sample(Some(10), false)));
        check(json!({"name": "x", "title": null}), Ok(sample(None, false)));
        check(json!({}), Err("missing field `name`"));
        check(json!({"name": 1}), Err("at `name`: expected a text, got the number 1"));
        check(json!({"name": "x", "title": -1}), Err("at `title`"));
        check(json!({"name": "x", "title": "ten"}), Err("whole number"));
        check(json!("text"), Err("expected an object with `all`, `name`, `title`, got the text \"text\""));
        check(json!("{\"name\":\"x\",\"title\":\"10\"}"), Ok(sample(Some(10), false)));
        check(json!([1]), Err("got the list [1]"));
    }

    #[test]
    fn tool_schema_contains_only_needed_fields() {
        assert_eq!(
            schema::<Sample>(),
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "A name."},
                    "title": {"type": "integer", "minimum": 0, "description": "How many."},
                    "all": {"type": "boolean", "default": false},
                },
                "required": ["name"],
            })
        );
    }
}
