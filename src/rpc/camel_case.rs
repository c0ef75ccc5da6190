//! Parameters in camelCase. The methods about the index accept them in addition to snake_case.

use super::convert::invalid_param;
use super::parse_params::NamedParams;
use api::Fault;
use api::methods::Method;

/// Prefix of the methods that accept camelCase parameters.
const PREFIX: &str = "knowledge.";

/// Renames camelCase parameters to the names that the method knows. All other parameters stay unchanged.
pub(super) fn rename(method: &Method, mut named: NamedParams) -> Result<NamedParams, Fault> {
    if !method.name.starts_with(PREFIX) {
        return Ok(named);
    }
    let names = method.param_names();
    let renamed = |name: &String| {
        let snake = snake_case(name);
        let is_other = !names.contains(&name.as_str()) && names.contains(&snake.as_str());
        is_other.then(|| (name.clone(), snake))
    };
    for (name, snake) in named.keys().filter_map(renamed).collect::<Vec<_>>() {
        if named.contains_key(&snake) {
            return Err(invalid_param(&snake, &format!("it is given twice, also as {name}")));
        }
        if let Some(value) = named.remove(&name) {
            named.insert(snake, value);
        }
    }
    Ok(named)
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
            rename(method, serde_json::from_str(raw).expect("an object"))
        };
        for (method, raw, expected) in [
            (
                "knowledge.query",
                r#"{"topK": 3, "onlyNeedContext":true,"query":"aB"}"#,
                r#"{"only_need_context":true,"query":"aB","top_k":3}"#,
            ),
            ("knowledge.index", r#"{"dryRun": true}"#, r#"{"dry_run":true}"#),
            ("knowledge.query", r#"{"noSuch": 1}"#, r#"{"noSuch": 1}"#),
            ("session.list", r#"{"includeChildren": true}"#, r#"{"includeChildren": true}"#),
        ] {
            assert_eq!(renamed(method, raw), Ok(serde_json::from_str(expected).expect("JSON")), "{raw}");
        }
        assert!(renamed("knowledge.query", r#"{"topK": 1, "top_k": 2}"#).is_err());
    }
}
