//! Following a journal from a cursor: first the store, then the feed, without a gap or a duplicate,
//! at the reader's own pace (R8–R10).
//!
//! Rows of a running message are removed once the message is whole. A follower that began or joined
//! the message and was slower than that still gets every byte: the place where rows were removed
//! shows as a jump in the numbers, and what is missing is cut out of the finished message.

use std::sync::Arc;

use serde::Deserialize;
use tokio::sync::watch;

use super::error::SessionError;
use super::feed::{Content, Feed, Line, Look, Shape};
use crate::store::{JournalRow, Page, SessionKey, Store};
use crate::types::event::{Envelope, Event};
use crate::types::ids::Seq;
use crate::types::message::Block;
use crate::types::model::BlockKind;
use crate::types::session::Item;

#[cfg(test)]
mod tests;

/// Rows of one page. Few in tests, so that pages end anywhere.
const PAGE: u32 = if cfg!(test) { 7 } else { 500 };
/// Bytes of one page where nobody says how many; one event is always read, however long.
const PAGE_BYTES: usize = if cfg!(test) { 2 * 1024 } else { 256 * 1024 };

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
    /// The finished message that was read last: a message of many blocks has as many gaps, and is read
    /// and parsed once.
    finished: Option<Finished>,
}

/// A message that is whole, and the event that says so.
struct Finished {
    first_seq: Seq,
    whole: Envelope,
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
    /// Whether the rest was taken from the finished message: rows of it that still come are old.
    is_whole: bool,
}

impl Follower {
    pub(super) async fn start(
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
            finished: None,
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
        self.pass(lines).await
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

    async fn look(&mut self, most: usize) -> Result<Vec<Line>, SessionError> {
        if self.is_live
            && let Look::Lines(lines) = self.feed.after(self.cursor, most)
        {
            return Ok(lines);
        }
        let Page { rows, is_last } = self.store.events_after(self.key, self.cursor, PAGE, most).await?;
        if is_last {
            // Committed events are published a moment later: the feed must hold the rest by then.
            let upto = rows.last().map_or(self.cursor, |row| row.seq);
            self.is_live = matches!(self.feed.after(upto, 1), Look::Lines(_));
        }
        // Never ahead of what was published: the feed is what clients may know.
        let last = self.feed.last_seq();
        Ok(rows.into_iter().filter(|row| row.seq <= last).map(line).collect())
    }

    async fn pass(&mut self, lines: Vec<Line>) -> Result<Vec<Arc<str>>, SessionError> {
        let mut open = self.open;
        let mut cursor = self.cursor;
        let mut out = Vec::with_capacity(lines.len());
        for line in lines {
            if line.seq > cursor + 1
                && let Some(Open { first_seq, block: Some(inside), .. }) = &mut open
                && !inside.is_whole
                && let Some(body) = self.missing(*first_seq, inside, line.seq - 1).await?
            {
                inside.is_whole = true;
                out.push(body);
            }
            // The store may be ahead of the feed by a moment. What it gave whole, the feed repeats;
            // who came when the message was finished gets the item alone.
            let inside = open.and_then(|open| open.block);
            let is_old =
                matches!(line.shape, Shape::Streamed(_)) && inside.is_none_or(|inside| inside.is_whole);
            open = step(open, &line);
            cursor = line.seq;
            if !is_old {
                out.push(line.body);
            }
        }
        (self.open, self.cursor) = (open, cursor);
        if open.is_none() {
            self.finished = None;
        }
        Ok(out)
    }

    /// What the follower has not seen of a block whose rows are gone, as one delta.
    async fn missing(
        &mut self,
        first_seq: Seq,
        inside: &Inside,
        seq: Seq,
    ) -> Result<Option<Arc<str>>, SessionError> {
        if self.finished.as_ref().is_none_or(|known| known.first_seq != first_seq) {
            let Some(stored) = self.store.message_around(self.key, first_seq).await? else { return Ok(None) };
            let Ok(whole) = serde_json::from_str::<Envelope>(&stored.last) else { return Ok(None) };
            self.finished = Some(Finished { first_seq, whole });
        }
        let Some(Finished { whole, .. }) = &self.finished else { return Ok(None) };
        let Event::MessageCompleted { item, .. } = &whole.event else {
            // Not finished yet, after all.
            self.finished = None;
            return Ok(None);
        };
        let Some(event) = rest_of(item, inside) else { return Ok(None) };
        let delta = Envelope {
            seq,
            session_id: whole.session_id,
            turn_id: whole.turn_id,
            item_id: whole.item_id,
            at_ms: whole.at_ms,
            origin: None,
            event,
        };
        Ok(serde_json::to_string(&delta).ok().map(Arc::from))
    }
}

/// The rest of a block after what was passed on, if there is any.
fn rest_of(item: &Item, inside: &Inside) -> Option<Event> {
    let Inside { index, content, nth, sent, .. } = *inside;
    let rest = |text: &str| text.get(sent..).filter(|rest| !rest.is_empty()).map(String::from);
    match content {
        Content::Text => {
            let mut texts = item.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text),
                _ => None,
            });
            rest(texts.nth(nth)?).map(|text| Event::MessageTextDelta { index, text })
        }
        Content::Thinking => {
            let mut thoughts = item.content.iter().filter_map(|block| match block {
                Block::Thinking { text, .. } => Some(text.as_str()),
                Block::RedactedThinking { .. } => Some(""),
                _ => None,
            });
            rest(thoughts.nth(nth)?).map(|text| Event::MessageThinkingDelta { index, text })
        }
        Content::Arguments => None,
    }
}

