//! How deep a value that comes from outside may be nested.
//!
//! A parser of JSON gives up at 128 levels (serde_json), and the journal wraps what a model wrote in some
//! levels of its own: what is taken in deeper than [`MOST`] could be written and never be read again.

use serde_json::Value;

/// Levels of lists and objects that are taken in.
pub const MOST: usize = 96;

/// Whether a value has at most [`MOST`] levels.
#[must_use]
pub fn is_readable(value: &Value) -> bool {
    fits(value, MOST)
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
        assert!(is_readable(&nested(MOST)) && !is_readable(&nested(MOST + 1)));
        assert!(!is_readable(&serde_json::json!({"a": {"b": nested(MOST - 1)}})));
        // Item, content, block, input, and some room.
        let wrapped =
            serde_json::json!({"item": {"content": [{"call": {"input": nested(MOST)}}]}}).to_string();
        assert!(serde_json::from_str::<Value>(&wrapped).is_ok());
    }
}
