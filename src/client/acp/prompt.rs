//! The content blocks of a prompt as the input of a submit. Pure.

use serde_json::Value;

use super::wire::AcpError;
use api::params::{DocumentContent, FileContent, ResourceLink, SubmitBlock};

/// Bytes up to which a text goes to the daemon as a document with a name. A longer one is a text block.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;

/// Characters of a name.
const MAX_NAME_CHARS: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PromptInput {
    pub(super) blocks: Vec<SubmitBlock>,
    /// Whether the text goes to the model even if it looks like a command.
    pub(super) is_raw: bool,
}

/// Converts the blocks.
pub(super) fn prompt_input(prompt: &[Value]) -> Result<PromptInput, AcpError> {
    let mut blocks = Vec::new();
    for (index, block) in prompt.iter().enumerate() {
        let missing = |field: &str| AcpError::param(&format!("prompt[{index}].{field}"), "expected a text");
        let text = |value: &Value, field: &str| {
            value[field].as_str().map(str::to_owned).ok_or_else(|| missing(field))
        };
        match block["type"].as_str() {
            Some("text") => blocks.push(SubmitBlock::Text { text: text(block, "text")? }),
            Some("image") => {
                let media_type = block["mimeType"].as_str().map(str::to_owned);
                let name = block["uri"].as_str().map(|uri| one_line(uri_name(uri).0));
                let data = Some(text(block, "data")?);
                blocks.push(SubmitBlock::Image(FileContent { data, media_type, name, path: None }));
            }
            Some("resource_link") => {
                let uri = text(block, "uri")?;
                let (name, lines) = uri_name(&uri);
                let name = block["name"].as_str().unwrap_or(name);
                let note = lines.map(|lines| format!("The user means {lines} of {}.", uri_name(&uri).0));
                let name = Some(one_line(name)).filter(|name| !name.is_empty());
                blocks.push(SubmitBlock::ResourceLink(ResourceLink { uri, name, server: None }));
                blocks.extend(note.map(|text| SubmitBlock::Text { text }));
            }
            Some("resource") => blocks.push(embedded(&block["resource"]).ok_or_else(|| {
                let problem = "expected a uri with a text or a blob";
                AcpError::param(&format!("prompt[{index}].resource"), problem)
            })?),
            Some("audio") => {
                let problem = "audio is not supported; promptCapabilities names what is";
                return Err(AcpError::param(&format!("prompt[{index}].type"), problem));
            }
            other => {
                let problem = format!("{} is not a type of content", other.unwrap_or("nothing"));
                return Err(AcpError::param(&format!("prompt[{index}].type"), &problem));
            }
        }
    }
    let is_blank =
        |block: &SubmitBlock| matches!(block, SubmitBlock::Text { text } if text.trim().is_empty());
    if blocks.iter().all(is_blank) {
        return Err(AcpError::param("prompt", "there is no content in it"));
    }
    // A heading of Markdown is no note for the project, and a path at the beginning is no command.
    let is_raw = !matches!(blocks.as_slice(), [SubmitBlock::Text { text }] if is_command(text));
    Ok(PromptInput { blocks, is_raw })
}

