//! Reads typed values from JSON and reports the paths of wrong or unknown parts. One deserializer reads all types,
//! because wrappers around the one of serde_json would compile each type three times.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// A value that does not have the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongJson {
    /// Path of the wrong part, for example `answers[0].text`; `.` for the whole value.
    pub path: String,
    /// The mistake.
    pub why: String,
}

impl fmt::Display for WrongJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "." => f.write_str(&self.why),
            path => write!(f, "{path}: {}", self.why),
        }
    }
}

/// Reads a value. Unknown fields are ignored.
///
/// # Errors
/// The first part of the value that is wrong.
pub fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, WrongJson> {
    from_value_with_unknown(value).map(|(read, _)| read)
}

/// Reads a value, and returns the paths of its unknown fields as well.
///
/// # Errors
/// The first part of the value that is wrong.
pub fn from_value_with_unknown<T: DeserializeOwned>(value: Value) -> Result<(T, Vec<String>), WrongJson> {
    let track = PathTracker::default();
    match T::deserialize(TrackedValue { value, track: &track }) {
        Ok(read) => Ok((read, track.unknown.into_inner())),
        Err(error) => {
            let path = track.failed.into_inner().unwrap_or_else(|| ".".to_owned());
            Err(WrongJson { path, why: error.to_string() })
        }
    }
}

/// The path of a field.
pub(super) fn name_path(above: &str, name: &str) -> String {
    match above {
        "" => name.to_owned(),
        above => format!("{above}.{name}"),
    }
}

/// The path of an item of a list.
pub(super) fn index_path(above: &str, index: usize) -> String {
    format!("{above}[{index}]")
}

/// The current path, the path of the first failure, and the paths of unknown fields.
#[derive(Default)]
struct PathTracker {
    path: RefCell<String>,
    failed: RefCell<Option<String>>,
    unknown: RefCell<Vec<String>>,
}

impl PathTracker {
    /// Runs a step with this part added to the path.
    fn within<T>(&self, part: PathPart<'_>, step: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let before = self.path.borrow().len();
        self.enter(part);
        let result = step();
        if result.is_err() {
            // Keep the first failure, which is the innermost one.
            self.failed.borrow_mut().get_or_insert_with(|| self.path.borrow().clone());
        }
        self.path.borrow_mut().truncate(before);
        result
    }

    fn enter(&self, part: PathPart<'_>) {
        let mut path = self.path.borrow_mut();
        *path = match part {
            PathPart::Index(index) => index_path(&path, index),
            PathPart::Name(name) => name_path(&path, name),
        };
    }
}

/// A part of a path.
enum PathPart<'n> {
    Name(&'n str),
    Index(usize),
}

/// A value and the tracker of its path.
struct TrackedValue<'t> {
    value: Value,
    track: &'t PathTracker,
}

impl TrackedValue<'_> {
    fn unexpected(value: &Value) -> Unexpected<'_> {
        match value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for TrackedValue<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(values) => {
                let length = values.len();
                let mut items = Items { values: values.into_iter(), next: 0, track: self.track };
                let read = visitor.visit_seq(&mut items)?;
                match items.values.len() {
                    0 => Ok(read),
                    _ => Err(Error::invalid_length(length, &"fewer elements in array")),
                }
            }
            Value::Object(fields) => {
                visitor.visit_map(Fields { fields: fields.into_iter(), value: None, track: self.track })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::String(variant) => {
                visitor.visit_enum(Variant { variant, content: None, track: self.track })
            }
            Value::Object(fields) if fields.len() == 1 => match fields.into_iter().next() {
                Some((variant, content)) => {
                    visitor.visit_enum(Variant { variant, content: Some(content), track: self.track })
                }
                None => Err(Error::invalid_length(0, &"one variant")),
            },
            Value::Object(fields) => {
                Err(Error::invalid_length(fields.len(), &"an object with the name of one variant"))
            }
            other => Err(Error::invalid_type(Self::unexpected(&other), &"string or map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.track.unknown.borrow_mut().push(self.track.path.borrow().clone());
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier
    }
}

/// The items of a list.
struct Items<'t> {
    values: std::vec::IntoIter<Value>,
    next: usize,
    track: &'t PathTracker,
}

impl<'de> SeqAccess<'de> for &mut Items<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.values.next() else { return Ok(None) };
        let (index, track) = (self.next, self.track);
        self.next += 1;
        track.within(PathPart::Index(index), || seed.deserialize(TrackedValue { value, track })).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.values.len())
    }
}

