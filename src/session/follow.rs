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
use super::feed::{Feed, Line, Look, Shape};
use crate::store::{JournalRow, SessionKey, Store};
use crate::types::event::{Envelope, Event};
use crate::types::ids::Seq;
use crate::types::message::Block;
use crate::types::session::Item;

/// Rows of one page.
const PAGE: u32 = 500;

/// A cursor over one session's journal.
pub struct Follower {
    store: Store,
    key: SessionKey,
    feed: Arc<Feed>,
    newest: watch::Receiver<Seq>,
    cursor: Seq,
    /// Whether the store was read to its end once: from then on the feed is enough.
    is_live: bool,
    open: Option<Open>,
}

/// The block that the follower is inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    first_seq: Seq,
    /// The block and the bytes of it that were passed on; `None` between blocks.
    block: Option<(u32, usize)>,
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
        Ok(Self { store, key, feed, newest, cursor: after_seq, is_live: false, open })
    }

    /// The next events, each one whole JSON object; waits until there are some. `None` when the
    /// session is gone. Cancel-safe: what was not returned is returned by the next call.
    ///
    /// # Errors
    /// The store could not be read; the call may be repeated.
    pub async fn next(&mut self) -> Result<Option<Vec<Arc<str>>>, SessionError> {
        loop {
            // Marked as seen first: what is published while we look wakes us again.
            self.newest.borrow_and_update();
            let lines = self.look().await?;
            if !lines.is_empty() {
                return Ok(Some(self.pass(lines).await?));
            }
            if self.feed.is_closed() || self.newest.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    /// The last event that was returned.
    #[must_use]
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    async fn look(&mut self) -> Result<Vec<Line>, SessionError> {
        if self.is_live
            && let Look::Lines(lines) = self.feed.after(self.cursor)
        {
            return Ok(lines);
        }
        let rows = self.store.events_after(self.key, self.cursor, PAGE).await?;
        if rows.len() < PAGE as usize {
            // Committed events are published a moment later: the feed must hold the rest by then.
            self.is_live =
                matches!(self.feed.after(rows.last().map_or(self.cursor, |row| row.seq)), Look::Lines(_));
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
                && let Some(Open { first_seq, block: Some((index, sent)) }) = open
                && let Some(body) = self.missing(first_seq, index, sent, line.seq - 1).await?
            {
                out.push(body);
            }
            open = step(open, &line);
            cursor = line.seq;
            out.push(line.body);
        }
        (self.open, self.cursor) = (open, cursor);
        Ok(out)
    }

    /// What the follower has not seen of a block whose rows are gone, as one delta.
    async fn missing(
        &self,
        first_seq: Seq,
        index: u32,
        sent: usize,
        seq: Seq,
    ) -> Result<Option<Arc<str>>, SessionError> {
        let Some(stored) = self.store.message_around(self.key, first_seq).await? else { return Ok(None) };
        let Ok(whole) = serde_json::from_str::<Envelope>(&stored.last) else { return Ok(None) };
        let Event::MessageCompleted { item, .. } = &whole.event else { return Ok(None) };
        let Some(event) = rest_of(item, index, sent) else { return Ok(None) };
        let delta = Envelope { seq, origin: None, event, ..whole };
        Ok(serde_json::to_string(&delta).ok().map(Arc::from))
    }
}

/// The rest of a block after `sent` bytes, if there is any.
fn rest_of(item: &Item, index: u32, sent: usize) -> Option<Event> {
    // An interrupted message keeps its text as one block, whatever its blocks were.
    let block = item.content.get(index as usize).or_else(|| item.content.last())?;
    match block {
        Block::Text { text } => text
            .get(sent..)
            .filter(|rest| !rest.is_empty())
            .map(|rest| Event::MessageTextDelta { index, text: rest.into() }),
        Block::Thinking { text, .. } => text
            .get(sent..)
            .filter(|rest| !rest.is_empty())
            .map(|rest| Event::MessageThinkingDelta { index, text: rest.into() }),
        Block::RedactedThinking { .. } | Block::ToolCall(_) | Block::ToolResult { .. } => None,
    }
}

/// Where the cursor stands after one more line.
fn step(open: Option<Open>, line: &Line) -> Option<Open> {
    match line.shape {
        Shape::MessageStarted => Some(Open { first_seq: line.seq, block: None }),
        Shape::BlockStarted(index) => open.map(|open| Open { block: Some((index, 0)), ..open }),
        Shape::Streamed(bytes) => {
            open.map(|open| Open { block: open.block.map(|(index, sent)| (index, sent + bytes)), ..open })
        }
        Shape::MessageCompleted => None,
        Shape::Other => open,
    }
}

/// Whether a new cursor lies inside a running message, and how much of it lies before the cursor.
/// A cursor inside a finished message gets the item alone: that is `None`.
async fn joined(store: &Store, key: SessionKey, after_seq: Seq) -> Result<Option<Open>, SessionError> {
    let Some(item) = store.message_around(key, after_seq).await? else { return Ok(None) };
    if item.status != "running" {
        return Ok(None);
    }
    let mut open = None;
    let mut seen = item.first_seq - 1;
    loop {
        let rows = store.events_after(key, seen, PAGE).await?;
        let full = rows.len() == PAGE as usize;
        for row in rows {
            // The position is the state after the last row at or before the cursor.
            if row.seq > after_seq {
                return Ok(open);
            }
            if row.seq != seen + 1 {
                // Finished meanwhile: its rows are gone.
                return Ok(None);
            }
            seen = row.seq;
            open = step(open, &line(row));
        }
        if !full {
            return Ok(if seen == after_seq { open } else { None });
        }
    }
}

#[derive(Deserialize)]
struct Measured {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    text: String,
}

fn line(row: JournalRow) -> Line {
    let measured =
        || serde_json::from_str::<Measured>(&row.body).unwrap_or(Measured { index: 0, text: String::new() });
    let shape = match row.kind.as_str() {
        "message.started" => Shape::MessageStarted,
        "message.block_started" => Shape::BlockStarted(measured().index),
        "message.text_delta" | "message.thinking_delta" => Shape::Streamed(measured().text.len()),
        "message.completed" => Shape::MessageCompleted,
        _ => Shape::Other,
    };
    Line { seq: row.seq, body: Arc::from(row.body), shape }
}

/// The shape of an event that is about to be published.
pub(super) fn shape_of(event: &Event) -> Shape {
    match event {
        Event::MessageStarted { .. } => Shape::MessageStarted,
        Event::MessageBlockStarted { index, .. } => Shape::BlockStarted(*index),
        Event::MessageTextDelta { text, .. } | Event::MessageThinkingDelta { text, .. } => {
            Shape::Streamed(text.len())
        }
        Event::MessageCompleted { .. } => Shape::MessageCompleted,
        _ => Shape::Other,
    }
}
