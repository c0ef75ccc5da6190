//! An answer that is still streaming.

use crate::engine::state::growing_text::GrowingText;
use crate::types::ids::{ItemId, Seq};
use crate::types::message::Block;
use crate::types::model::BlockKind;

/// The received part of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct Partial {
    pub item_id: ItemId,
    pub first_seq: Seq,
    /// Blocks of text and of reasoning, in order. Calls are left out, because a partial call is useless.
    blocks: Vec<PartialBlock>,
    /// Bytes received, including calls.
    pub bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum PartialBlock {
    Text(GrowingText),
    Thinking(GrowingText),
}

impl Partial {
    pub fn new(item_id: ItemId, first_seq: Seq) -> Self {
        Self { item_id, first_seq, blocks: Vec::new(), bytes: 0 }
    }

    pub fn begin_block(&mut self, kind: &BlockKind) {
        match kind {
            BlockKind::Text => self.blocks.push(PartialBlock::Text(GrowingText::default())),
            BlockKind::Thinking => self.blocks.push(PartialBlock::Thinking(GrowingText::default())),
            BlockKind::ToolCall { .. } => {}
        }
    }

    /// Appends to the last block, if it is one of text.
    pub fn push_text(&mut self, text: &str) {
        self.bytes += text.len();
        if let Some(PartialBlock::Text(sum)) = self.blocks.last_mut() {
            sum.push(text);
        }
    }

    /// Appends to the last block, if it is one of reasoning.
    pub fn push_thinking(&mut self, text: &str) {
        self.bytes += text.len();
        if let Some(PartialBlock::Thinking(sum)) = self.blocks.last_mut() {
            sum.push(text);
        }
    }

    /// The blocks as parts of a message.
    pub fn content(&self) -> Vec<Block> {
        let block = |block: &PartialBlock| match block {
            PartialBlock::Text(text) => Block::Text { text: text.text() },
            PartialBlock::Thinking(text) => Block::Thinking { text: text.text(), signature: None },
        };
        self.blocks.iter().map(block).collect()
    }
}
