//! An event's wire form: at most 64 KiB. Larger content is cut and stored as a blob.
//!
//! The journal stores the wire form and the blobs, and nothing twice: [`restore`] builds the complete event
//! from them. The cut depends on the event alone, and the restored event is identical to the original.
//!
//! Texts are cut at their end. With too many small values, lists and objects lose their last entries. Objects
//! lose entries only where the model or a tool made them (`input`, `detail`), so that every cut event still has
//! all fields of its kind.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::blob::{self, Blob, TruncatedField};
use super::event::Envelope;
use super::ids::BlobId;

/// Maximum bytes of an event on the wire. The rest of the 64 KiB is for the enclosing message.
pub const MAX_WIRE_BYTES: usize = 64 * 1024 - 512;
/// Minimum bytes for each entry of a list. If an entry would get fewer, the list loses entries.
const MIN_ENTRY_BYTES: usize = 1024;
/// Objects with at most this many fields keep all of them.
const MAX_WHOLE_FIELDS: usize = 24;
/// Number of levels below which no kind of event has fields of its own.
const MAX_FIELD_DEPTH: usize = 8;
/// Pairs of the bytes of the kept part and the minimum bytes of a list or an object whose entries are cut one by one.
/// The first pair with a result of at most [`MAX_WIRE_BYTES`] is used.
const CUT_SIZES: [(usize, usize); 5] =
    [(60 * 1024, 64), (48 * 1024, 512), (32 * 1024, 4096), (16 * 1024, 8192), (8 * 1024, 8192)];

/// The wire form of an event, and the blobs that were cut from it.
#[must_use]
pub fn wire(envelope: &Envelope) -> (String, Vec<Blob>) {
    // Events are plain data with string keys: writing them to memory cannot fail.
    let text = serde_json::to_string(envelope).unwrap_or_default();
    if text.len() <= MAX_WIRE_BYTES {
        return (text, Vec::new());
    }
    cut(&text).unwrap_or((text, Vec::new()))
}

/// The current wire form of an event of an older version, which may have other names of fields or exceed the
/// limit, and the blobs that were cut from it. `None` if it is not an event. An event that was truncated before
/// keeps its truncated fields, so its length can grow by the difference of the names.
#[must_use]
pub fn renew(text: &str) -> Option<(String, Vec<Blob>)> {
    let envelope: Envelope = serde_json::from_str(text).ok()?;
    if envelope.truncated_fields.is_empty() {
        return Some(wire(&envelope));
    }
    serde_json::to_string(&envelope).ok().map(|text| (text, Vec::new()))
}

/// Cuts an event that is given as a JSON text; `None` if it is not an event, or has too many small values to be
/// cut, which no event has.
#[must_use]
pub fn cut(text: &str) -> Option<(String, Vec<Blob>)> {
    let whole: Value = serde_json::from_str(text).ok()?;
    CUT_SIZES.iter().find_map(|&(max_bytes, min_bytes)| {
        let mut truncator = Truncator { min_bytes, cut_values: Vec::new() };
        let mut shrunk = truncator.shrink(&whole, &mut String::new(), max_bytes, 0, false);
        let mut blobs: Vec<Blob> = Vec::new();
        let cuts: Vec<TruncatedField> = truncator
            .cut_values
            .into_iter()
            .map(|(pointer, value)| {
                let blob = match value {
                    Value::String(text) => Blob::text(text),
                    other => Blob::new(blob::JSON, other.to_string().into_bytes()),
                };
                let field = TruncatedField {
                    pointer,
                    blob_id: blob.blob_id,
                    bytes: blob.len(),
                    media_type: blob.media_type.clone(),
                };
                if blobs.iter().all(|known| known.blob_id != blob.blob_id) {
                    blobs.push(blob);
                }
                field
            })
            .collect();
        shrunk.as_object_mut()?.insert("truncated_fields".into(), serde_json::to_value(cuts).ok()?);
        let text = shrunk.to_string();
        (text.len() <= MAX_WIRE_BYTES).then_some((text, blobs))
    })
}

