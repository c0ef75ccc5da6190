//! Follows a journal from a cursor: first the store, then the feed, without gaps or duplicates, at the reader's
//! own pace.
//!
//! The delta rows of a message are pruned when the message completes. A slower follower that saw the message
//! start, or attached during it, still receives every byte. Pruned rows show as a jump of the seq. The missing
//! text is taken from the completed message ([`rebuilt_deltas`]), in deltas with the seqs of the pruned rows.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use crate::error::SessionError;
use crate::stream::feed::{BlockContent, EntryKind, Feed, FeedEntry, ReadResult, block_content};
use store::{JournalRow, Page, SessionKey, StoreReader};
use types::ids::Seq;
use types::model::BlockKind;

mod rebuilt_deltas;
#[cfg(test)]
mod tests;

/// Rows of one page. The value is small in tests, so that pages end at any row.
const PAGE_ROWS: u32 = if cfg!(test) { 7 } else { 500 };
/// Default bytes of one page. At least one event is always read, whatever its length.
const PAGE_BYTES: usize = if cfg!(test) { 900 } else { 256 * 1024 };

/// A cursor over one session's journal.
pub struct Follower {
    store: StoreReader,
    key: SessionKey,
    feed: Arc<Feed>,
    newest: watch::Receiver<Seq>,
    cursor: Seq,
    /// Whether the store was read to its end once. From then on, the feed is sufficient.
    is_live: bool,
    /// The newest seq at the time when a read returned nothing although the cursor was older.
    nothing_at: Option<Seq>,
    open: Option<OpenMessage>,
    /// Maximum bytes of a rebuilt delta.
    piece: usize,
}

/// The message that contains the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenMessage {
    first_seq: Seq,
    /// Number of text and reasoning blocks that have started.
    texts: usize,
    thoughts: usize,
    /// The newest block; `None` before the first.
    block: Option<BlockPosition>,
}

/// Position in a block up to which its text was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockPosition {
    index: u32,
    content: BlockContent,
    /// Index of the block among blocks of its type in the message. Interrupted calls leave no block in the message.
    nth: usize,
    /// Bytes that were passed on.
    sent: usize,
    /// Source of the remaining text.
    rest: RestSource,
}

/// The source of the remaining text of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestSource {
    /// The delta rows of the block.
    Rows,
    /// The completed message. Further rows are older and only provide their seqs.
    Item,
    /// There is no remaining text.
    None,
}

impl Follower {
    pub(crate) async fn start(
        store: StoreReader,
        key: SessionKey,
        feed: Arc<Feed>,
        after_seq: Seq,
    ) -> Result<Self, SessionError> {
        let last_seq = feed.last_seq();
        if after_seq > last_seq {
            return Err(SessionError::CursorAhead { last_seq });
        }
        let newest = feed.watch();
        let open = find_open_message(&store, key, after_seq).await?;
        Ok(Self {
            store,
            key,
            feed,
            newest,
            cursor: after_seq,
            is_live: false,
            nothing_at: None,
            open,
            piece: rebuilt_deltas::PART_BYTES,
        })
    }

    /// Waits until there may be events to read. Returns `false` when the session is unloaded and
    /// everything was read. Cancel-safe; holds no resources while it waits.
    pub async fn wait_ready(&mut self) -> bool {
        loop {
            // Mark the newest seq as seen first: an event that is published during the read wakes the follower
            // again.
            self.newest.borrow_and_update();
            // Query this before the read, because a closed feed contains all published events.
            let is_over = self.feed.is_closed();
            let newest = self.feed.last_seq();
            if newest > self.cursor && self.nothing_at != Some(newest) {
                return true;
            }
            if is_over || self.newest.changed().await.is_err() {
                return false;
            }
        }
    }

