//! Rebuilds the missing deltas of a block whose rows were pruned. The text is read from the completed
//! message in parts, so that the daemon never holds a long text while a client does not read.
//!
//! A part may be as long as the longest delta, and no row was longer. So there are never more parts
//! than pruned rows, and each part gets the seq of one of them.

use std::sync::Arc;

use crate::error::SessionError;
use crate::stream::feed::Feed;
use crate::stream::follow::{BlockContent, BlockPosition};
use store::{SessionKey, StoreReader, StoredBlob};
use types::blob::TruncatedField;
use types::event::{Envelope, Event};
use types::ids::Seq;
use types::message::Block;
use types::wire;

/// Maximum bytes of a part as JSON. It must not be shorter than any row. A row has 8 KiB of text, and
/// each byte may need six bytes in JSON.
pub(super) const PART_BYTES: usize = if cfg!(test) { 16 } else { 56 * 1024 };

/// Maximum truncated bytes of a message that is shared by all lagging followers.
const MAX_SHARED_BYTES: u64 = 4 << 20;

/// A part of a block and the data for its delta.
pub(super) struct DeltaPart {
    pub text: String,
    pub is_last: bool,
    delta: Envelope,
}

impl DeltaPart {
    /// The delta event with this seq.
    pub fn delta_at(&self, seq: Seq) -> Arc<str> {
        let delta = Envelope { seq, ..self.delta.clone() };
        Arc::from(serde_json::to_string(&delta).unwrap_or_default())
    }
}

/// The source of parts, kept for one read of the journal.
pub(super) struct PartSource<'a> {
    store: &'a StoreReader,
    feed: &'a Feed,
    key: SessionKey,
    /// Maximum bytes of a part as JSON.
    room: usize,
    /// The completed message that was read last, because a message with many blocks has as many gaps.
    finished: Option<(Seq, Arc<Envelope>)>,
    /// The blob of that message's truncated block. The key is the first seq of the message and the
    /// index of the block.
    blob: Option<((Seq, u32), StoredBlob)>,
}