/// Where the cursor stands after one more line.
fn step(open: Option<Open>, line: &Line) -> Option<Open> {
    if line.shape == Shape::MessageStarted {
        return Some(Open { first_seq: line.seq, texts: 0, thoughts: 0, block: None });
    }
    let mut open = open?;
    match line.shape {
        Shape::BlockStarted(index, content) => {
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
            open.block = Some(Inside { index, content, nth, sent: 0, is_whole: false });
        }
        Shape::Streamed(bytes) => {
            if let Some(inside) = &mut open.block {
                inside.sent += bytes;
            }
        }
        Shape::MessageCompleted => return None,
        Shape::MessageStarted | Shape::Other => {}
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

fn line(row: JournalRow) -> Line {
    let measured = || serde_json::from_str::<Measured>(&row.body).unwrap_or_default();
    let shape = match row.kind.as_str() {
        "message.started" => Shape::MessageStarted,
        "message.block_started" => {
            let Measured { index, block, .. } = measured();
            block.map_or(Shape::Other, |block| Shape::BlockStarted(index, content_of(&block)))
        }
        "message.text_delta" | "message.thinking_delta" => Shape::Streamed(measured().text.len()),
        "message.tool_input_delta" => Shape::Streamed(0),
        "message.completed" => Shape::MessageCompleted,
        _ => Shape::Other,
    };
    Line { seq: row.seq, body: Arc::from(row.body), shape }
}

/// The shape of an event that is about to be published.
pub(super) fn shape_of(event: &Event) -> Shape {
    match event {
        Event::MessageStarted { .. } => Shape::MessageStarted,
        Event::MessageBlockStarted { index, block } => Shape::BlockStarted(*index, content_of(block)),
        Event::MessageTextDelta { text, .. } | Event::MessageThinkingDelta { text, .. } => {
            Shape::Streamed(text.len())
        }
        Event::MessageToolInputDelta { .. } => Shape::Streamed(0),
        Event::MessageCompleted { .. } => Shape::MessageCompleted,
        _ => Shape::Other,
    }
}

fn content_of(block: &BlockKind) -> Content {
    match block {
        BlockKind::Text => Content::Text,
        BlockKind::Thinking => Content::Thinking,
        BlockKind::ToolCall { .. } => Content::Arguments,
    }
}
