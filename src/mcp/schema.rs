//! Checks values against a JSON Schema that a server wrote.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A validator whose patterns match in linear time, so that a server's pattern cannot block the daemon. `None` if the
/// schema is invalid or has a pattern that needs backtracking: the server checks its values itself.
#[must_use]
pub fn server_validator(schema: &Value) -> Option<Validator> {
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
