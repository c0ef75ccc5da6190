//! Structured output: the final answer of a turn must satisfy a JSON Schema. The model may correct an
//! invalid answer a few times. Then the turn ends with an error.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::decide::plan::PlanBuilder;
use crate::request::model_texts;
use types::depth;
use types::event::Event;
use types::session::{Subtype, TurnError};

/// How often the model may correct its answer.
const MAX_CORRECTIONS: u32 = 3;
/// Maximum bytes of a schema as JSON.
const MAX_SCHEMA_BYTES: usize = 32 * 1024;
/// Maximum number of problems in one message to the model.
const MAX_ERRORS: usize = 10;
/// Maximum bytes of the text of one problem.
const MAX_ERROR_BYTES: usize = 300;

/// Checks a schema of a client.
///
/// # Errors
/// The value is no JSON Schema, it is too large, or it refers to another document.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    if !schema.is_object() {
        return Err("expected an object with a JSON Schema".into());
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!("the schema has {bytes} bytes; at most {MAX_SCHEMA_BYTES} are accepted"));
    }
    if !depth::is_readable(schema) {
        return Err(format!("it has more than {} levels of lists and objects", depth::MAX_DEPTH));
    }
    if let Some(reference) = other_document(schema) {
        return Err(format!(
            "$ref {reference:?} names another document, and none is loaded; put it into $defs and refer to it with #"
        ));
    }
    validator(schema).map(|_| ())
}

/// The first reference that points outside the schema.
fn other_document(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match value {
            Value::String(target) if matches!(name.as_str(), "$ref" | "$dynamicRef" | "$recursiveRef") => {
                Some(target.as_str()).filter(|target| !target.starts_with('#'))
            }
            value => other_document(value),
        }),
        Value::Array(list) => list.iter().find_map(other_document),
        _ => None,
    }
}

/// Builds a validator that matches patterns in linear time, so that a pattern of a client cannot block the daemon.
fn validator(schema: &Value) -> Result<Validator, String> {
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| shorten_error(format!("{}: {error}", error.instance_path())))
}

/// Returns the value of an answer if it satisfies the schema, else the problems.
fn checked_value(schema: &Value, answer: &str) -> Result<Value, Vec<String>> {
    let value = parse_answer(answer).map_err(|error| vec![error])?;
    if !depth::is_readable(&value) {
        return Err(vec![format!("the value has more than {} levels", depth::MAX_DEPTH)]);
    }
    let validator = validator(schema).map_err(|error| vec![error])?;
    let problem = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        shorten_error(if place.is_empty() { error.to_string() } else { format!("{place}: {error}") })
    };
    let errors: Vec<String> = validator.iter_errors(&value).take(MAX_ERRORS).map(problem).collect();
    if errors.is_empty() { Ok(value) } else { Err(errors) }
}

/// Parses an answer that is a JSON value, possibly in a fenced block.
fn parse_answer(answer: &str) -> Result<Value, String> {
    let text = answer.trim();
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let blocks = text.split("```").skip(1).step_by(2);
    let content = blocks.filter_map(|block| block.split_once('\n').map(|(_, content)| content));
    let mut values = content.filter_map(|content| serde_json::from_str(content.trim()).ok());
    values.next().ok_or_else(|| shorten_error(format!("the answer is not one JSON value: {error}")))
}

fn shorten_error(mut text: String) -> String {
    if text.len() > MAX_ERROR_BYTES {
        text.truncate(text.floor_char_boundary(MAX_ERROR_BYTES));
        text.push('…');
    }
    text
}

impl PlanBuilder<'_> {
    /// Ends the turn with the model's last answer, or asks for a correction if the answer does not satisfy the
    /// schema of the turn.
    pub fn finish_answered(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        let Some(schema) = turn.settings.options.output_schema.clone() else {
            self.finish_turn(Subtype::Success, Vec::new());
            return;
        };
        let rejected = turn.outcome.rejected_outputs;
        match checked_value(&schema, &turn.outcome.last_text) {
            Ok(value) => {
                self.structured = Some(value);
                self.finish_turn(Subtype::Success, Vec::new());
            }
            Err(errors) if rejected < MAX_CORRECTIONS => {
                let (attempt, text) = (rejected + 1, model_texts::output_rejected(&errors));
                self.push_turn(Event::TurnOutputRejected { attempt, max: MAX_CORRECTIONS, errors, text });
                self.call_model();
            }
            Err(errors) => {
                let subtype = Subtype::StructuredOutputInvalid;
                let why = format!("the answer does not satisfy output_schema: {}", errors.join("; "));
                self.finish_turn(subtype, vec![TurnError::new(subtype.name(), why)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn invalid_and_remote_schemas_are_refused() {
        let person =
            json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
        assert_eq!(check_schema(&person), Ok(()));
        for (schema, word) in [
            (json!("x"), "object"),
            (json!({"type": "no such type"}), "no such type"),
            (json!({"$ref": "https://example.org/s.json"}), "another document"),
            (json!({"properties": {"a": {"$ref": "other.json#/x"}}}), "another document"),
            (json!({"$ref": "#/$defs/missing"}), "missing"),
            (json!({"pattern": "("}), "("),
            (json!({"description": "x".repeat(40_000)}), "bytes"),
        ] {
            let why = check_schema(&schema).expect_err("refused");
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn answer_is_accepted_plain_or_in_fenced_block() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        for answer in ["{\"n\": 1}", " {\"n\":1}\n", "Here it is:\n```json\n{\"n\": 1}\n```\nDone."] {
            assert_eq!(checked_value(&schema, answer), Ok(json!({"n": 1})), "{answer}");
        }
        let errors = checked_value(&schema, "{\"n\": \"one\"}").expect_err("wrong");
        assert!(errors[0].contains("/n") && errors[0].contains("integer"), "{errors:?}");
        assert!(checked_value(&schema, "n is 1").expect_err("no JSON")[0].contains("JSON"));
    }

    #[test]
    fn schema_that_refers_to_itself_ends() {
        for schema in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]})] {
            if check_schema(&schema).is_ok() {
                let _ = checked_value(&schema, "{}");
            }
        }
        let tree =
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
        assert!(checked_value(&tree, "{\"next\": {\"next\": {}}}").is_ok());
        assert!(checked_value(&tree, "{\"next\": {\"other\": {}}}").is_err());
    }
}