    /// The next events without waiting, each as a complete JSON object. Returns about `max_bytes`,
    /// which the last event may exceed. The list may be empty. Cancel-safe: the next call returns
    /// events that a dropped call did not return.
    ///
    /// # Errors
    /// The store could not be read. The call may be repeated.
    pub async fn next_events(&mut self, max_bytes: usize) -> Result<Vec<Arc<str>>, SessionError> {
        let newest = self.feed.last_seq();
        let entries = self.read_entries(max_bytes).await?;
        self.nothing_at = entries.is_empty().then_some(newest);
        self.select_events(entries, max_bytes).await
    }

    /// Waits for the next events. `None` when the session is unloaded. Cancel-safe like [`Follower::next_events`].
    ///
    /// # Errors
    /// The same errors as [`Follower::next_events`].
    #[cfg(test)]
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<str>>>, SessionError> {
        while self.wait_ready().await {
            let events = self.next_events(PAGE_BYTES).await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    /// Seq of the last event that was returned.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    async fn read_entries(&mut self, max_bytes: usize) -> Result<Vec<FeedEntry>, SessionError> {
        if self.is_live
            && let ReadResult::Entries(entries) = self.feed.entries_after(self.cursor, max_bytes)
        {
            return Ok(entries);
        }
        let Page { rows, is_last } =
            self.store.events_after(self.key, self.cursor, PAGE_ROWS, max_bytes).await?;
        if is_last {
            // Events are published shortly after the commit. Use only the feed if it contains the
            // events after these rows.
            let upto = rows.last().map_or(self.cursor, |row| row.seq);
            self.is_live = matches!(self.feed.entries_after(upto, 1), ReadResult::Entries(_));
        }
        // Never read beyond the published events, because clients may only see those.
        let last = self.feed.last_seq();
        Ok(rows.into_iter().filter(|row| row.seq <= last).map(entry_of_row).collect())
    }

    async fn select_events(
        &mut self,
        entries: Vec<FeedEntry>,
        max_bytes: usize,
    ) -> Result<Vec<Arc<str>>, SessionError> {
        let mut open = self.open;
        let mut cursor = self.cursor;
        let mut out = PassedEvents { events: Vec::with_capacity(entries.len()), bytes: 0 };
        let mut source = rebuilt_deltas::PartSource::new(&self.store, &self.feed, self.key, self.piece);
        'entries: for entry in entries {
            if out.bytes >= max_bytes {
                break;
            }
            // Rebuild pruned rows, one seq after the other, until the block is complete.
            while entry.seq > cursor + 1
                && let Some(OpenMessage { first_seq, block: Some(inside), .. }) = &mut open
                && inside.rest != RestSource::None
            {
                let Some(piece) = source.next_part(*first_seq, inside).await? else { break };
                if out.bytes >= max_bytes {
                    break 'entries;
                }
                cursor = if piece.is_last { entry.seq - 1 } else { cursor + 1 };
                inside.record_part(&piece);
                out.push(piece.delta_at(cursor));
            }
            // The store may be slightly ahead of the feed. The feed then repeats deltas of a message that the
            // store has returned complete. A follower that attached after completion receives the item only.
            let is_streamed = matches!(entry.kind, EntryKind::Streamed(_));
            match &mut open {
                Some(OpenMessage { first_seq, block: Some(inside), .. })
                    if is_streamed && inside.rest == RestSource::Item =>
                {
                    if let Some(piece) = source.next_part(*first_seq, inside).await? {
                        inside.record_part(&piece);
                        out.push(piece.delta_at(entry.seq));
                    }
                    cursor = entry.seq;
                    continue;
                }
                _ => {}
            }
            let inside = open.and_then(|open| open.block);
            let is_old = is_streamed && inside.is_none_or(|inside| inside.rest != RestSource::Rows);
            open = advance_open_message(open, &entry);
            cursor = entry.seq;
            if !is_old {
                out.push(entry.body);
            }
        }
        (self.open, self.cursor) = (open, cursor);
        Ok(out.events)
    }
}

/// Collects the events to pass on.
struct PassedEvents {
    events: Vec<Arc<str>>,
    bytes: usize,
}

