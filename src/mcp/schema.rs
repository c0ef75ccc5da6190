//! Checks values against a JSON Schema that a server wrote.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A validator whose patterns match in linear time, so that a server's pattern cannot block the daemon. `None` if the
/// schema is invalid or has a pattern that needs backtracking: the server checks its values itself.
#[must_use]
pub fn server_validator(schema: &Value) -> Option<Validator> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).ok()
}

/// What is wrong with the arguments of a call, with the place of each mistake.
///
/// A value that fits several schemas of a `oneOf` is no mistake here: most authors mean `anyOf`, and the server judges
/// such a value itself.
pub fn argument_mistakes<'v>(
    validator: &'v Validator,
    arguments: &'v Value,
) -> impl Iterator<Item = String> + 'v {
    validator
        .iter_errors(arguments)
        .filter(|error| !matches!(error.kind(), ValidationErrorKind::OneOfMultipleValid { .. }))
        .map(|error| {
            let path = error.instance_path().to_string();
            if path.is_empty() { error.to_string() } else { format!("at {path}: {error}") }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn value_that_fits_several_schemas_is_no_mistake() {
        let branch = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}});
        let schema = json!({"type": "object", "oneOf": [branch("a"), branch("b")]});
        let validator = server_validator(&schema).expect("a validator");
        let mistakes = |value| argument_mistakes(&validator, &value).collect::<Vec<_>>();
        assert_eq!(mistakes(json!({"a": "x"})), Vec::<String>::new());
        assert_eq!(mistakes(json!({"a": 1, "b": 2})).len(), 1);
        assert!(mistakes(json!("x"))[0].contains("object"));
    }

    #[test]
    fn pattern_of_server_never_backtracks() {
        let text = json!("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
        // These take exponential time in an engine that backtracks.
        for pattern in [r"^(a+)+\1$", r"^(?=(a+)+$)", r"(?<!b)(a|a)*$", r"^(a|aa)+(?!a)$"] {
            assert!(server_validator(&json!({ "pattern": pattern })).is_none(), "{pattern}");
        }
        let linear = server_validator(&json!({"type": "string", "pattern": "^(a+)+$"})).expect("a validator");
        assert!(!linear.is_valid(&text) && linear.is_valid(&json!("aaa")) && !linear.is_valid(&json!(5)));
        assert!(server_validator(&json!({"type": 5})).is_none());
    }
}
