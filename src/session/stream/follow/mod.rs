//! Follows a journal from a cursor: first the store, then the feed, without gaps or duplicates, at the reader's
//! own pace.
//!
//! The delta rows of a message are pruned when the message completes. A slower follower that saw the message
//! start, or attached during it, still receives every byte. Pruned rows show as a jump of the seq. The missing
//! text is taken from the completed message ([`rebuilt_deltas`]), in deltas with the seqs of the pruned rows.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use crate::session::error::SessionError;
use crate::session::stream::feed::{Content, EntryKind, Feed, FeedEntry, ReadResult, content_of};
use crate::store::{JournalRow, Page, SessionKey, StoreReader};
use crate::types::ids::Seq;
use crate::types::model::BlockKind;

mod rebuilt_deltas;
#[cfg(test)]
mod tests;

/// Rows of one page. Few in tests, so that pages end anywhere.
const PAGE: u32 = if cfg!(test) { 7 } else { 500 };
/// Default bytes of one page. At least one event is always read, whatever its length.
const PAGE_BYTES: usize = if cfg!(test) { 900 } else { 256 * 1024 };

/// A cursor over one session's journal.
pub struct Follower {
    store: StoreReader,
    key: SessionKey,
    feed: Arc<Feed>,
    newest: watch::Receiver<Seq>,
    cursor: Seq,
    /// Whether the store was read to its end once. From then on the feed suffices.
    is_live: bool,
    /// The newest seq when there was nothing to read, although the cursor was older.
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
    block: Option<Inside>,
}

/// How much of a block was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inside {
    index: u32,
    content: Content,
    /// Index of the block among those of its type in the message. Interrupted calls leave no block.
    nth: usize,
    /// Bytes that were passed on.
    sent: usize,
    /// Source of the remaining text.
    rest: Rest,
}

/// The source of the remaining text of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// From its delta rows.
    Rows,
    /// From the completed message. Further rows are older and only provide their seqs.
    Item,
    /// There is no remaining text.
    None,
}

impl Follower {
    pub(in crate::session) async fn start(
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
        let open = joined(&store, key, after_seq).await?;
        Ok(Self {
            store,
            key,
            feed,
            newest,
            cursor: after_seq,
            is_live: false,
            nothing_at: None,
            open,
            piece: rebuilt_deltas::PIECE,
        })
    }

