//! JSON as people write it, with the lines of its parts: comments and trailing commas are accepted.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Replaces comments and trailing commas by blanks, so that every part keeps its place.
#[must_use]
pub fn plain_json(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    // The place of a comma that has only blanks and comments after it so far.
    let mut comma = None;
    let mut index = 0;
    while index < bytes.len() {
        match (bytes[index], bytes.get(index + 1)) {
            (b'"', _) => {
                comma = None;
                index = string_end(&bytes, index);
                continue;
            }
            (b'/', Some(b'/')) => {
                let end = bytes[index..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let end = end.map_or(bytes.len(), |length| index + length);
                bytes[index..end].fill(b' ');
                index = end;
                continue;
            }
            (b'/', Some(b'*')) => {
                let inner = &bytes[index + 2..];
                let end = inner.windows(2).position(|pair| pair == b"*/");
                // A comment without an end stays, and is then an error.
                let Some(end) = end.map(|length| index + 2 + length + 2) else { break };
                let blank = |byte: &mut u8| {
                    if *byte != b'\n' {
                        *byte = b' ';
                    }
                };
                bytes[index..end].iter_mut().for_each(blank);
                index = end;
                continue;
            }
            (b',', _) => comma = Some(index),
            (b'}' | b']', _) => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            (byte, _) if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        index += 1;
    }
    // Only whole comments and ASCII characters were replaced, so the text is still UTF-8.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The place after the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut index = start + 1;
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' => index += 2,
            b'"' => return index + 1,
            _ => index += 1,
        }
    }
    bytes.len()
}

/// A part of a text.
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    whole: &'t str,
    raw: &'t str,
}

impl<'t> Node<'t> {
    /// The value of a whole text, which [`plain_json`] returned.
    ///
    /// # Errors
    /// The text is not JSON. The error names the line.
    pub fn parse(text: &'t str) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self { whole: text, raw: raw.get() })
    }

    /// The line on which the part begins, from 1.
    #[must_use]
    pub fn line(self) -> usize {
        let offset = (self.raw.as_ptr() as usize).saturating_sub(self.whole.as_ptr() as usize);
        let before = self.whole.as_bytes().get(..offset).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The fields of an object in their order, also those whose name occurs twice.
    #[must_use]
    pub fn fields(self) -> Option<Vec<(String, Node<'t>)>> {
        let Fields(fields) = serde_json::from_str(self.raw).ok()?;
        Some(fields.into_iter().map(|(name, raw)| (name, Self { raw: raw.get(), ..self })).collect())
    }

    /// The items of a list.
    #[must_use]
    pub fn items(self) -> Option<Vec<Node<'t>>> {
        let items: Vec<&RawValue> = serde_json::from_str(self.raw).ok()?;
        Some(items.into_iter().map(|raw| Self { raw: raw.get(), ..self }).collect())
    }

    /// Whether the part is `null`.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.raw.trim() == "null"
    }

    /// The value.
    ///
    /// # Errors
    /// It is nested too deeply, or has a number or a character that does not exist.
    pub fn value(self) -> Result<Value, String> {
        serde_json::from_str(self.raw).map_err(|error| error.to_string())
    }

    /// The beginning of the part, for an error.
    #[must_use]
    pub fn shown(self) -> String {
        const MAX_CHARS: usize = 40;
        match self.raw.char_indices().nth(MAX_CHARS) {
            Some((end, _)) => format!("{}…", &self.raw[..end]),
            None => self.raw.to_owned(),
        }
    }
}

/// The fields of an object. A map would keep only the last one of a name.
struct Fields<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_left_out() {
        for (text, value) in [
            ("// first\n{\"a\": 1, // more\n}", json!({"a": 1})),
            ("{\"a\": [1, 2, /* none */ ], /* \n*/ }", json!({"a": [1, 2]})),
            (
                "{\"a\": \"http://x, /* y */\", \"b\": \"\\\"//\",}",
                json!({"a": "http://x, /* y */", "b": "\"//"}),
            ),
            ("{} // ü", json!({})),
        ] {
            let plain = plain_json(text);
            assert_eq!(plain.len(), text.len(), "{text}");
            assert_eq!(Node::parse(&plain).expect(text).value(), Ok(value), "{text}");
        }
        for text in ["{,}x", "{\"a\" 1}", "{} /* open", "{\"a\": 1,, }", "{", "{} {}"] {
            assert!(Node::parse(&plain_json(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_know_their_line_and_repeated_names_are_kept() {
        let plain = plain_json("{\n\"a\": 1,\n// x\n\"a\": [\n{}]}");
        let fields = Node::parse(&plain).expect("JSON").fields().expect("an object");
        assert_eq!(fields.len(), 2);
        assert_eq!((fields[0].1.line(), fields[1].1.line()), (2, 4));
        assert_eq!(fields[1].1.items().expect("a list")[0].line(), 5);
        assert!(fields[0].1.items().is_none() && fields[0].1.fields().is_none());
    }
}
