//! A provider's rules for pictures and documents in a request: the keys, the media types, valid base64
//! of that media type, and the published size limits.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::model_rules::{Verdict, check_keys, object, rule, text_field};

/// Maximum base64 characters of one picture: 5 MB
/// (docs.anthropic.com/en/docs/build-with-claude/vision).
const MAX_PICTURE_BYTES: usize = 5 << 20;

/// `{"type": "image" | "document", "source": {…}}` of Anthropic Messages.
pub fn anthropic(block: &Map<String, Value>, place: &str) -> Verdict {
    let is_image = text_field(block, "type", place)? == "image";
    let known: &[&str] = match is_image {
        true => &["type", "source", "cache_control"],
        false => &["type", "source", "title", "cache_control"],
    };
    check_keys(block, place, known)?;
    let place = format!("{place}.source");
    let source = object(block.get("source").unwrap_or(&Value::Null), &place)?;
    check_keys(source, &place, &["type", "media_type", "data"])?;
    rule(source.get("type").is_some_and(|kind| kind == "base64"), format!("{place}: type must be base64"))?;
    content(is_image, text_field(source, "media_type", &place)?, text_field(source, "data", &place)?, &place)
}

/// `data:MEDIA_TYPE;base64,DATA`, the form of the OpenAI APIs.
pub fn data_url(is_image: bool, url: &str, place: &str) -> Verdict {
    let parts = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let Some((media_type, data)) = parts else { return Err(format!("{place}: no data URL in base64")) };
    content(is_image, media_type, data, place)
}

fn content(is_image: bool, media_type: &str, data: &str, place: &str) -> Verdict {
    let bytes = STANDARD.decode(data).map_err(|error| format!("{place}: no base64: {error}"))?;
    let is_so = match media_type {
        "image/png" => bytes.starts_with(b"\x89PNG\r\n\x1A\n"),
        "image/jpeg" => bytes.starts_with(b"\xFF\xD8\xFF"),
        "image/gif" => bytes.starts_with(b"GIF8"),
        "image/webp" => bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        "application/pdf" => bytes.starts_with(b"%PDF-"),
        _ => return Err(format!("{place}: media type {media_type} is not taken")),
    };
    rule(is_so, format!("{place}: the content is no {media_type}"))?;
    rule(is_image != (media_type == "application/pdf"), format!("{place}: {media_type} has no place here"))?;
    if is_image {
        rule(data.len() <= MAX_PICTURE_BYTES, format!("{place}: the picture is larger than 5 MB"))?;
        let decoded = image::load_from_memory(&bytes);
        let picture = decoded.map_err(|error| format!("{place}: the picture is broken: {error}"))?;
        let most = picture.width().max(picture.height());
        rule(most <= 8000, format!("{place}: the picture has a side of {most} pixels"))?;
    }
    Ok(())
}
