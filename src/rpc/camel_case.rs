//! Parameters in camelCase. The methods about the index accept them in addition to snake_case.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::convert::invalid_param;
use api::Fault;
use api::methods::Method;

/// Prefix of the methods that accept camelCase parameters.
const PREFIX: &str = "knowledge.";

/// Renames camelCase parameters to the names that the method knows. All other parameters stay unchanged.
pub(super) fn rename<'r>(method: &Method, raw: Cow<'r, str>) -> Result<Cow<'r, str>, Fault> {
    if !method.name.starts_with(PREFIX) || !raw.trim_start().starts_with('{') {
        return Ok(raw);
    }
    // Leave a wrong value unchanged, because parsing the typed parameters reports it.
    let Ok(named) = serde_json::from_str::<BTreeMap<String, &RawValue>>(&raw) else { return Ok(raw) };
    let names = method.param_names();
    let renamed = |name: &String| {
        let snake = snake_case(name);
        (snake != *name && !names.contains(&name.as_str()) && names.contains(&snake.as_str()))
            .then_some(snake)
    };
    if !named.keys().any(|name| renamed(name).is_some()) {
        return Ok(raw);
    }
    let mut members: Vec<String> = Vec::with_capacity(named.len());
    for (name, value) in &named {
        let known = match renamed(name) {
            Some(snake) if named.contains_key(&snake) => {
                return Err(invalid_param(&snake, &format!("it is given twice, also as {name}")));
            }
            Some(snake) => snake,
            None => name.clone(),
        };
        members.push(format!("{}:{}", Value::from(known), value.get()));
    }
    Ok(Cow::Owned(format!("{{{}}}", members.join(","))))
}

/// Converts a name to snake_case: `topK` becomes `top_k`.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::methods;

    #[test]
    fn camel_case_names_of_knowledge_are_renamed() {
        let renamed = |method: &str, raw: &str| {
            let method = methods::find(method).expect("a method");
            rename(method, Cow::Borrowed(raw)).map(Cow::into_owned)
        };
        for (method, raw, expected) in [
            (
                "knowledge.query",
                r#"{"topK": 3, "onlyNeedContext":true,"query":"aB"}"#,
                r#"{"only_need_context":true,"query":"aB","top_k":3}"#,
            ),
            ("knowledge.index", r#"{"dryRun": true}"#, r#"{"dry_run":true}"#),
            ("knowledge.query", r#"{"noSuch": 1}"#, r#"{"noSuch": 1}"#),
            ("knowledge.query", "[1]", "[1]"),
            ("session.list", r#"{"includeChildren": true}"#, r#"{"includeChildren": true}"#),
        ] {
            assert_eq!(renamed(method, raw).as_deref(), Ok(expected), "{raw}");
        }
        assert!(renamed("knowledge.query", r#"{"topK": 1, "top_k": 2}"#).is_err());
    }
}