    /// Waits until there may be events to read. Returns false when the session is gone and everything was read.
    /// Cancel-safe; holds no resources while it waits.
    pub async fn ready(&mut self) -> bool {
        loop {
            // Mark the newest seq as seen first: an event that is published during the read wakes the follower
            // again.
            self.newest.borrow_and_update();
            // Query this before the read: a closed feed contains all published events.
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

    /// The next events without waiting, each as a complete JSON object. Returns about `max_bytes`; the last
    /// event may exceed that. The list may be empty. Cancel-safe: the next call returns events that were not
    /// returned.
    ///
    /// # Errors
    /// The store could not be read. The call may be repeated.
    pub async fn next_events(&mut self, max_bytes: usize) -> Result<Vec<Arc<str>>, SessionError> {
        let newest = self.feed.last_seq();
        let entries = self.read_entries(max_bytes).await?;
        self.nothing_at = entries.is_empty().then_some(newest);
        self.pass_on(entries, max_bytes).await
    }

    /// Waits for the next events. `None` when the session is gone. Cancel-safe like [`Follower::next_events`].
    ///
    /// # Errors
    /// Those of [`Follower::next_events`].
    #[cfg(test)]
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<str>>>, SessionError> {
        while self.ready().await {
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
            && let ReadResult::Entries(entries) = self.feed.after(self.cursor, max_bytes)
        {
            return Ok(entries);
        }
        let Page { rows, is_last } = self.store.events_after(self.key, self.cursor, PAGE, max_bytes).await?;
        if is_last {
            // Events are published shortly after the commit. The feed must contain the following ones by then.
            let upto = rows.last().map_or(self.cursor, |row| row.seq);
            self.is_live = matches!(self.feed.after(upto, 1), ReadResult::Entries(_));
        }
        // Never read beyond the published events: clients may only see those.
        let last = self.feed.last_seq();
        Ok(rows.into_iter().filter(|row| row.seq <= last).map(entry_of_row).collect())
    }

    async fn pass_on(
        &mut self,
        entries: Vec<FeedEntry>,
        max_bytes: usize,
    ) -> Result<Vec<Arc<str>>, SessionError> {
        let mut open = self.open;
        let mut cursor = self.cursor;
        let mut out = Passed { events: Vec::with_capacity(entries.len()), bytes: 0 };
        let mut source = rebuilt_deltas::Source::new(&self.store, &self.feed, self.key, self.piece);
        'entries: for entry in entries {
            if out.bytes >= max_bytes {
                break;
            }
            // Rebuild pruned rows, one seq after the other, until the block is complete.
            while entry.seq > cursor + 1
                && let Some(OpenMessage { first_seq, block: Some(inside), .. }) = &mut open
                && inside.rest != Rest::None
            {
                let Some(piece) = source.piece(*first_seq, inside).await? else { break };
                if out.bytes >= max_bytes {
                    break 'entries;
                }
                cursor = if piece.is_last { entry.seq - 1 } else { cursor + 1 };
                inside.record_part(&piece);
                out.push(piece.at(cursor));
            }
            // The store may be slightly ahead of the feed. The feed then repeats deltas of a message that the
            // store has returned complete. A follower that attached after completion receives the item only.
            let is_streamed = matches!(entry.kind, EntryKind::Streamed(_));
            match &mut open {
                Some(OpenMessage { first_seq, block: Some(inside), .. })
                    if is_streamed && inside.rest == Rest::Item =>
                {
                    if let Some(piece) = source.piece(*first_seq, inside).await? {
                        inside.record_part(&piece);
                        out.push(piece.at(entry.seq));
                    }
                    cursor = entry.seq;
                    continue;
                }
                _ => {}
            }
            let inside = open.and_then(|open| open.block);
            let is_old = is_streamed && inside.is_none_or(|inside| inside.rest != Rest::Rows);
            open = step(open, &entry);
            cursor = entry.seq;
            if !is_old {
                out.push(entry.body);
            }
        }
        (self.open, self.cursor) = (open, cursor);
        Ok(out.events)
    }
}

/// Events that are passed on.
struct Passed {
    events: Vec<Arc<str>>,
    bytes: usize,
}

impl Passed {
    fn push(&mut self, event: Arc<str>) {
        self.bytes += event.len();
        self.events.push(event);
    }
}

impl Inside {
    /// Records that a part of the completed message was passed on.
    fn record_part(&mut self, piece: &rebuilt_deltas::Piece) {
        self.sent += piece.text.len();
        self.rest = if piece.is_last { Rest::None } else { Rest::Item };
    }
}

/// The open message after one more entry.
fn step(open: Option<OpenMessage>, entry: &FeedEntry) -> Option<OpenMessage> {
    if entry.kind == EntryKind::MessageStarted {
        return Some(OpenMessage { first_seq: entry.seq, texts: 0, thoughts: 0, block: None });
    }
    let mut open = open?;
    match entry.kind {
        EntryKind::BlockStarted(index, content) => {
            let nth = match content {
                Content::Text => {
                    open.texts += 1;
                    open.texts - 1
                }
                Content::Thinking => {
                    open.thoughts += 1;
                    open.thoughts - 1
                }
                Content::Arguments => 0,
            };
            open.block = Some(Inside { index, content, nth, sent: 0, rest: Rest::Rows });
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

/// Whether a new cursor is inside a running message, and how much of that message precedes it. For a cursor
/// inside a completed message the follower receives the item only: `None`.
async fn joined(
    store: &StoreReader,
    key: SessionKey,
    after_seq: Seq,
) -> Result<Option<OpenMessage>, SessionError> {
    match store.message_around(key, after_seq).await? {
        Some(item) if item.status == "running" => inside(store, key, item.first_seq, after_seq).await,
        _ => Ok(None),
    }
}

/// The same for a message that was running a moment ago. It may be complete by now.
async fn inside(
    store: &StoreReader,
    key: SessionKey,
    first_seq: Seq,
    after_seq: Seq,
) -> Result<Option<OpenMessage>, SessionError> {
    let mut open = None;
    let mut seen = first_seq - 1;
    loop {
        let Page { rows, is_last } = store.events_after(key, seen, PAGE, PAGE_BYTES).await?;
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
            open = step(open, &entry_of_row(row));
        }
        if is_last {
            return Ok(if seen == after_seq { open } else { None });
        }
    }
}

/// The fields that determine the kind of an event.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Measured {
    index: u32,
    text: String,
    block: Option<BlockKind>,
}

fn entry_of_row(row: JournalRow) -> FeedEntry {
    let measured = || serde_json::from_str::<Measured>(&row.body).unwrap_or_default();
    let kind = match row.kind.as_str() {
        "message.started" => EntryKind::MessageStarted,
        "message.block_started" => {
            let Measured { index, block, .. } = measured();
            block.map_or(EntryKind::Other, |block| EntryKind::BlockStarted(index, content_of(&block)))
        }
        "message.text_delta" | "message.thinking_delta" => EntryKind::Streamed(measured().text.len()),
        "message.tool_input_delta" => EntryKind::Streamed(0),
        "message.completed" => EntryKind::MessageCompleted,
        _ => EntryKind::Other,
    };
    FeedEntry { seq: row.seq, body: Arc::from(row.body), kind }
}
