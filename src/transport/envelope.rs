//! JSON-RPC 2.0 envelopes, strictly by the specification: calls, notifications, batches, and invalid
//! messages.
//!
//! Ids are kept as the received bytes, so that `1.0`, `-7`, `1e400` and `"\u0061"` are echoed exactly.
//! Everything borrows from the message, and nothing recurses, however deep the JSON is.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::reply::{Fault, Kind};

/// The id of a reply to a message without a usable id.
pub(super) const NO_ID: &str = "null";

/// One call or notification.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// The id as received; `None` makes it a notification.
    pub id: Option<&'a str>,
    pub method: Cow<'a, str>,
    /// An object or an array, as received.
    pub params: Option<&'a str>,
}

/// An invalid call, with the id for the error reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidCall<'a> {
    pub id: &'a str,
    pub fault: Fault,
}

/// One element of a message.
pub(super) type Element<'a> = Result<Call<'a>, InvalidCall<'a>>;

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    One(Element<'a>),
    Batch(Vec<Element<'a>>),
}

/// Parses a message. Never fails: an invalid part is returned as the error to reply with.
pub(super) fn read(bytes: &[u8], max_batch: usize, max_depth: usize) -> Message<'_> {
    let refuse =
        |kind, text: String| Message::One(Err(InvalidCall { id: NO_ID, fault: Fault::new(kind, text) }));
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => return refuse(Kind::ParseError, format!("not UTF-8 at byte {}", e.valid_up_to())),
    };
    let unreadable = |e: serde_json::Error| refuse(Kind::ParseError, format!("not JSON: {e}"));
    match text.trim_start().bytes().next() {
        Some(b'{') => match serde_json::from_str::<Fields<'_>>(text) {
            Ok(fields) => Message::One(fields.check(max_depth)),
            Err(e) => unreadable(e),
        },
        Some(b'[') => {
            let mut json = serde_json::Deserializer::from_str(text);
            let batch = match (BatchSeed { max_items: max_batch }).deserialize(&mut json) {
                Ok(batch) => batch,
                Err(e) => return unreadable(e),
            };
            if let Err(e) = json.end() {
                return unreadable(e);
            }
            match batch.length {
                0 => refuse(Kind::InvalidRequest, "a batch must not be empty".into()),
                length if length > max_batch => refuse(
                    Kind::InvalidRequest,
                    format!("a batch of {length} calls is over the limit of {max_batch}"),
                ),
                _ => Message::Batch(batch.items.iter().map(|item| element(item, max_depth)).collect()),
            }
        }
        _ => match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => refuse(Kind::InvalidRequest, "a message must be an object or an array".into()),
            Err(e) => unreadable(e),
        },
    }
}

/// One element of a batch that is valid JSON.
fn element(item: &RawValue, max_depth: usize) -> Element<'_> {
    let refuse = |text: &str| Err(InvalidCall { id: NO_ID, fault: Fault::new(Kind::InvalidRequest, text) });
    if !item.get().starts_with('{') {
        return refuse("an element of a batch must be an object");
    }
    match serde_json::from_str::<Fields<'_>>(item.get()) {
        Ok(fields) => fields.check(max_depth),
        Err(_) => refuse("an element of a batch could not be read"),
    }
}

/// The members of an envelope as received. If a member is repeated, the last one counts; unknown
/// members are ignored.
#[derive(Default)]
struct Fields<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Field {
    Jsonrpc,
    Id,
    Method,
    Params,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            // Not derived: a derived `Option` would treat an `"id": null` as a missing id.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Fields::default();
                while let Some(field) = map.next_key()? {
                    match field {
                        Field::Jsonrpc => fields.jsonrpc = Some(map.next_value()?),
                        Field::Id => fields.id = Some(map.next_value()?),
                        Field::Method => fields.method = Some(map.next_value()?),
                        Field::Params => fields.params = Some(map.next_value()?),
                        Field::Other => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'a> Fields<'a> {
    fn check(self, max_depth: usize) -> Element<'a> {
        let invalid = |id: Option<&'a str>, text: String| {
            Err(InvalidCall { id: id.unwrap_or(NO_ID), fault: Fault::new(Kind::InvalidRequest, text) })
        };
        let id = self.id.map(RawValue::get);
        if let Some(id) = id
            && !matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9' | b'n'))
        {
            return invalid(None, "id must be a string, a number or null".into());
        }
        if self.jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return invalid(id, "jsonrpc must be \"2.0\"".into());
        }
        let Some(method) = self.method.and_then(string) else {
            return invalid(id, "method must be a string".into());
        };
        // Some clients send `null` for no parameters.
        let params = self.params.map(RawValue::get).filter(|params| *params != "null");
        if let Some(params) = params {
            if !params.starts_with(['{', '[']) {
                return invalid(id, "params must be an object, an array or null, or be left out".into());
            }
            if is_deeper(params, max_depth) {
                return invalid(id, format!("params are nested deeper than the limit of {max_depth}"));
            }
        }
        Ok(Call { id, method, params })
    }
}

/// The text of a JSON string; borrowed unless it contains escapes.
fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    if let Ok(text) = serde_json::from_str::<&str>(raw.get()) {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned)
}

