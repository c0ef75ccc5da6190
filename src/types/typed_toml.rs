//! Reads typed values from TOML and reports the path and the position of a wrong part.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::typed_json::{self, WrongJson, index_path, name_path};

/// A text that does not have the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongToml {
    /// Path of the wrong part, for example `providers.local.kind`; `.` for the whole text.
    pub path: String,
    /// The mistake.
    pub why: String,
    /// Byte offset of the wrong part in the text, if known.
    pub start: Option<usize>,
}

impl From<toml::de::Error> for WrongToml {
    fn from(error: toml::de::Error) -> Self {
        Self {
            path: ".".into(),
            why: error.message().trim().to_owned(),
            start: error.span().map(|span| span.start),
        }
    }
}

/// Reads a value.
///
/// # Errors
/// The text is not TOML, or a part of it is wrong. The error reports the first such part.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, WrongToml> {
    let table = DeTable::parse(text)?;
    let mut starts = HashMap::new();
    let value = object("", table.get_ref(), &mut starts);
    typed_json::from_value(value).map_err(|WrongJson { path, why }| {
        let start = starts.get(&path).copied();
        WrongToml { path, why, start }
    })
}

/// A parsed value as JSON.
#[must_use]
pub fn to_json(spanned: &Spanned<DeValue<'_>>) -> Value {
    value("", spanned, &mut HashMap::new())
}

/// Converts a table to JSON and adds the byte offset of each path to `starts`.
fn object(above: &str, table: &DeTable<'_>, starts: &mut HashMap<String, usize>) -> Value {
    let mut object = Map::new();
    for (name, inner) in table.iter() {
        let path = name_path(above, name.get_ref());
        starts.insert(path.clone(), name.span().start);
        object.insert(name.get_ref().to_string(), value(&path, inner, starts));
    }
    Value::Object(object)
}

fn value(path: &str, spanned: &Spanned<DeValue<'_>>, starts: &mut HashMap<String, usize>) -> Value {
    match spanned.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(integer) => integer.into(),
            // TOML has no larger integers. As a text, the value is refused where a number is expected.
            Err(_) => Value::String(integer.as_str().to_owned()),
        },
        // JSON has no `nan` and no infinity.
        DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None => Value::String(float.as_str().to_owned()),
        },
        DeValue::Boolean(is_set) => Value::Bool(*is_set),
        DeValue::Datetime(datetime) => Value::String(datetime.to_string()),
        DeValue::Array(items) => {
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                let path = index_path(path, index);
                starts.insert(path.clone(), item.span().start);
                list.push(value(&path, item, starts));
            }
            Value::Array(list)
        }
        DeValue::Table(table) => object(path, table, starts),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_equal_those_of_the_toml_library() {
        let text = "a = 0xff\nb = [1, -2.5, 'x', true]\n[c]\nd = { e = 1_000 }\n[[f]]\ng = '''t\n'''\n";
        let by_library: Value = toml::from_str(text).expect("TOML");
        assert_eq!(from_str::<Value>(text), Ok(by_library));
        assert_eq!(
            from_str::<Value>("t = 1979-05-27\nn = nan\n"),
            Ok(json!({"t": "1979-05-27", "n": "nan"}))
        );
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(default)]
        _inner: Vec<Inner>,
        #[serde(default)]
        _size: u8,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        _name: String,
    }

    #[test]
    fn mistakes_have_path_and_place() {
        let wrong = |text: &str| from_str::<Outer>(text).expect_err("wrong");
        assert_eq!(
            wrong("_size = 1\n[[_inner]]\n_name = 'a'\n[[_inner]]\n_name = 5\n"),
            WrongToml {
                path: "_inner[1]._name".into(),
                why: "invalid type: integer `5`, expected a string".into(),
                start: Some(44)
            }
        );
        assert_eq!(wrong("_size = 1\nx = 2\n").start, Some(10));
        assert_eq!(wrong("_size = 300\n").path, "_size");
        assert_eq!(wrong("[[_inner]]\n").path, "_inner[0]");
        let syntax = wrong("_size = 1\n= 2\n");
        assert_eq!((syntax.path.as_str(), syntax.start), (".", Some(10)));
    }
}
