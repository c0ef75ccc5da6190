//! An answer that is still streaming.

use crate::state::growing_text::GrowingText;
use types::ids::{ItemId, Seq};
use types::message::Block;
use types::model::BlockKind;

/// The received part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartialAnswer {
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Blocks of text and of reasoning, in order. Partial calls are omitted, because a partial call is useless.
    blocks: Vec<PartialBlock>,
    /// Bytes received, including calls.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum PartialBlock {
    Text(GrowingText),
    Thinking {
        text: GrowingText,
        signature: Option<String>,
        /// The whole reasoning in encrypted form, if the provider encrypts it.
        data: Option<String>,
    },
}

impl PartialAnswer {
    pub fn new(item_id: ItemId, first_seq: Seq) -> Self {
        Self { item_id, first_seq, blocks: Vec::new(), bytes: 0 }
    }

    pub fn begin_block(&mut self, kind: &BlockKind) {
        match kind {
            BlockKind::Text => self.blocks.push(PartialBlock::Text(GrowingText::default())),
            BlockKind::Thinking => self.blocks.push(PartialBlock::Thinking {
                text: GrowingText::default(),
                signature: None,
                data: None,
            }),
            BlockKind::ToolCall { .. } => {}
        }
    }

    /// Appends to the last block, if it is a text block.
    pub fn push_text(&mut self, text: &str) {
        self.bytes += text.len();
        if let Some(PartialBlock::Text(sum)) = self.blocks.last_mut() {
            sum.push(text);
        }
    }

    /// Appends to the last block, if it is a reasoning block.
    pub fn push_thinking(&mut self, text: &str) {
        self.bytes += text.len();
        if let Some(PartialBlock::Thinking { text: sum, .. }) = self.blocks.last_mut() {
            sum.push(text);
        }
    }

    /// Records the data that a provider needs to accept the last reasoning block in a later request.
    pub fn seal_thinking(&mut self, new_signature: Option<&str>, new_data: Option<&str>) {
        if let Some(PartialBlock::Thinking { signature, data, .. }) = self.blocks.last_mut() {
            *signature = new_signature.map(str::to_owned);
            *data = new_data.map(str::to_owned);
        }
    }

    /// The blocks as parts of a message.
    pub fn content(&self) -> Vec<Block> {
        let block = |block: &PartialBlock| match block {
            PartialBlock::Text(text) => Block::Text { text: text.text() },
            PartialBlock::Thinking { data: Some(data), .. } => Block::RedactedThinking { data: data.clone() },
            PartialBlock::Thinking { text, signature, .. } => {
                Block::Thinking { text: text.text(), signature: signature.clone() }
            }
        };
        self.blocks.iter().map(block).collect()
    }

    /// The blocks that a provider accepts in a later request: reasoning only if it is sealed.
    pub fn valid_content(&self) -> Vec<Block> {
        let mut content = self.content();
        content.retain(|block| match block {
            Block::Thinking { signature, .. } => signature.is_some(),
            Block::Text { text } => !text.trim().is_empty(),
            _ => true,
        });
        content
    }
}
