//! Following a journal from a cursor: first the store, then the feed, without a gap or a duplicate,
//! at the reader's own pace (R8–R10).
//!
//! Rows of a running message are removed once the message is whole. A follower that began or joined
//! the message and was slower than that still gets every byte: the place where rows were removed
//! shows as a jump in the numbers, and what is missing is taken out of the finished message ([`rest`]), in
//! deltas that have the numbers of the rows that are gone.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use crate::session::error::SessionError;
use crate::session::stream::feed::{Content, Entry, EntryKind, Feed, ReadResult};
use crate::store::{JournalRow, Page, SessionKey, Store};
use crate::types::event::Event;
use crate::types::ids::Seq;
use crate::types::model::BlockKind;

mod rebuilt_deltas;
#[cfg(test)]
mod tests;

/// Rows of one page. Few in tests, so that pages end anywhere.
const PAGE: u32 = if cfg!(test) { 7 } else { 500 };
/// Bytes of one page where nobody says how many; one event is always read, however long.
const PAGE_BYTES: usize = if cfg!(test) { 900 } else { 256 * 1024 };

/// A cursor over one session's journal.
pub struct Follower {
    store: Store,
    key: SessionKey,
    feed: Arc<Feed>,
    newest: watch::Receiver<Seq>,
    cursor: Seq,
    /// Whether the store was read to its end once: from then on the feed is enough.
    is_live: bool,
    /// The newest event when there was nothing to read, although the cursor was behind it.
    nothing_at: Option<Seq>,
    open: Option<Open>,
    /// Bytes of a delta that is made of a finished message.
    piece: usize,
}

/// The message that the follower is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    first_seq: Seq,
    /// Blocks of text and of reasoning that began so far.
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
    /// Which of its kind in the message: calls that were cut short leave no block behind.
    nth: usize,
    /// Bytes that were passed on.
    sent: usize,
    /// Where what was not passed on comes from.
    rest: Rest,
}

/// Where the rest of a block comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// From its rows.
    Rows,
    /// From the finished message: rows that still come are old, and only lend their numbers.
    Item,
    /// There is none.
    None,
}