/// Location of a block's text.
enum TextLocation<'a> {
    /// The text is in the event.
    Here(&'a str),
    /// The text is in the blob of this truncated value.
    Cut(&'a TruncatedField),
    /// The text is in a truncated list of blocks.
    Elsewhere,
}

impl<'a> PartSource<'a> {
    pub fn new(store: &'a StoreReader, feed: &'a Feed, key: SessionKey, room: usize) -> Self {
        Self { store, feed, key, room, finished: None, blob: None }
    }

    /// The next part of a block; `None` if the message is not complete or no text remains.
    pub async fn next_part(
        &mut self,
        first_seq: Seq,
        inside: &BlockPosition,
    ) -> Result<Option<DeltaPart>, SessionError> {
        if inside.content == BlockContent::Arguments {
            return Ok(None);
        }
        let room = self.room;
        let is_known = self.finished.as_ref().is_some_and(|(known, _)| *known == first_seq);
        if let Some(whole) = self.feed.known_full_message(first_seq).filter(|_| !is_known) {
            self.finished = Some((first_seq, whole));
        } else if !is_known {
            let Some(stored) = self.store.message_around(self.key, first_seq).await? else { return Ok(None) };
            let Ok(event) = serde_json::from_str::<Envelope>(&stored.last) else { return Ok(None) };
            if !matches!(event.event, Event::MessageCompleted { .. }) {
                return Ok(None);
            }
            self.finished = Some((first_seq, Arc::new(event)));
        }
        let Some((_, event)) = &self.finished else { return Ok(None) };
        let (text, is_last) = match text_location(event, inside) {
            None => return Ok(None),
            Some(TextLocation::Here(text)) => match cut_part(text, inside.sent, room) {
                Some(part) => part,
                None => return Ok(None),
            },
            Some(TextLocation::Cut(cut)) => {
                let place = (first_seq, inside.index);
                if self.blob.as_ref().is_none_or(|(known, _)| *known != place) {
                    let blob = self.store.blob(self.key, cut.blob_id).await?;
                    self.blob = blob.map(|blob| (place, blob));
                }
                let Some((_, blob)) = &self.blob else { return Ok(None) };
                let bytes = self.store.read_blob(blob, inside.sent as u64, room).await?;
                let reaches_end = inside.sent as u64 + bytes.len() as u64 == blob.bytes;
                match cut_part(&text_without_partial_char(bytes), 0, room) {
                    Some((text, is_last)) => (text, is_last && reaches_end),
                    None => return Ok(None),
                }
            }
            // Load the whole message for the rest of this read. Otherwise each of many small blocks
            // would load it again.
            Some(TextLocation::Elsewhere) => return self.load_full_part(first_seq, inside).await,
        };
        Ok(Some(message_part(event, inside, text, is_last)))
    }

    /// Whether the message that was read last has no truncated value.
    #[cfg(test)]
    pub fn is_whole(&self) -> bool {
        self.finished.as_ref().is_some_and(|(_, event)| event.truncated_fields.is_empty())
    }

    /// Loads the truncated values of the completed message and returns its next part.
    async fn load_full_part(
        &mut self,
        first_seq: Seq,
        inside: &BlockPosition,
    ) -> Result<Option<DeltaPart>, SessionError> {
        let Some(stored) = self.store.message_around(self.key, first_seq).await? else { return Ok(None) };
        let read = || async {
            let whole = self.store.restored_event(self.key, stored.last_seq, &stored.last).await?;
            Ok::<_, SessionError>(whole.filter(|whole| whole.truncated_fields.is_empty()).map(Arc::new))
        };
        let bytes: u64 = wire::truncated_fields(&stored.last).iter().map(|field| field.bytes).sum();
        let whole = match bytes {
            // A waiting follower holds no text itself. The feed keeps one shared copy for all followers.
            ..=MAX_SHARED_BYTES => {
                self.feed.full_message_cell(first_seq).get_or_try_init(read).await?.clone()
            }
            _ => read().await?,
        };
        let Some(whole) = whole else { return Ok(None) };
        let piece = match text_location(&whole, inside) {
            Some(TextLocation::Here(text)) => cut_part(text, inside.sent, self.room)
                .map(|(text, is_last)| message_part(&whole, inside, text, is_last)),
            _ => None,
        };
        self.finished = Some((first_seq, whole));
        Ok(piece)
    }
}

/// A part of a block of a completed message.
fn message_part(message: &Envelope, inside: &BlockPosition, text: String, is_last: bool) -> DeltaPart {
    let index = inside.index;
    let event = match inside.content {
        BlockContent::Thinking => Event::MessageThinkingDelta { index, text: text.clone() },
        BlockContent::Text | BlockContent::Arguments => Event::MessageTextDelta { index, text: text.clone() },
    };
    let delta = Envelope {
        seq: 0,
        session_id: message.session_id,
        turn_id: message.turn_id,
        item_id: message.item_id,
        step: None,
        parent_call_id: None,
        at_ms: message.at_ms,
        origin: None,
        truncated_fields: Vec::new(),
        event,
    };
    DeltaPart { text, is_last, delta }
}

/// Returns as much text from `sent` on as fits into a part, and whether this is the last part. `None`
/// if no text remains.
fn cut_part(text: &str, sent: usize, room: usize) -> Option<(String, bool)> {
    let rest = text.get(sent..).filter(|rest| !rest.is_empty())?;
    let head = wire::head(rest, room + 2);
    Some((head.to_owned(), head.len() == rest.len()))
}

/// Converts bytes to text and drops an incomplete character at the end.
fn text_without_partial_char(mut bytes: Vec<u8>) -> String {
    if let Err(error) = std::str::from_utf8(&bytes) {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Location of a block's text in the completed message.
fn text_location<'e>(event: &'e Envelope, inside: &BlockPosition) -> Option<TextLocation<'e>> {
    let Event::MessageCompleted { item, .. } = &event.event else { return None };
    if event.truncated_fields.iter().any(|field| matches!(&*field.pointer, "/item" | "/item/content")) {
        return Some(TextLocation::Elsewhere);
    }
    let own = item.content.iter().enumerate().filter_map(|(at, block)| match (inside.content, block) {
        (BlockContent::Text, Block::Text { text })
        | (BlockContent::Thinking, Block::Thinking { text, .. }) => Some((at, text.as_str())),
        (BlockContent::Thinking, Block::RedactedThinking { .. }) => Some((at, "")),
        _ => None,
    });
    let (at, text) = own.into_iter().nth(inside.nth)?;
    let place = format!("/item/content/{at}/text");
    Some(
        event
            .truncated_fields
            .iter()
            .find(|field| field.pointer == place)
            .map_or(TextLocation::Here(text), TextLocation::Cut),
    )
}
