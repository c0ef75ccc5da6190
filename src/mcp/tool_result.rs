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

/// A result.
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

/// Converts a result.
pub(super) fn answer(result: CallToolResult) -> ToolAnswer {
    let mut answer = ToolAnswer { is_error: result.is_error == Some(true), ..ToolAnswer::default() };
    for block in &result.content {
        answer.add(block);
    }
    // Servers with older revisions of the protocol repeat structured content as text. The model needs it once.
    let has_text = result.content.iter().any(|block| matches!(block, ContentBlock::Text(_)));
    if let (Some(structured), false) = (&result.structured_content, has_text) {
        answer.add_text(&structured.to_string());
    }
    answer.structured = result.structured_content;
    answer
}

impl ToolAnswer {
    fn add_text(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    pub(super) fn add(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.add_text(&text.text),
            ContentBlock::Image(image) => self.add_media(&image.mime_type, &image.data),
            ContentBlock::Audio(audio) => {
                self.add_text(&format!(
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
            _ => self.add_text("[content of an unknown kind, not shown]"),
        }
    }

    /// Adds the content of a resource.
    pub(super) fn add_resource(&mut self, resource: &ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.add_text(&format!("[resource {uri}]\n{text}"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
                if media_type.starts_with("image/") {
                    self.add_media(media_type, blob);
                } else {
                    self.add_text(&format!(
                        "[resource {uri} ({media_type}), {} bytes in base64, not shown]",
                        blob.len()
                    ));
                }
            }
            _ => self.add_text("[a resource of an unknown kind, not shown]"),
        }
    }

    fn add_media(&mut self, media_type: &str, data: &str) {
        if self.media.len() == MAX_MEDIA_PARTS {
            self.add_text("[a further picture is left out]");
            return;
        }
        match STANDARD.decode(data.trim()) {
            Ok(bytes) => self.media.push(ResultMedia { media_type: media_type.to_owned(), bytes }),
            Err(_) => self.add_text("[a picture that is not valid base64]"),
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
        let both =
            parse_answer(json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}}));
        assert_eq!(both.text, "x");
    }
}