/// Whether valid JSON is nested deeper than `max_depth`.
fn is_deeper(json: &str, max_depth: usize) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in json.bytes() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > max_depth {
                    return true;
                }
            }
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Parses an array and counts all its elements, but keeps only the allowed number. Otherwise a message
/// of commas and digits would grow into a vector of many times its size.
struct BatchSeed {
    max_items: usize,
}

struct Batch<'a> {
    items: Vec<&'a RawValue>,
    length: usize,
}

impl<'de> DeserializeSeed<'de> for BatchSeed {
    type Value = Batch<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Batch<'de>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for BatchSeed {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Batch<'de>, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.max_items {
            let Some(item) = seq.next_element()? else {
                return Ok(Batch { length: items.len(), items });
            };
            items.push(item);
        }
        let mut length = items.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            length += 1;
        }
        Ok(Batch { items, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes a call as `id method params`, a refusal as `id !kind`, and a batch in brackets.
    fn describe_message(text: &[u8]) -> String {
        fn element(element: &Element<'_>) -> String {
            match element {
                Ok(call) => {
                    format!("{} {} {}", call.id.unwrap_or("-"), call.method, call.params.unwrap_or("-"))
                }
                Err(refused) => format!("{} !{}", refused.id, refused.fault.kind.name()),
            }
        }
        match read(text, 3, 4) {
            Message::One(one) => element(&one),
            Message::Batch(all) => format!("[{}]", all.iter().map(element).collect::<Vec<_>>().join(", ")),
        }
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(describe_message(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn request_ids_keep_original_bytes() {
        let ids = [
            "1",
            "-1",
            "0.5",
            "1.0",
            "-0",
            "1e3",
            "1E400",
            "18446744073709551616",
            "123456789012345678901234567890",
            "null",
            "\"\"",
            "\"a\"",
            r#""\u0061\n""#,
            r#""ü""#,
        ];
        for id in ids {
            check(&format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"m"}}"#), &format!("{id} m -"));
        }
        check(r#"{"jsonrpc":"2.0","method":"m"}"#, "- m -");
        for id in ["true", "[]", "{}", "[1]", "false"] {
            check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "null !invalid_request");
        }
    }

    #[test]
    fn request_envelopes_are_parsed_or_refused() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}"#, r#"1 m {"a":[1]}"#);
        check(r#" {"params":[1, 2],"method":"m","id":1,"jsonrpc":"2.0"} "#, "1 m [1, 2]");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","more":{"x":null}}"#, "1 m -");
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b"}"#, "2 b -");
        check(r#"{"\u006asonrpc":"2\u002e0","id":1,"m\u0065thod":"m\u006d"}"#, "1 mm -");
        check(r#"{"id":1,"method":"m"}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":"2.0","id":1,"result":7}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "1 !invalid_request");
        check(r#"{"jsonrpc":"2.0","method":null}"#, "null !invalid_request");
        check(r#"{"jsonrpc":"2.0","id":1,"method":"m","params": null }"#, "1 m -");
        for params in ["1", "\"x\"", "true"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m","params":{params}}}"#);
            check(&text, "\"a\" !invalid_request");
        }
        check("{}", "null !invalid_request");
        check("7", "null !invalid_request");
        check("\"text\"", "null !invalid_request");
    }

    #[test]
    fn non_json_text_is_parse_error() {
        for text in [
            "",
            "{",
            "}",
            "nonsense",
            "{\"jsonrpc\":\"2.0\"",
            "{} {}",
            "[1] x",
            "[",
            "[1,",
            "{'a':1}",
            "\u{feff}{}",
            "{\"id\":01}",
            "\"\\x\"",
            "{\"a\":\"\n\"}",
        ] {
            check(text, "null !parse_error");
        }
        assert_eq!(
            describe_message(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
            "null !parse_error"
        );
        assert_eq!(describe_message(b"\0\x01\x02"), "null !parse_error");
    }

    #[test]
    fn batch_envelopes_are_parsed_within_limit() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
        check("[]", "null !invalid_request");
        check("[1]", "[null !invalid_request]");
        check(&format!("[{call}, [], {{}}]"), "[1 m -, null !invalid_request, null !invalid_request]");
        check(&format!("[{call},{call},{call}]"), "[1 m -, 1 m -, 1 m -]");
        check("[1,2,3,4]", "null !invalid_request");
        check("[1,2,3,4", "null !parse_error");
        let Message::One(Err(refused)) = read(b"[1,2,3,4,5]", 3, 9) else { panic!() };
        assert!(refused.fault.text.contains("5 calls is over the limit of 3"), "{}", refused.fault.text);
    }

    #[test]
    fn deeply_nested_json_is_refused_without_recursion() {
        let deep = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{open}{close}}}"#)
        };
        check(&deep(4), "1 m [[[[]]]]");
        check(&deep(5), "1 !invalid_request");
        check(&deep(1_000_000), "1 !invalid_request");
        check(&"[".repeat(1_000_000), "null !parse_error");
        let id = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        check(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#), "null !invalid_request");
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":["[[[[[\"[[[[["]}"#,
            r#"1 m ["[[[[[\"[[[[["]"#,
        );
    }
}
