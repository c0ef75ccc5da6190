//! The names of a struct's fields in serde.

use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor, value};
use serde::forward_to_deserialize_any;

/// Names of the fields of `T` in their declared order; empty if `T` is not a plain struct. Nothing is deserialised:
/// the derived code passes the names before it requests the first value.
pub(crate) fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(value::Error::custom("the names alone are wanted"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
