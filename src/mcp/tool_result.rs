//! The result of a call, as text for the model, data for clients, and pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Maximum number of pictures of one result.
const MAX_MEDIA_PARTS: usize = 10;

/// A picture of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultMedia {
    /// Its media type as the server says.
    pub media_type: String,
    /// Its content. It is not checked.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolAnswer {
    /// The text for the model.
    pub text: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// The structured content, for clients.
    pub structured: Option<Value>,
    /// The pictures.
    pub media: Vec<ResultMedia>,
}

/// Maximum number of notes about parts that are not shown.
const MAX_NOTES: usize = 20;
/// Maximum bytes of a part that is shown because it cannot be read.
const MAX_SHOWN_BYTES: usize = 500;

/// Converts a result.
pub(super) fn answer(result: CallToolResult) -> ToolAnswer {
    let is_error = result.is_error == Some(true);
    let has_structure = result.structured_content.is_some();
    let mut answer = AnswerBuilder { is_error, has_structure, ..AnswerBuilder::default() };
    for block in &result.content {
        answer.add(block);
    }
    answer.finish(result.structured_content)
}

/// Reads a result that is not as the protocol wants it. The tool has run, so that every part that can be read counts.
/// `None` if it is no result of a tool.
pub(super) fn read_answer(result: &Value) -> Option<ToolAnswer> {
    let Value::Object(fields) = result else { return None };
    // Servers of the first revision have `toolResult`.
    let structured = fields.get("structuredContent").or_else(|| fields.get("toolResult"));
    let is_error = match fields.get("isError") {
        Some(Value::Bool(is_error)) => *is_error,
        Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
        _ => false,
    };
    let is_complete = fields.get("resultType").is_none_or(|kind| kind.is_null() || kind == "complete");
    let has = |key: &&str| fields.contains_key(*key);
    let is_result = ["content", "structuredContent", "toolResult", "isError"].iter().any(has);
    // Some servers answer with nothing.
    let is_empty = fields.keys().all(|key| matches!(key.as_str(), "resultType" | "_meta"));
    if !is_complete || !(is_result || is_empty) {
        return None;
    }
    let has_structure = structured.is_some();
    let mut answer = AnswerBuilder { is_error, has_structure, ..AnswerBuilder::default() };
    match fields.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().for_each(|block| answer.add_value(block)),
        None | Some(Value::Null) => {}
        Some(block) => answer.add_value(block),
    }
    Some(answer.finish(structured.cloned()))
}

/// An answer that grows with each block.
#[derive(Default)]
struct AnswerBuilder {
    text: String,
    is_error: bool,
    media: Vec<ResultMedia>,
    /// Whether the result has structured content.
    has_structure: bool,
    /// Text blocks that are JSON, if it has.
    json: Vec<Value>,
    /// Number of notes about parts that are not shown, and of those that are left out.
    notes: usize,
    left_out: usize,
}

impl AnswerBuilder {
    fn finish(mut self, structured: Option<Value>) -> ToolAnswer {
        if self.left_out > 0 {
            let left_out = self.left_out;
            self.add_text(&format!("[{left_out} further parts are not shown]"));
        }
        // Servers repeat structured content as text for clients of older revisions. The model needs it once.
        if let Some(structured) = structured.as_ref().filter(|structured| !structured.is_null())
            && !self.repeats(structured)
        {
            self.add_text(&structured.to_string());
        }
        ToolAnswer { text: self.text, is_error: self.is_error, structured, media: self.media }
    }

    /// Whether the text has this value already.
    fn repeats(&self, structured: &Value) -> bool {
        // A value that is no object is wrapped in one.
        let inner =
            structured.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("result"));
        let list = inner.and_then(Value::as_array);
        [Some(structured), inner]
            .into_iter()
            .flatten()
            .any(|value| self.json.contains(value) || value.as_str().is_some_and(|text| text == self.text))
            || list.is_some_and(|list| !list.is_empty() && *list == self.json)
    }
}

/// The text of a prompt's messages.
pub(super) fn prompt_text<'b>(blocks: impl Iterator<Item = &'b ContentBlock>) -> String {
    let mut answer = AnswerBuilder::default();
    blocks.for_each(|block| answer.add(block));
    answer.finish(None).text
}