fn is_command(text: &str) -> bool {
    let name = text.strip_prefix('/').and_then(|rest| rest.split(char::is_whitespace).next());
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// The content of a buffer or of a part of it. It may differ from the disk, so that its name says where it is from.
fn embedded(resource: &Value) -> Option<SubmitBlock> {
    let (path, lines) = uri_name(resource["uri"].as_str()?);
    let place = lines.map_or_else(|| path.to_owned(), |lines| format!("{path}, {lines}"));
    if let Some(text) = resource["text"].as_str() {
        let name = one_line(&format!("{place} (text from the editor, maybe not saved)"));
        // An empty buffer or a long one is no document for the daemon.
        if text.trim().is_empty() || text.len() > MAX_DOCUMENT_BYTES {
            return Some(SubmitBlock::Text { text: format!("{name}:\n{text}") });
        }
        let content =
            DocumentContent { text: Some(text.to_owned()), name: Some(name), ..DocumentContent::default() };
        return Some(SubmitBlock::Document(content));
    }
    let data = Some(resource["blob"].as_str()?.to_owned());
    let media_type = resource["mimeType"].as_str().map(str::to_owned);
    Some(SubmitBlock::File(FileContent { data, media_type, name: Some(one_line(&place)), path: None }))
}

/// The path of a `file:` URI, or the URI itself, and the lines that its fragment names (`#L10`, `#L10:20`,
/// `#L10-L20`).
fn uri_name(uri: &str) -> (&str, Option<String>) {
    let (place, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    let path = place.strip_prefix("file://").filter(|path| path.starts_with('/')).unwrap_or(place);
    let range =
        fragment.strip_prefix('L').map(|range| range.split_once([':', '-']).unwrap_or((range, range)));
    let number = |text: &str| text.trim_start_matches('L').parse::<u32>().ok();
    let lines = range.and_then(|(first, last)| Some((number(first)?, number(last)?)));
    let lines = lines.map(|(first, last)| match last {
        _ if first == last => format!("line {first}"),
        _ => format!("lines {first} to {last}"),
    });
    (path, lines)
}

fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    // The end of a path says more than its beginning.
    let surplus = text.chars().count().saturating_sub(MAX_NAME_CHARS);
    plain.skip(surplus).collect::<String>().trim().to_owned()
}

/// Replaces the block that the daemon could not use by a sentence, so that the rest of the prompt arrives. `None` if
/// the error is not about such a block.
pub(super) fn without_unreadable(blocks: &[SubmitBlock], error: &AcpError) -> Option<Vec<SubmitBlock>> {
    let path = error.data.as_ref()?["path"].as_str()?;
    let index: usize = path.strip_prefix("input[")?.split_once(']')?.0.parse().ok()?;
    let name = match blocks.get(index)? {
        SubmitBlock::Text { .. } => return None,
        SubmitBlock::ResourceLink(link) => Some(link.uri.clone()),
        SubmitBlock::Image(file) | SubmitBlock::File(file) => file.name.clone(),
        SubmitBlock::Document(document) => document.name.clone(),
    };
    let name = name.unwrap_or_else(|| "an attachment".into());
    let reason =
        error.message.strip_prefix(path).map_or(error.message.as_str(), |rest| rest.trim_start_matches(": "));
    let mut blocks = blocks.to_vec();
    blocks[index] =
        SubmitBlock::Text { text: format!("[{} could not be attached: {reason}]", one_line(&name)) };
    Some(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn blocks(prompt: &[Value]) -> Vec<SubmitBlock> {
        prompt_input(prompt).expect("an input").blocks
    }

    #[test]
    fn only_single_text_with_command_name_is_a_command() {
        let is_raw =
            |text: &str| prompt_input(&[json!({"type": "text", "text": text})]).expect("an input").is_raw;
        for command in ["/context", "/compact keep the names", "/mcp__a__b x", "/unknown"] {
            assert!(!is_raw(command), "{command}");
        }
        for text in ["# Heading", "hello", "/usr/bin/env fails", "/ x", " /context", "//"] {
            assert!(is_raw(text), "{text}");
        }
        let two = [json!({"type": "text", "text": "/context"}), json!({"type": "text", "text": "x"})];
        assert!(prompt_input(&two).expect("an input").is_raw);
        assert_eq!(blocks(&two).len(), 2, "texts are not joined");
    }

    #[test]
    fn prompt_without_content_or_with_unknown_type_is_refused() {
        let wrong = [
            json!([]),
            json!([{"type": "text", "text": " \n"}]),
            json!([{"type": "text"}]),
            json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]),
            json!([{"type": "video"}]),
            json!([{}]),
            json!(["text"]),
            json!([{"type": "resource", "resource": {"uri": "file:///x"}}]),
        ];
        for prompt in wrong {
            let error = prompt_input(prompt.as_array().expect("a list")).expect_err("refused");
            assert!(error.code == -32602 && error.message.starts_with("prompt"), "{prompt}: {error:?}");
        }
    }

    #[test]
    fn link_keeps_uri_and_names_its_lines() {
        let link = |uri: &str, name: &str| {
            let link = ResourceLink { uri: uri.into(), name: Some(name.into()), server: None };
            SubmitBlock::ResourceLink(link)
        };
        let given = |uri: &str| blocks(&[json!({"type": "resource_link", "uri": uri, "name": "x"})]);
        assert_eq!(given("file:///a/x"), [link("file:///a/x", "x")]);
        assert_eq!(given("zed://agent/1"), [link("zed://agent/1", "x")]);
        for (uri, lines) in [
            ("file:///a/x#L10:20", "lines 10 to 20"),
            ("file:///a/x#L7", "line 7"),
            ("file:///a/x#L3-L9", "lines 3 to 9"),
        ] {
            let note = SubmitBlock::Text { text: format!("The user means {lines} of /a/x.") };
            assert_eq!(given(uri), [link(uri, "x"), note], "{uri}");
        }
        let long = blocks(&[json!({"type": "resource_link", "uri": "file:///a", "name": "n\n".repeat(300)})]);
        let SubmitBlock::ResourceLink(ResourceLink { name: Some(name), .. }) = &long[0] else {
            panic!("{long:?}")
        };
        assert!(name.chars().count() <= MAX_NAME_CHARS && !name.contains('\n'), "{name:?}");
    }

    #[test]
    fn buffer_text_is_named_as_unsaved() {
        let resource = |text: &str| json!({"type": "resource", "resource": {"uri": "file:///a/x.rs#L1:2", "text": text}});
        let SubmitBlock::Document(content) = &blocks(&[resource("fn main() {}")])[0] else {
            panic!("no document")
        };
        assert_eq!(
            content.name.as_deref(),
            Some("/a/x.rs, lines 1 to 2 (text from the editor, maybe not saved)")
        );
        assert_eq!(content.text.as_deref(), Some("fn main() {}"));
        for text in [String::new(), "x".repeat(MAX_DOCUMENT_BYTES + 1)] {
            let SubmitBlock::Text { text: sent } = &blocks(&[resource(&text)])[0] else { panic!("no text") };
            assert!(sent.ends_with(&text) && sent.contains("maybe not saved"));
        }
        let blob = json!({"type": "resource", "resource": {"uri": "file:///a.pdf", "blob": "AAAA"}});
        assert!(matches!(&blocks(&[blob])[0], SubmitBlock::File(_)));
    }

    #[test]
    fn unreadable_attachment_becomes_a_sentence() {
        let given = blocks(&[
            json!({"type": "text", "text": "see"}),
            json!({"type": "resource_link", "uri": "file:///none", "name": "none"}),
        ]);
        let error = AcpError::param("input[1].path", "there is no such file");
        let replaced = without_unreadable(&given, &error).expect("replaced");
        let sentence = "[file:///none could not be attached: there is no such file]";
        assert_eq!(replaced[1], SubmitBlock::Text { text: sentence.into() });
        for path in ["input", "input[0].text", "input[9].path", "model"] {
            assert_eq!(without_unreadable(&given, &AcpError::param(path, "no")), None, "{path}");
        }
    }
}
