//! The parameters of a template: their definitions, and the values of a request.

use std::collections::BTreeMap;

use regex_automata::meta::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::TemplateProblem;
use super::text::is_parameter_name;
use types::job_template::TemplateParameter;
use types::typed_json;

/// Maximum number of parameters of a template.
const MAX_PARAMETERS: usize = 64;
/// Maximum memory of a compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A definition as a file has it.
#[derive(Deserialize)]
struct Definition {
    #[serde(rename = "type", default)]
    kind: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    default: Option<Value>,
    #[serde(rename = "enum", default)]
    choices: Option<Vec<Value>>,
    #[serde(default)]
    pattern: Option<String>,
    #[serde(default)]
    required: bool,
}

/// Reads the definitions of a template.
///
/// # Errors
/// One of them contradicts itself or cannot be understood. The error names it.
pub(super) fn definitions(value: Value) -> Result<BTreeMap<String, TemplateParameter>, String> {
    let definitions = match value {
        Value::Null => Map::new(),
        Value::Object(map) => map,
        _ => return Err("parameters: expected a map from names to definitions".into()),
    };
    if definitions.len() > MAX_PARAMETERS {
        return Err(format!("parameters: at most {MAX_PARAMETERS} are possible"));
    }
    definitions
        .into_iter()
        .map(|(name, value)| {
            let wrong = |why: String| format!("parameters.{name}: {why}");
            let parameter = definition(&name, value).map_err(wrong)?;
            Ok((name, parameter))
        })
        .collect()
}

fn definition(name: &str, value: Value) -> Result<TemplateParameter, String> {
    if !is_parameter_name(name) {
        return Err(
            "a name begins with a letter or `_` and has letters, digits, `_` and `-`, at most 64".into()
        );
    }
    let value = if value.is_null() { Value::Object(Map::new()) } else { value };
    let (read, unknown) =
        typed_json::from_value_with_unknown::<Definition>(value).map_err(|wrong| wrong.to_string())?;
    if let Some(key) = unknown.first() {
        return Err(format!(
            "unknown key `{key}`; known: type, description, default, enum, pattern, required"
        ));
    }
    let parameter = TemplateParameter {
        kind: read.kind.unwrap_or_else(|| "string".into()),
        description: read.description.unwrap_or_default(),
        default: read.default,
        choices: read.choices,
        pattern: read.pattern,
        required: read.required,
    };
    if !["string", "integer", "number", "boolean"].contains(&parameter.kind.as_str()) {
        return Err(format!("unknown type {:?}; known: string, integer, number, boolean", parameter.kind));
    }
    if parameter.required && parameter.default.is_some() {
        return Err("a required parameter has no default; remove one of them".into());
    }
    if parameter.pattern.is_some() && parameter.kind != "string" {
        return Err("only a string has a pattern".into());
    }
    if let Some(pattern) = &parameter.pattern {
        whole_match(pattern)?;
    }
    if let Some(choices) = &parameter.choices {
        if choices.is_empty() {
            return Err("enum: name at least one value".into());
        }
        let unlimited = TemplateParameter { choices: None, ..parameter.clone() };
        for choice in choices {
            text_of(&unlimited, choice).map_err(|why| format!("enum: {why}"))?;
        }
    }
    if let Some(default) = &parameter.default {
        text_of(&parameter, default).map_err(|why| format!("default: {why}"))?;
    }
    Ok(parameter)
}

/// The texts of all parameters: the values of the request, else the defaults, else nothing.
///
/// # Errors
/// A value is wrong, missing or unknown. The error has its path.
pub(super) fn values(
    definitions: &BTreeMap<String, TemplateParameter>,
    given: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, String>, TemplateProblem> {
    let problem = |name: &str, why: String| {
        let shown = &name[..name.floor_char_boundary(64)];
        TemplateProblem { path: format!("parameters.{shown}"), why }
    };
    if let Some(name) = given.keys().find(|name| !definitions.contains_key(*name)) {
        let names: Vec<&str> = definitions.keys().map(String::as_str).collect();
        let known = if names.is_empty() { "it has none".to_owned() } else { names.join(", ") };
        return Err(problem(name, format!("the template has no such parameter; known: {known}")));
    }
    let value = |(name, definition): (&String, &TemplateParameter)| {
        let text = match given.get(name).or(definition.default.as_ref()) {
            Some(value) => text_of(definition, value).map_err(|why| problem(name, why))?,
            None if definition.required => return Err(problem(name, "it is required".into())),
            None => String::new(),
        };
        Ok((name.clone(), text))
    };
    definitions.iter().map(value).collect()
}

/// The text of a value, if it fits the parameter. A number and a boolean may be given as the text of one, which is how
/// they come from a command line.
fn text_of(parameter: &TemplateParameter, value: &Value) -> Result<String, String> {
    let typed = match (parameter.kind.as_str(), value) {
        ("string", Value::String(_)) => Some(value.clone()),
        ("integer" | "number" | "boolean", Value::String(text)) => {
            serde_json::from_str::<Value>(text).ok().filter(|value| is_of(&parameter.kind, value))
        }
        (kind, value) => Some(value.clone()).filter(|value| is_of(kind, value)),
    };
    let Some(typed) = typed else {
        return Err(format!("expected a value of type {}", parameter.kind));
    };
    if let Some(choices) = &parameter.choices
        && !choices.iter().any(|choice| is_same(choice, &typed))
    {
        let shown: Vec<String> = choices.iter().map(shown).collect();
        return Err(format!("expected one of: {}", shown.join(", ")));
    }
    let text = shown(&typed);
    if let Some(pattern) = &parameter.pattern
        && !whole_match(pattern)?.is_match(&text)
    {
        return Err(format!("it does not match the pattern {pattern}"));
    }
    Ok(text)
}

/// Whether two values are equal. A choice may be written as a text too.
fn is_same(choice: &Value, value: &Value) -> bool {
    choice == value || shown(choice) == shown(value)
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A pattern for whole values. It takes linear time, whatever the value is.
fn whole_match(pattern: &str) -> Result<Regex, String> {
    let config =
        Regex::config().nfa_size_limit(Some(MAX_PATTERN_BYTES)).onepass_size_limit(Some(MAX_PATTERN_BYTES));
    // Alone first: `)(` is a pattern only between the parentheses.
    let build = |pattern: &str| Regex::builder().configure(config.clone()).build(pattern).map_err(Box::new);
    build(pattern)
        .and_then(|_| build(&format!(r"\A(?:{pattern})\z")))
        .map_err(|_| format!("the pattern {pattern:?} is not a regular expression, or too large"))
}