impl PassedEvents {
    fn push(&mut self, event: Arc<str>) {
        self.bytes += event.len();
        self.events.push(event);
    }
}

impl BlockPosition {
    /// Records that a part of the completed message was passed on.
    fn record_part(&mut self, piece: &rebuilt_deltas::DeltaPart) {
        self.sent += piece.text.len();
        self.rest = if piece.is_last { RestSource::None } else { RestSource::Item };
    }
}

/// Returns the open message after one more entry.
fn advance_open_message(open: Option<OpenMessage>, entry: &FeedEntry) -> Option<OpenMessage> {
    if entry.kind == EntryKind::MessageStarted {
        return Some(OpenMessage { first_seq: entry.seq, texts: 0, thoughts: 0, block: None });
    }
    let mut open = open?;
    match entry.kind {
        EntryKind::BlockStarted(index, content) => {
            let nth = match content {
                BlockContent::Text => {
                    open.texts += 1;
                    open.texts - 1
                }
                BlockContent::Thinking => {
                    open.thoughts += 1;
                    open.thoughts - 1
                }
                BlockContent::Arguments => 0,
            };
            open.block = Some(BlockPosition { index, content, nth, sent: 0, rest: RestSource::Rows });
        }
        EntryKind::Streamed(bytes) => {
            if let Some(inside) = &mut open.block {
                inside.sent += bytes;
            }
        }
        EntryKind::MessageCompleted => return None,
        EntryKind::MessageStarted | EntryKind::Other => {}
    }
    Some(open)
}

/// Determines whether a new cursor is inside a running message, and how much of that message precedes
/// it. `None` if the message is already complete: the follower then receives only the item.
async fn find_open_message(
    store: &StoreReader,
    key: SessionKey,
    after_seq: Seq,
) -> Result<Option<OpenMessage>, SessionError> {
    match store.message_around(key, after_seq).await? {
        Some(item) if item.status == "running" => {
            find_running_message(store, key, item.first_seq, after_seq).await
        }
        _ => Ok(None),
    }
}

/// Like [`find_open_message`], for a message that was running a moment ago and may be complete by now.
async fn find_running_message(
    store: &StoreReader,
    key: SessionKey,
    first_seq: Seq,
    after_seq: Seq,
) -> Result<Option<OpenMessage>, SessionError> {
    let mut open = None;
    let mut seen = first_seq - 1;
    loop {
        let Page { rows, is_last } = store.events_after(key, seen, PAGE_ROWS, PAGE_BYTES).await?;
        for row in rows {
            // The position is the state after the last row at or before the cursor.
            if row.seq > after_seq {
                // If a row up to the cursor is missing, the message was completed meanwhile.
                return Ok(if seen == after_seq { open } else { None });
            }
            if row.seq != seen + 1 {
                // The message was completed meanwhile, so its rows are pruned.
                return Ok(None);
            }
            seen = row.seq;
            open = advance_open_message(open, &entry_of_row(row));
        }
        if is_last {
            return Ok(if seen == after_seq { open } else { None });
        }
    }
}

/// The fields that determine the kind of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DeltaFields {
    index: u32,
    text: String,
    block: Option<BlockKind>,
}

fn entry_of_row(row: JournalRow) -> FeedEntry {
    let measured = || serde_json::from_str::<DeltaFields>(&row.body).unwrap_or_default();
    let kind = match row.kind.as_str() {
        "message.started" => EntryKind::MessageStarted,
        "message.block_started" => {
            let DeltaFields { index, block, .. } = measured();
            block.map_or(EntryKind::Other, |block| EntryKind::BlockStarted(index, block_content(&block)))
        }
        "message.text_delta" | "message.thinking_delta" => EntryKind::Streamed(measured().text.len()),
        "message.tool_input_delta" => EntryKind::Streamed(0),
        "message.completed" => EntryKind::MessageCompleted,
        _ => EntryKind::Other,
    };
    FeedEntry { seq: row.seq, body: Arc::from(row.body), kind }
}
