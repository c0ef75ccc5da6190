//! Texts in the events of providers. A text is borrowed if it has no escapes, and empty if it is `null`, absent, or
//! of another type.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::stream::split_chars::surrogate_marks;

/// The string; empty if absent. A list of parts with `text` fields counts as their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TolerantText<'a>(Cow<'a, str>);

impl<'a> TolerantText<'a> {
    /// The string itself.
    pub(crate) fn into_inner(self) -> Cow<'a, str> {
        self.0
    }
}

impl Deref for TolerantText<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for TolerantText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(TolerantText)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow, default)]
            text: TolerantText<'a>,
        }
        let mut text = String::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            text.push_str(&part.text);
        }
        Ok(Cow::Owned(text))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }
}

/// Reads JSON. An unpaired surrogate, which some servers write where they cut a text inside a pair, becomes a mark
/// (`split_chars`). `mended` holds the corrected text in that case.
pub(crate) fn read_json<'a, T: Deserialize<'a>>(
    json: &'a str,
    mended: &'a mut String,
) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        *mended = replace_halves(json, surrogate_marks).ok_or(error)?;
        serde_json::from_str(mended)
    })
}

/// Reads a complete JSON text. An unpaired surrogate becomes U+FFFD.
pub(crate) fn read_settled_json(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| {
        let settled = replace_halves(json, |_| "\\ufffd".into()).ok_or(error)?;
        serde_json::from_str(&settled)
    })
}

/// The JSON with another text for each unpaired surrogate; `None` if there is none.
fn replace_halves(json: &str, replacement: impl Fn(u16) -> String) -> Option<String> {
    let unit = |at: usize| -> Option<u16> {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut mended, mut copied_to, mut at) = (String::new(), 0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let is_pair = |low: u16| (0xDC00..0xE000).contains(&low);
        match unit(at) {
            Some(0xD800..0xDC00) if unit(at + 6).is_some_and(is_pair) => at += 12,
            Some(half @ 0xD800..0xE000) => {
                mended.push_str(&json[copied_to..at]);
                mended.push_str(&replacement(half));
                at += 6;
                copied_to = at;
            }
            Some(_) => at += 6,
            // Another escape, whose second byte may be a backslash too.
            None => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    (copied_to > 0).then(|| mended + &json[copied_to..])
}

/// An event with text. Most later events of a stream differ from it only in the text, and need no JSON parser.
#[derive(Debug)]
pub(crate) struct EventTemplate {
    /// The event up to the text, with its opening quote.
    before: String,
    /// The brackets after the text.
    closings: String,
}

impl EventTemplate {
    /// The template of the event `data` that has the string `text`. `None` if the string has escapes or another
    /// value follows it.
    pub(crate) fn new(data: &str, text: &str) -> Option<Self> {
        let at = text.as_ptr().addr().checked_sub(data.as_ptr().addr())?;
        // A string with escapes is not a part of the event.
        let (before, rest) = data.split_at_checked(at)?;
        let closings: String =
            without_spaces(rest.strip_prefix(text)?.strip_prefix('"')?).map(char::from).collect();
        let is_last = before.ends_with('"') && closings.bytes().all(|byte| matches!(byte, b'}' | b']'));
        is_last.then(|| Self { before: before.to_owned(), closings })
    }

    /// The text of another event, if nothing else differs. `None` if the text has escapes.
    pub(crate) fn text_of<'a>(&self, data: &'a str) -> Option<&'a str> {
        let rest = data.strip_prefix(&*self.before)?;
        let end = memchr::memchr2(b'"', b'\\', rest.as_bytes())?;
        let (text, rest) = (&rest[..end], rest[end..].strip_prefix('"')?);
        let is_valid = text.bytes().all(|byte| byte >= b' ');
        (is_valid && without_spaces(rest).eq(self.closings.bytes())).then_some(text)
    }
}

/// The bytes without the spaces of JSON: servers pad events with a random number of spaces.
fn without_spaces(json: &str) -> impl Iterator<Item = u8> {
    json.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::stream::text::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(&*serde_json::from_str::<TolerantText>(json).unwrap(), expected, "{json}");
    }

    #[test]
    fn any_json_value_deserialises_as_text() {
        check(r#""plain""#, "plain");
        check(r#""two\nlines""#, "two\nlines");
        check("null", "");
        check("7", "7");
        check("true", "");
        check("1.5", "");
        check(r#"{"a":[1]}"#, "");
        check(r#"[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]"#, "ab");
    }

    #[test]
    fn string_without_escapes_is_borrowed() {
        assert!(matches!(serde_json::from_str::<TolerantText>(r#""plain""#).unwrap().0, Cow::Borrowed(_)));
    }

    #[derive(Deserialize)]
    struct Note<'a> {
        #[serde(borrow, default)]
        kind: TolerantText<'a>,
        #[serde(borrow, default)]
        text: TolerantText<'a>,
    }

    proptest! {
        /// An event that fits a template has the text that the parser reads, and the other fields of the template.
        #[test]
        fn event_that_fits_template_reads_as_parsed(
            kind in "[a\"{}]{0,2}",
            texts in prop::array::uniform2("[ab\"\\\\{} \n€]{0,4}"),
            padding in "[ \t]{0,2}",
            suffix in prop_oneof![Just("}"), Just("} "), Just(",\"kind\":\"b\"}"), Just("}}"), Just("")],
            raw in any::<bool>(),
        ) {
            let quoted = |text: &str| match raw {
                true => format!("\"{text}\""),
                false => serde_json::to_string(text).unwrap(),
            };
            let kind = serde_json::to_string(&kind).unwrap();
            let first = format!("{{\"kind\":{kind},\"text\":{}{padding}}}", quoted(&texts[0]));
            let second = format!("{{\"kind\":{kind},\"text\":{}{suffix}", quoted(&texts[1]));
            if let Ok(read) = serde_json::from_str::<Note<'_>>(&first)
                && let Some(template) = EventTemplate::new(&first, &read.text)
            {
                prop_assert_eq!(template.text_of(&first), Some(&*read.text));
                if let Some(text) = template.text_of(&second) {
                    let parsed: Note<'_> = serde_json::from_str(&second).unwrap();
                    prop_assert_eq!((&*parsed.kind, &*parsed.text), (&*read.kind, text));
                } else if let Ok(parsed) = serde_json::from_str::<Note<'_>>(&second) {
                    // The second event differs in more than the text, or the text has escapes.
                    prop_assert!(parsed.kind != read.kind || second.contains('\\'));
                }
            }
        }
    }

    #[test]
    fn template_needs_text_without_escapes_at_the_end() {
        let template = |json: &'static str| {
            let note: Note<'_> = serde_json::from_str(json).unwrap();
            EventTemplate::new(json, &note.text)
        };
        assert!(template(r#"{"text":"a"}"#).is_some());
        assert!(template(r#"{"kind":"\n","text":""}"#).is_some());
        assert!(template(r#"{"text":"a\n"}"#).is_none());
        assert!(template(r#"{"text":"a","kind":"b"}"#).is_none());
        assert!(template(r#"{"kind":"a"}"#).is_none());
    }
}
