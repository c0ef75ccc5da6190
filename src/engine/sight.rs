//! Whether a conversation shows something that only a model with sight understands (Q7, Q31).

use std::borrow::Borrow;

use crate::types::blob::AttachmentKind;
use crate::types::message::Message;

/// Whether a request of these messages shows a picture. A PDF does not count: of one, a model without
/// sight is given the text.
#[must_use]
pub fn needs_sight<M: Borrow<Message>>(messages: &[M]) -> bool {
    let blocks = messages.iter().flat_map(|message| &message.borrow().content);
    blocks.flat_map(|block| block.shown()).any(|(kind, _)| kind == AttachmentKind::Image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::blob::{Attachment, Blob, BlobRef, Document, PDF, Picture};
    use crate::types::ids::{Mint, Seed};
    use crate::types::message::{Block, Role};

    #[test]
    fn pictures_need_sight_wherever_they_are_and_documents_do_not() {
        let blob = |media_type| BlobRef::from(&Blob::new(media_type, *b"x"));
        let picture = Block::Image(Picture { blob: blob("image/png"), name: None });
        let document = Block::Document(Document { blob: blob(PDF), name: None, text: "x".into() });
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
            let said = Message::new(Role::User, vec![block]);
            assert_eq!(needs_sight(&[Message::user("a"), said.clone()]), expected, "{said:?}");
        }
    }
}