impl AnswerBuilder {
    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn add_server_text(&mut self, text: &str) {
        if self.has_structure
            && let Ok(value) = serde_json::from_str(text)
        {
            self.json.push(value);
        }
        self.add_text(text);
    }

    /// Adds a note in the place of a part. A result may have very many such parts.
    fn add_note(&mut self, note: &str) {
        match self.notes < MAX_NOTES {
            true => self.add_text(note),
            false => self.left_out += 1,
        }
        self.notes += 1;
    }

    fn add(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.add_server_text(&text.text),
            ContentBlock::Image(image) => self.add_media(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => {
                self.add_note(&format!(
                    "[audio of {} bytes in base64 ({}), not shown]",
                    audio.data.len(),
                    audio.mime_type
                ));
            }
            ContentBlock::Resource(embedded) => self.add_resource(&embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
                self.add_text(&format!("[resource {} ({}){about}]", link.uri, link.name));
            }
            _ => self.add_note("[content of an unknown kind, not shown]"),
        }
    }

    /// Adds a block that may not be as the protocol wants it.
    fn add_value(&mut self, block: &Value) {
        if let Value::String(text) = block {
            return self.add_server_text(text);
        }
        if let Ok(block) = serde_json::from_value::<ContentBlock>(block.clone()) {
            return self.add(&block);
        }
        let text = |key: &str| match &block[key] {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        match (block["type"].as_str(), text("text"), block["data"].as_str()) {
            (Some("text") | None, Some(text), _) => self.add_server_text(&text),
            (Some("image"), _, Some(data)) => {
                self.add_media(block["mimeType"].as_str().unwrap_or_default(), data)
            }
            (Some("audio"), _, Some(data)) => {
                self.add_note(&format!("[audio of {} bytes in base64, not shown]", data.len()));
            }
            (Some("resource"), ..) if block["resource"]["text"].is_string() => {
                let resource = &block["resource"];
                let (uri, text) = (resource["uri"].as_str(), resource["text"].as_str());
                self.add_text(&format!(
                    "[resource {}]\n{}",
                    uri.unwrap_or("without a name"),
                    text.unwrap_or_default()
                ));
            }
            (Some("resource_link"), ..) if block["uri"].is_string() => {
                let uri = block["uri"].as_str().unwrap_or_default();
                self.add_text(&format!("[resource {uri}]"));
            }
            (kind, text, _) => {
                let kind =
                    kind.map_or_else(|| "without a kind".to_owned(), |kind| format!("of the kind {kind:?}"));
                let shown = text.unwrap_or_else(|| block.to_string());
                let end = shown.floor_char_boundary(MAX_SHOWN_BYTES);
                let more = if end < shown.len() { "…" } else { "" };
                self.add_note(&format!("[a part {kind}, which cannot be read: {}{more}]", &shown[..end]));
            }
        }
    }

    /// Adds the content of a resource.
    fn add_resource(&mut self, resource: &ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.add_text(&format!("[resource {uri}]\n{text}"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
                if media_type.starts_with("image/") {
                    self.add_media(media_type, blob);
                } else {
                    self.add_note(&format!(
                        "[resource {uri} ({media_type}), {} bytes in base64, not shown]",
                        blob.len()
                    ));
                }
            }
            _ => self.add_note("[a resource of an unknown kind, not shown]"),
        }
    }

    fn add_media(&mut self, media_type: &str, data: &str) {
        if self.media.len() == MAX_MEDIA_PARTS {
            self.add_note("[a further picture is left out]");
            return;
        }
        match STANDARD.decode(data.trim()) {
            Ok(bytes) => self.media.push(ResultMedia { media_type: media_type.to_owned(), bytes }),
            Err(_) => self.add_note("[a picture that is not valid base64]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_answer(value: Value) -> ToolAnswer {
        answer(serde_json::from_value(value).expect("a result"))
    }

    #[test]
    fn tool_result_gives_text_pictures_and_structure() {
        let result = parse_answer(json!({"content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "two"}},
            {"type": "resource_link", "uri": "file:///y", "name": "y"}
        ]}));
        assert_eq!(result.text, "one\n[resource file:///x]\ntwo\n[resource file:///y (y)]");
        assert_eq!(result.media, [ResultMedia { media_type: "image/png".into(), bytes: vec![0, 1, 2] }]);
        assert!(!result.is_error);
    }

    #[test]
    fn structured_result_without_text_is_shown_as_json() {
        let result = parse_answer(json!({"content": [], "structuredContent": {"a": 1}, "isError": true}));
        assert_eq!((result.text.as_str(), result.is_error), (r#"{"a":1}"#, true));
        assert_eq!(result.structured, Some(json!({"a": 1})));
    }

    #[test]
    fn structured_content_reaches_model_once_also_with_text() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        for (content, structured, expected) in [
            (text("3 files"), json!({"a": 1}), "3 files\n{\"a\":1}"),
            (text("{\n  \"a\": 1\n}"), json!({"a": 1}), "{\n  \"a\": 1\n}"),
            (text("plain"), json!({"result": "plain"}), "plain"),
            (text("[1,2]"), json!({"result": [1, 2]}), "[1,2]"),
            (text("plain"), json!({"result": "other"}), "plain\n{\"result\":\"other\"}"),
            (
                json!([{"type": "text", "text": "{\"b\":1}"}, {"type": "text", "text": "{\"b\":2}"}]),
                json!({"result": [{"b": 1}, {"b": 2}]}),
                "{\"b\":1}\n{\"b\":2}",
            ),
            (text("x"), Value::Null, "x"),
        ] {
            let result = parse_answer(json!({"content": content, "structuredContent": structured}));
            assert_eq!(result.text, expected, "{content} {structured}");
        }
    }

    #[test]
    fn odd_parts_of_result_are_read_one_by_one() {
        let read = |content: Value| read_answer(&json!({"content": content})).expect("a result");
        for (block, expected) in [
            (json!({"type": "text", "text": 5}), "5"),
            (json!({"type": "text", "text": "x", "annotations": {"priority": 5}}), "x"),
            (json!({"type": "text", "text": "x", "annotations": "high"}), "x"),
            (json!({"type": "text", "text": {"a": 1}}), "{\"a\":1}"),
            (json!({"text": "x"}), "x"),
            (json!("x"), "x"),
            (
                json!({"type": "video", "url": "v"}),
                "[a part of the kind \"video\", which cannot be read: {\"type\":\"video\",\"url\":\"v\"}]",
            ),
            (
                json!({"type": "video", "text": "caption"}),
                "[a part of the kind \"video\", which cannot be read: caption]",
            ),
            (json!({"type": "resource", "resource": {"text": "x"}}), "[resource without a name]\nx"),
            (json!({"type": "resource_link", "uri": "file:///x"}), "[resource file:///x]"),
            (json!(7), "[a part without a kind, which cannot be read: 7]"),
        ] {
            let result =
                read(json!([{"type": "text", "text": "before"}, block, {"type": "text", "text": "after"}]));
            assert_eq!(result.text, format!("before\n{expected}\nafter"));
        }
        let picture = read(json!([{"type": "image", "data": "AAEC"}]));
        assert_eq!(picture.media, [ResultMedia { media_type: String::new(), bytes: vec![0, 1, 2] }]);
        assert_eq!(read(json!({"type": "text", "text": "alone"})).text, "alone");
        let other = read_answer(&json!({"content": null, "structuredContent": [1], "isError": "true"}))
            .expect("a result");
        assert_eq!((other.text.as_str(), other.is_error), ("[1]", true));
        assert_eq!(read_answer(&json!({"resultType": "complete"})), Some(ToolAnswer::default()));
        for none in [json!(null), json!({"tools": []}), json!({"content": [], "resultType": "task"})] {
            assert_eq!(read_answer(&none), None, "{none}");
        }
    }

    #[test]
    fn result_with_thousands_of_parts_is_bounded() {
        let picture = json!({"type": "image", "data": "AAEC", "mimeType": "image/png"});
        for (part, notes) in [(picture, MAX_NOTES), (json!({"type": "video", "x": "y"}), MAX_NOTES)] {
            let media = if part["type"] == "image" { MAX_MEDIA_PARTS } else { 0 };
            let result = read_answer(&json!({"content": vec![part; 10_000]})).expect("a result");
            assert_eq!(result.media.len(), media);
            assert_eq!(result.text.lines().count(), notes + 1);
            let left_out = format!("[{} further parts are not shown]", 10_000 - media - notes);
            assert!(result.text.ends_with(&left_out), "{}", result.text);
        }
    }
}