/// The fields of an object.
struct Fields<'t> {
    fields: <Map<String, Value> as IntoIterator>::IntoIter,
    /// The name and value of the field whose name was read.
    value: Option<(String, Value)>,
    track: &'t PathTracker,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        self.value = Some((name.clone(), value));
        let at = name.clone();
        self.track.within(PathPart::Name(&at), || seed.deserialize(Name(name))).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((name, value)) = self.value.take() else {
            return Err(Error::custom("a value without a name"));
        };
        let track = self.track;
        track.within(PathPart::Name(&name), || seed.deserialize(TrackedValue { value, track }))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

/// The name of a field.
struct Name(String);

impl<'de> Deserializer<'de> for Name {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let name_only: StringDeserializer<Error> = self.0.into_deserializer();
        name_only.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant of an enum, alone or with its content.
struct Variant<'t> {
    variant: String,
    content: Option<Value>,
    track: &'t PathTracker,
}

impl<'de, 't> EnumAccess<'de> for Variant<'t> {
    type Error = Error;
    type Variant = Content<'t>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'t>), Error> {
        let read = seed.deserialize(Name(self.variant.clone()))?;
        Ok((read, Content { variant: self.variant, content: self.content, track: self.track }))
    }
}

/// The content of a variant.
struct Content<'t> {
    variant: String,
    content: Option<Value>,
    track: &'t PathTracker,
}

impl<'t> Content<'t> {
    fn read<T>(self, step: impl FnOnce(TrackedValue<'t>) -> Result<T, Error>) -> Result<T, Error> {
        let Some(value) = self.content else {
            return Err(Error::invalid_type(Unexpected::UnitVariant, &"a variant with content"));
        };
        self.track.within(PathPart::Name(&self.variant), || step(TrackedValue { value, track: self.track }))
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            None | Some(Value::Null) => Ok(()),
            Some(other) => Err(Error::invalid_type(TrackedValue::unexpected(&other), &"unit variant")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        self.read(|value| seed.deserialize(value))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.read(|value| value.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.read(|value| value.deserialize_any(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    struct Id(String);

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Small,
        Sized { width: u8 },
        Named(String),
        Pair(i64, bool),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Text { text: String },
        None,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct All {
        id: Option<Id>,
        kinds: Vec<Kind>,
        by_id: BTreeMap<Id, f64>,
        by_kind: BTreeMap<Kind, i64>,
        tagged: Vec<Tagged>,
        inner: Option<Box<All>>,
        any: Value,
    }

    #[test]
    fn typed_values_equal_those_of_serde_json() {
        let value = json!({
            "id": "x", "kinds": ["small", {"sized": {"width": 3}}, {"named": "n"}, {"pair": [-1, true]}],
            "by_id": {"a": 1, "b": 2.5}, "by_kind": {"small": -5},
            "tagged": [{"type": "text", "text": "t"}, {"type": "none"}],
            "inner": {"id": null, "unknown": {"a": [1, 2]}}, "any": {"a": [1, null, "b"]},
        });
        let expected: All = serde_json::from_value(value.clone()).expect("a value");
        let (read, unknown) = from_value_with_unknown::<All>(value).expect("a value");
        assert_eq!((read, unknown), (expected, vec!["inner.unknown".to_owned()]));
    }

    #[test]
    fn wrong_parts_are_named_with_their_path() {
        let wrong = |value: Value| {
            let error = from_value::<All>(value).expect_err("a wrong value");
            (error.path, error.why)
        };
        let at = |path: &str, why: &str| (path.to_owned(), why.to_owned());
        assert_eq!(wrong(json!({"id": 5})), at("id", "invalid type: integer `5`, expected a string"));
        assert_eq!(
            wrong(json!({"kinds": ["small", {"sized": {"width": 300}}]})),
            at("kinds[1].sized.width", "invalid value: integer `300`, expected u8")
        );
        assert_eq!(wrong(json!({"kinds": [{"sized": {}}]})), at("kinds[0].sized", "missing field `width`"));
        assert_eq!(
            wrong(json!({"kinds": ["tall"]})),
            at("kinds[0]", "unknown variant `tall`, expected one of `small`, `sized`, `named`, `pair`")
        );
        assert_eq!(wrong(json!({"kinds": [7]})).0, "kinds[0]");
        assert_eq!(wrong(json!({"kinds": [{"a": 1, "b": 2}]})).0, "kinds[0]");
        assert_eq!(wrong(json!({"kinds": [{"pair": [1]}]})).0, "kinds[0].pair");
        assert_eq!(wrong(json!({"by_id": {"a": "x"}})).0, "by_id.a");
        assert_eq!(wrong(json!({"by_kind": {"huge": 1}})).0, "by_kind.huge");
        assert_eq!(wrong(json!({"inner": {"inner": {"kinds": {}}}})).0, "inner.inner.kinds");
        assert_eq!(wrong(json!("x")).0, ".");
    }
}
