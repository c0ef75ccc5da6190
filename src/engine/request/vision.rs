//! Finds the parts of a conversation that need a model with vision, and replaces these parts for a
//! provider that refuses them.

use std::sync::Arc;

use crate::request::model_texts;
use types::blob::{Attachment, AttachmentKind, Document, PDF, Picture};
use types::message::{Block, Message};
use types::model::{FaultKind, ModelFault};

/// Whether a request of these messages shows a picture. A PDF does not count, because a model without vision
/// receives its text.
#[must_use]
pub fn needs_vision<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    let blocks = messages.into_iter().flat_map(|message| &message.content);
    blocks.flat_map(|block| block.media_refs()).any(|(kind, _)| kind == AttachmentKind::Image)
}

/// Number of pictures and PDFs in a request of these messages.
pub(crate) fn count_media<'a>(messages: impl IntoIterator<Item = &'a Message>) -> usize {
    let blocks = messages.into_iter().flat_map(|message| &message.content);
    blocks.map(|block| block.media_refs().count()).sum()
}

/// Whether a provider refused a request because of its media. No provider has a stable code for it, but all
/// name the refused type. Some answer with 404 (no server for this model accepts pictures) or with 500 (a
/// server that was started without vision).
pub(crate) fn is_about_media(fault: &ModelFault) -> bool {
    // The last word occurs in the text of `model::stream::fault` for the status 413.
    const WORDS: [&str; 9] = [
        "image",
        "picture",
        "vision",
        "multimodal",
        "multi-modal",
        "media_type",
        "media type",
        "pdf",
        "the request is too large",
    ];
    let may_be = matches!(fault.kind, FaultKind::BadRequest | FaultKind::NotFound | FaultKind::Server);
    let error_texts = [Some(&fault.message), fault.word.as_ref()];
    let names = |text: &String| {
        let text = text.to_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    may_be && error_texts.into_iter().flatten().any(names)
}

/// Replaces every picture and PDF by a text. The text of a PDF contains the PDF's own text, if it is known.
pub(crate) fn replace_media(transcript: &mut [Arc<Message>]) {
    for message in transcript {
        if message.content.iter().any(|block| block.media_refs().next().is_some()) {
            Arc::make_mut(message).content.iter_mut().for_each(replace_media_in_block);
        }
    }
}

fn replace_media_in_block(block: &mut Block) {
    match block {
        Block::Image(Picture { blob, name }) => {
            let text = model_texts::withheld(AttachmentKind::Image, blob, name.as_deref());
            *block = Block::Text { text };
        }
        Block::Document(Document { blob, name, text, .. }) if blob.media_type == PDF => {
            let mut replacement = model_texts::withheld(AttachmentKind::Document, blob, name.as_deref());
            if !text.trim().is_empty() {
                replacement.push_str(" Its text:\n");
                replacement.push_str(text.trim_end());
            }
            *block = Block::Text { text: replacement };
        }
        Block::ToolResult { content, attachments, .. } => {
            // Media that the result's text already contains need no replacement.
            for Attachment { kind, blob, name, .. } in attachments.drain(..).filter(|it| !it.in_text) {
                if !content.is_empty() {
                    content.push('\n');
                }
                content.push_str(&model_texts::withheld(kind, &blob, name.as_deref()));
            }
        }
        Block::Document(_)
        | Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolCall(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::request::vision::*;
    use types::blob::{Blob, BlobRef};
    use types::ids::{Mint, Seed};
    use types::message::Role;

    #[test]
    fn provider_image_errors_are_recognised() {
        let fault = |kind, text: &str| ModelFault::new(kind, text);
        for (kind, text) in [
            // Anthropic.
            (FaultKind::BadRequest, "messages.0.content.1.image.source.base64: invalid base64 data"),
            (FaultKind::BadRequest, "Could not process image"),
            (FaultKind::BadRequest, "messages.0.content.0.pdf: The PDF specified was not valid."),
            // OpenAI.
            (
                FaultKind::BadRequest,
                "You uploaded an unsupported image. Please make sure your image is valid.",
            ),
            (FaultKind::BadRequest, "Invalid content type. image_url is only supported by certain models."),
            // DeepSeek, vLLM, OpenRouter, llama.cpp.
            (FaultKind::BadRequest, "unknown variant `image_url`, expected `text`"),
            (FaultKind::BadRequest, "this is not a multimodal model"),
            (FaultKind::NotFound, "No endpoints found that support image input"),
            (FaultKind::Server, "image input is not supported - hint: you may need to provide the mmproj"),
        ] {
            assert!(is_about_media(&fault(kind, text)), "{text}");
        }
        for (kind, text) in [
            (FaultKind::BadRequest, "max_tokens is too large"),
            (FaultKind::Server, "the provider failed, or the server at base_url of [providers.x]"),
            (FaultKind::RateLimited, "too many images per minute"),
            (FaultKind::Unauthorized, "the key may not use the vision model"),
        ] {
            assert!(!is_about_media(&fault(kind, text)), "{text}");
        }
        let by_word =
            ModelFault { word: Some("image_parse_error".into()), ..fault(FaultKind::BadRequest, "no") };
        assert!(is_about_media(&by_word));
    }

    #[test]
    fn withheld_images_are_replaced_by_description() {
        let blob = |media_type| BlobRef::from(&Blob::new(media_type, *b"x"));
        let attachment = |kind, media_type, in_text| Attachment {
            kind,
            blob: blob(media_type),
            name: Some("a".into()),
            in_text,
        };
        let text_file =
            Document { blob: blob("text/plain"), name: None, text: "plain".into(), unsaved: false };
        let content = vec![
            Block::Text { text: "look".into() },
            Block::Image(Picture { blob: blob("image/png"), name: Some("shot.png".into()) }),
            Block::Document(Document {
                blob: blob(PDF),
                name: None,
                text: "the pages\n".into(),
                unsaved: false,
            }),
            Block::Document(text_file.clone()),
            Block::ToolResult {
                call_id: Mint::new(0, Seed(1)).call(),
                provider_id: "p".into(),
                content: "read".into(),
                is_error: false,
                attachments: vec![
                    attachment(AttachmentKind::Image, "image/gif", false),
                    attachment(AttachmentKind::Document, PDF, true),
                ],
            },
        ];
        let untouched = Arc::new(Message::user("a"));
        let mut transcript = vec![Arc::clone(&untouched), Arc::new(Message::new(Role::User, content))];
        assert_eq!(count_media(transcript.iter().map(|message| &**message)), 4);
        replace_media(&mut transcript);
        assert_eq!(count_media(transcript.iter().map(|message| &**message)), 0);
        assert!(Arc::ptr_eq(&transcript[0], &untouched), "what shows nothing is not copied");
        let message_json = serde_json::to_string(&transcript[1]).expect("written");
        for expected in ["look", "shot.png", "the pages", "image/gif", "read"] {
            assert!(message_json.contains(expected), "{expected}: {message_json}");
        }
        assert_eq!(transcript[1].content[3], Block::Document(text_file));
        let once = transcript.clone();
        replace_media(&mut transcript);
        assert_eq!(transcript, once, "a second time changes nothing");
    }

    #[test]
    fn images_need_vision_and_documents_do_not() {
        let blob = |media_type| BlobRef::from(&Blob::new(media_type, *b"x"));
        let picture = Block::Image(Picture { blob: blob("image/png"), name: None });
        let document =
            Block::Document(Document { blob: blob(PDF), name: None, text: "x".into(), unsaved: false });
        let result = |kind, media_type| Block::ToolResult {
            call_id: Mint::new(0, Seed(1)).call(),
            provider_id: "p".into(),
            content: "x".into(),
            is_error: false,
            attachments: vec![Attachment { kind, blob: blob(media_type), name: None, in_text: true }],
        };
        for (block, expected) in [
            (Block::Text { text: "x".into() }, false),
            (picture, true),
            (document, false),
            (result(AttachmentKind::Image, "image/gif"), true),
            (result(AttachmentKind::Document, PDF), false),
        ] {
            let message = Message::new(Role::User, vec![block]);
            assert_eq!(needs_vision(&[Message::user("a"), message.clone()]), expected, "{message:?}");
        }
    }
}