impl Follower {
    pub(in crate::session) async fn start(
        store: Store,
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

    /// Waits until there may be something to take. False when the session is gone and all was taken.
    /// Cancel-safe; holds nothing while it waits.
    pub async fn ready(&mut self) -> bool {
        loop {
            // Marked as seen first: what is published while we look wakes us again.
            self.newest.borrow_and_update();
            // Asked before looking: whoever closes has published everything.
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

    /// The next events without waiting for any, each one whole JSON object: about `most` bytes, the last
    /// one may reach beyond. Empty if there is nothing after all. Cancel-safe: what was not returned is
    /// returned by the next call.
    ///
    /// # Errors
    /// The store could not be read; the call may be repeated.
    pub async fn take(&mut self, most: usize) -> Result<Vec<Arc<str>>, SessionError> {
        let newest = self.feed.last_seq();
        let lines = self.look(most).await?;
        self.nothing_at = lines.is_empty().then_some(newest);
        self.pass(lines, most).await
    }

    /// The next events; waits until there are some. `None` when the session is gone. Cancel-safe like
    /// [`Follower::take`].
    ///
    /// # Errors
    /// As [`Follower::take`].
    #[cfg(test)]
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<str>>>, SessionError> {
        while self.ready().await {
            let events = self.take(PAGE_BYTES).await?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        Ok(None)
    }

    /// The last event that was returned.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    async fn look(&mut self, most: usize) -> Result<Vec<Entry>, SessionError> {
        if self.is_live
            && let ReadResult::Entries(lines) = self.feed.after(self.cursor, most)
        {
            return Ok(lines);
        }
        let Page { rows, is_last } = self.store.events_after(self.key, self.cursor, PAGE, most).await?;
        if is_last {
            // Committed events are published a moment later: the feed must hold the rest by then.
            let upto = rows.last().map_or(self.cursor, |row| row.seq);
            self.is_live = matches!(self.feed.after(upto, 1), ReadResult::Entries(_));
        }
        // Never ahead of what was published: the feed is what clients may know.
        let last = self.feed.last_seq();
        Ok(rows.into_iter().filter(|row| row.seq <= last).map(line).collect())
    }

    async fn pass(&mut self, lines: Vec<Entry>, most: usize) -> Result<Vec<Arc<str>>, SessionError> {
        let mut open = self.open;
        let mut cursor = self.cursor;
        let mut out = Passed { events: Vec::with_capacity(lines.len()), bytes: 0 };
        let mut source = rebuilt_deltas::Source::new(&self.store, &self.feed, self.key, self.piece);
        'lines: for line in lines {
            if out.bytes >= most {
                break;
            }
            // Rows that are gone, one number after the other, until all of the block is given.
            while line.seq > cursor + 1
                && let Some(Open { first_seq, block: Some(inside), .. }) = &mut open
                && inside.rest != Rest::None
            {
                let Some(piece) = source.piece(*first_seq, inside).await? else { break };
                if out.bytes >= most {
                    break 'lines;
                }
                cursor = if piece.is_last { line.seq - 1 } else { cursor + 1 };
                inside.take(&piece);
                out.push(piece.at(cursor));
            }
            // The store may be ahead of the feed by a moment. What it gave whole, the feed repeats;
            // who came when the message was finished gets the item alone.
            let is_streamed = matches!(line.shape, EntryKind::Streamed(_));
            match &mut open {
                Some(Open { first_seq, block: Some(inside), .. })
                    if is_streamed && inside.rest == Rest::Item =>
                {
                    if let Some(piece) = source.piece(*first_seq, inside).await? {
                        inside.take(&piece);
                        out.push(piece.at(line.seq));
                    }
                    cursor = line.seq;
                    continue;
                }
                _ => {}
            }
            let inside = open.and_then(|open| open.block);
            let is_old = is_streamed && inside.is_none_or(|inside| inside.rest != Rest::Rows);
            open = step(open, &line);
            cursor = line.seq;
            if !is_old {
                out.push(line.body);
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
    /// A piece of the finished message was passed on.
    fn take(&mut self, piece: &rebuilt_deltas::Piece) {
        self.sent += piece.text.len();
        self.rest = if piece.is_last { Rest::None } else { Rest::Item };
    }
}

/// Where the cursor stands after one more line.
fn step(open: Option<Open>, line: &Entry) -> Option<Open> {
    if line.shape == EntryKind::MessageStarted {
        return Some(Open { first_seq: line.seq, texts: 0, thoughts: 0, block: None });
    }
    let mut open = open?;
    match line.shape {
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

/// Whether a new cursor lies inside a running message, and how much of it lies before the cursor.
/// A cursor inside a finished message gets the item alone: that is `None`.
async fn joined(store: &Store, key: SessionKey, after_seq: Seq) -> Result<Option<Open>, SessionError> {
    match store.message_around(key, after_seq).await? {
        Some(item) if item.status == "running" => inside(store, key, item.first_seq, after_seq).await,
        _ => Ok(None),
    }
}

/// The same for a message that was running a moment ago; it may be whole by now.
async fn inside(
    store: &Store,
    key: SessionKey,
    first_seq: Seq,
    after_seq: Seq,
) -> Result<Option<Open>, SessionError> {
    let mut open = None;
    let mut seen = first_seq - 1;
    loop {
        let Page { rows, is_last } = store.events_after(key, seen, PAGE, PAGE_BYTES).await?;
        for row in rows {
            // The position is the state after the last row at or before the cursor.
            if row.seq > after_seq {
                // All rows up to the cursor must have been there, or it was finished meanwhile.
                return Ok(if seen == after_seq { open } else { None });
            }
            if row.seq != seen + 1 {
                // Finished meanwhile: its rows are gone.
                return Ok(None);
            }
            seen = row.seq;
            open = step(open, &line(row));
        }
        if is_last {
            return Ok(if seen == after_seq { open } else { None });
        }
    }
}

/// The parts of an event that tell its shape.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Measured {
    index: u32,
    text: String,
    block: Option<BlockKind>,
}

fn line(row: JournalRow) -> Entry {
    let measured = || serde_json::from_str::<Measured>(&row.body).unwrap_or_default();
    let shape = match row.kind.as_str() {
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
    Entry { seq: row.seq, body: Arc::from(row.body), shape }
}

/// The shape of an event that is about to be published.
pub(in crate::session) fn kind_of(event: &Event) -> EntryKind {
    match event {
        Event::MessageStarted { .. } => EntryKind::MessageStarted,
        Event::MessageBlockStarted { index, block } => EntryKind::BlockStarted(*index, content_of(block)),
        Event::MessageTextDelta { text, .. } | Event::MessageThinkingDelta { text, .. } => {
            EntryKind::Streamed(text.len())
        }
        Event::MessageToolInputDelta { .. } => EntryKind::Streamed(0),
        Event::MessageCompleted { .. } => EntryKind::MessageCompleted,
        _ => EntryKind::Other,
    }
}

fn content_of(block: &BlockKind) -> Content {
    match block {
        BlockKind::Text => Content::Text,
        BlockKind::Thinking => Content::Thinking,
        BlockKind::ToolCall { .. } => Content::Arguments,
    }
}