/// The truncated fields of a wire form. It parses the text only if there may be some.
#[must_use]
pub fn truncated_fields(text: &str) -> Vec<TruncatedField> {
    #[derive(serde::Deserialize)]
    struct Head {
        #[serde(default, alias = "cut")]
        truncated_fields: Vec<TruncatedField>,
    }
    // A key of a tool's arguments may have the same name; then the event itself has no list of cuts.
    if ![r#""truncated_fields":["#, r#""cut":["#].iter().any(|mark| text.contains(mark)) {
        return Vec::new();
    }
    serde_json::from_str::<Head>(text).map(|head| head.truncated_fields).unwrap_or_default()
}

/// The complete event. `None` if the text is no event, or a blob that it refers to is missing.
#[must_use]
pub fn restore(text: &str, blobs: &HashMap<BlobId, Vec<u8>>) -> Option<Envelope> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    let fields = value.as_object_mut()?.remove("truncated_fields").unwrap_or_default();
    let fields: Vec<TruncatedField> = serde_json::from_value(fields).unwrap_or_default();
    fill(&mut value, &fields, |field| blobs.get(&field.blob_id).cloned())?;
    serde_json::from_value(value).ok()
}

/// Inserts cut values at their locations. `None` if one of them is missing.
pub fn fill(
    value: &mut Value,
    fields: &[TruncatedField],
    mut content_of: impl FnMut(&TruncatedField) -> Option<Vec<u8>>,
) -> Option<()> {
    for field in fields {
        let bytes = content_of(field)?;
        let content = match &*field.media_type {
            blob::JSON => serde_json::from_slice(&bytes).ok()?,
            _ => Value::String(String::from_utf8(bytes).ok()?),
        };
        *value.pointer_mut(&field.pointer)? = content;
    }
    Some(())
}

/// Cuts a tree of values to a size.
struct Truncator<'a> {
    /// Minimum bytes of a list or an object whose entries are cut one by one.
    min_bytes: usize,
    /// Locations that were cut, and their complete values.
    cut_values: Vec<(String, &'a Value)>,
}

impl<'a> Truncator<'a> {
    /// Reduces `value` to about `max_bytes` bytes. `may_drop_fields` says whether objects may lose fields.
    fn shrink(
        &mut self,
        value: &'a Value,
        at: &mut String,
        max_bytes: usize,
        depth: usize,
        may_drop_fields: bool,
    ) -> Value {
        if json_bytes(value, max_bytes) <= max_bytes {
            return value.clone();
        }
        let may_drop_fields = may_drop_fields || depth > MAX_FIELD_DEPTH;
        match value {
            Value::String(text) => {
                self.cut_values.push((at.clone(), value));
                Value::String(head(text, max_bytes).to_owned())
            }
            Value::Array(entries)
                if max_bytes >= self.min_bytes && entries.len() * MIN_ENTRY_BYTES <= max_bytes =>
            {
                let sizes = entries.iter().map(|entry| json_bytes(entry, max_bytes) + 1).collect();
                let limits = share_bytes(sizes, max_bytes - 2);
                let mut shrunk = Vec::with_capacity(entries.len());
                for (number, (entry, max_bytes)) in entries.iter().zip(limits).enumerate() {
                    let here = at.len();
                    at.push_str(&format!("/{number}"));
                    shrunk.push(self.shrink(
                        entry,
                        at,
                        max_bytes.saturating_sub(1),
                        depth + 1,
                        may_drop_fields,
                    ));
                    at.truncate(here);
                }
                Value::Array(shrunk)
            }
            Value::Array(entries) => {
                self.cut_values.push((at.clone(), value));
                let mut left = max_bytes.saturating_sub(2);
                let fits = |entry: &&Value| subtract_bytes(&mut left, json_bytes(entry, max_bytes) + 1);
                Value::Array(entries.iter().take_while(fits).cloned().collect())
            }
            Value::Object(fields)
                if !may_drop_fields
                    || max_bytes >= self.min_bytes
                        && fields.len() <= MAX_WHOLE_FIELDS
                        && fields.keys().all(|key| key.len() <= 256) =>
            {
                let names: usize = fields.keys().map(|key| escaped_bytes(key, usize::MAX) + 4).sum();
                let sizes = fields.values().map(|field| json_bytes(field, max_bytes)).collect();
                let limits = share_bytes(sizes, max_bytes.saturating_sub(2 + names));
                let mut shrunk = Map::new();
                for ((key, field), max_bytes) in fields.iter().zip(limits) {
                    let here = at.len();
                    at.push('/');
                    at.push_str(&key.replace('~', "~0").replace('/', "~1"));
                    let may_drop_fields =
                        may_drop_fields || (matches!(&**key, "input" | "detail") && field.is_object());
                    shrunk.insert(key.clone(), self.shrink(field, at, max_bytes, depth + 1, may_drop_fields));
                    at.truncate(here);
                }
                Value::Object(shrunk)
            }
            Value::Object(fields) => {
                self.cut_values.push((at.clone(), value));
                let mut left = max_bytes.saturating_sub(2);
                let fits = |(key, field): &(&String, &Value)| {
                    subtract_bytes(
                        &mut left,
                        escaped_bytes(key, max_bytes) + 2 + json_bytes(field, max_bytes),
                    )
                };
                Value::Object(
                    fields.iter().take_while(fits).map(|(key, field)| (key.clone(), field.clone())).collect(),
                )
            }
            other => other.clone(),
        }
    }
}

