//! Parses JSON in which no object has a field twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Error, Map, Value};

/// Parses a text in which no object has a field twice. With a repeated field, it would be unclear which value counts.
///
/// # Errors
/// The text is not JSON, or an object has a field twice.
pub fn parse_unique(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map(|UniqueValue(value)| value)
}

/// A value without repeated fields.
struct UniqueValue(Value);

impl<'de> Deserialize<'de> for UniqueValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor).map(UniqueValue)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(UniqueValue(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(serde::de::Error::custom(format!("duplicate field `{name}`")));
            }
            let UniqueValue(value) = fields.next_value()?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_are_refused_at_any_depth() {
        let text = r#"{"a": [1, -2, 2.5, "x", true, null, {"b": {}}], "c": 18446744073709551615}"#;
        let plain: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(parse_unique(text).expect("JSON"), plain);
        for text in [r#"{"a": 1, "a": 1}"#, r#"{"x": [{"a": 1, "b": 2, "a": 3}]}"#] {
            let error = parse_unique(text).expect_err("twice").to_string();
            assert!(error.starts_with("duplicate field `a`"), "{error}");
        }
    }

    /// Digests and the caches of providers depend on it: a dependency that switches on serde_json's `preserve_order`
    /// would change them.
    #[test]
    fn maps_of_json_keep_sorted_keys() {
        let map: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(r#"{"b":1,"a":{"d":2,"c":3}}"#).expect("an object");
        assert_eq!(serde_json::to_string(&map).expect("a text"), r#"{"a":{"c":3,"d":2},"b":1}"#);
    }
}
