//! Values of the keys of agents.

use std::str::FromStr;

use serde_json::Value;

use crate::extensions::front_matter::split_list;
use judge::Rule;

/// The texts of a value: a list, or one text.
pub(super) fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("{key}: expected names of tools");
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(split_list(text)),
        Value::Array(list) => {
            let text = |value: &Value| match value {
                Value::String(text) => Ok(split_list(text)),
                Value::Number(number) => Ok(vec![number.to_string()]),
                _ => Err(wrong()),
            };
            Ok(list.iter().map(text).collect::<Result<Vec<_>, _>>()?.concat())
        }
        _ => Err(wrong()),
    }
}

/// The names of modes in a value: one text, or a list.
pub(super) fn mode_names(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let text = |value: &Value| match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.trim().to_owned()),
        _ => Err(format!("{key}: expected the name of a mode")),
    };
    let names = match value {
        Value::Array(list) => list.iter().map(text).collect::<Result<Vec<_>, _>>()?,
        value => vec![text(value)?],
    };
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

pub(super) fn no_mode(text: &str) -> String {
    format!("there is no mode {text:?}; use default, acceptEdits, plan, dontAsk or bypassPermissions")
}

/// The tools whose rules cover the reading and the changing of files.
pub(super) const READ_AND_EDIT: [&str; 2] = ["Read", "Edit"];

/// Rules of these tools for each path of a list.
pub(super) fn path_rules(key: &str, value: &Value, tools: &[&str]) -> Result<Vec<String>, String> {
    let wrong = |why: &str| format!("{key}: {why}");
    let paths: Vec<&str> = match value {
        Value::Null => Vec::new(),
        Value::String(path) => vec![path],
        Value::Array(list) => {
            if !list.iter().all(Value::is_string) {
                return Err(wrong("expected paths"));
            }
            list.iter().filter_map(Value::as_str).collect()
        }
        _ => return Err(wrong("expected paths")),
    };
    let mut rules = Vec::new();
    for path in paths {
        let path = path.trim().trim_start_matches("./");
        for tool in tools {
            let rule = Rule::from_str(&format!("{tool}({path})")).map_err(|error| wrong(&error.problem))?;
            rules.push(rule.to_string());
        }
    }
    Ok(rules)
}
