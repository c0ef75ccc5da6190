//! The maximum nesting depth of a value from outside.
//!
//! The JSON parser (serde_json) stops at 128 levels, and an event adds some levels around a model's values. Without
//! this limit, the journal could contain a value that the daemon cannot read again.

use serde_json::Value;

/// Maximum accepted levels of lists and objects.
pub const MAX_DEPTH: usize = 96;

/// Whether a value has at most [`MAX_DEPTH`] levels.
#[must_use]
pub fn is_readable(value: &Value) -> bool {
    fits(value, MAX_DEPTH)
}

fn fits(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(list) => levels > 0 && list.iter().all(|value| fits(value, levels - 1)),
        Value::Object(fields) => levels > 0 && fields.values().all(|value| fits(value, levels - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_json_depth_is_readable_inside_event() {
        let nested = |levels: usize| {
            let text = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            serde_json::from_str::<Value>(&text).expect("a list")
        };
        assert!(is_readable(&nested(MAX_DEPTH)) && !is_readable(&nested(MAX_DEPTH + 1)));
        assert!(!is_readable(&serde_json::json!({"a": {"b": nested(MAX_DEPTH - 1)}})));
        // The levels of item, content, block and input, with some reserve.
        let wrapped =
            serde_json::json!({"item": {"content": [{"call": {"input": nested(MAX_DEPTH)}}]}}).to_string();
        assert!(serde_json::from_str::<Value>(&wrapped).is_ok());
    }
}