/// Subtracts `bytes` from `left`; returns `false` if fewer are left.
fn subtract_bytes(left: &mut usize, bytes: usize) -> bool {
    let fits = bytes <= *left;
    *left -= if fits { bytes } else { 0 };
    fits
}

/// Distributes bytes: small values get what they need, the others equal shares of the rest.
fn share_bytes(sizes: Vec<usize>, max_bytes: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| sizes[at]);
    let mut limits = vec![0; sizes.len()];
    let mut left = max_bytes;
    for (done, &at) in order.iter().enumerate() {
        limits[at] = sizes[at].min(left / (sizes.len() - done));
        left -= limits[at];
    }
    limits
}

/// Bytes of a value as JSON; any number above `max_bytes` if it is larger.
fn json_bytes(value: &Value, max_bytes: usize) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => escaped_bytes(text, max_bytes),
        Value::Array(entries) => {
            let mut sum = 2;
            for entry in entries {
                if sum > max_bytes {
                    break;
                }
                sum += json_bytes(entry, max_bytes) + 1;
            }
            sum
        }
        Value::Object(fields) => {
            let mut sum = 2;
            for (key, field) in fields {
                if sum > max_bytes {
                    break;
                }
                sum += escaped_bytes(key, max_bytes) + json_bytes(field, max_bytes) + 2;
            }
            sum
        }
    }
}

/// Bytes of a text as JSON; any number above `max_bytes` if it is larger.
fn escaped_bytes(text: &str, max_bytes: usize) -> usize {
    if text.len() > max_bytes {
        text.len() + 2
    } else {
        text.bytes().map(escaped_byte_len).sum::<usize>() + 2
    }
}

/// Number of bytes that this byte needs in a JSON text.
const fn escaped_byte_len(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..32 => 6,
        _ => 1,
    }
}

/// The longest beginning of a text that needs at most `max_bytes` bytes as JSON.
#[must_use]
pub fn head(text: &str, max_bytes: usize) -> &str {
    let mut left = max_bytes.saturating_sub(2);
    let end = text
        .bytes()
        .position(|byte| !subtract_bytes(&mut left, escaped_byte_len(byte)))
        .unwrap_or(text.len());
    &text[..text.floor_char_boundary(end)]
}
