//! The newest events of a session in memory, serialised once for all subscriptions. Only the session
//! writes to the feed, after each commit. Each reader reads at its own pace.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{OnceCell, watch};

use base::sync::lock;
use types::event::{Envelope, Event};
use types::ids::Seq;
use types::model::BlockKind;

/// Bytes that every feed may keep. A reader with an older cursor reads the store. The value is small in
/// tests, so that followers lag.
const MIN_FEED_BYTES: usize = if cfg!(test) { 1536 } else { 64 * 1024 };
/// Maximum bytes of one feed. A hundred clients of one fast session lag by less than this. Reading
/// their events from the store would cost more than sending them.
const MAX_FEED_BYTES: usize = if cfg!(test) { 3 * 1024 } else { 8 * 1024 * 1024 };
/// Maximum bytes of all feeds together. If they are used up, each feed keeps [`MIN_FEED_BYTES`].
const POOL_BYTES: usize = 32 * 1024 * 1024;
/// Maximum number of events per read.
const BATCH_EVENTS: usize = 500;

/// A completed message with all truncated values; `None` if it cannot be read.
pub(crate) type FullMessage = OnceCell<Option<Arc<Envelope>>>;

/// One event as serialised for the wire.
#[derive(Clone, Debug)]
pub(crate) struct FeedEntry {
    pub seq: Seq,
    pub body: Arc<str>,
    pub kind: EntryKind,
}

/// The kind of an event, which a follower needs without parsing the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A message starts. Its block rows refer to this event's seq.
    MessageStarted,
    BlockStarted(u32, BlockContent),
    /// Bytes of text or reasoning for the open block; 0 for arguments.
    Streamed(usize),
    /// A message ends.
    MessageCompleted,
    /// Any other event.
    Other,
}

/// The content type of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockContent {
    Text,
    Thinking,
    /// Arguments of a call. Clients receive them complete with the item.
    Arguments,
}

/// The memory that the feeds of all sessions share.
#[derive(Debug, Default)]
pub(crate) struct FeedPool {
    used: AtomicUsize,
}

impl FeedPool {
    /// Bytes that one feed may keep now. It is half of the free bytes, so that a few sessions with many
    /// events leave room for others.
    fn feed_share_bytes(&self) -> usize {
        let free = POOL_BYTES.saturating_sub(self.used.load(Ordering::Relaxed));
        (free / 2).clamp(MIN_FEED_BYTES, MAX_FEED_BYTES)
    }
}

/// The newest events of one session.
pub(crate) struct Feed {
    pool: Arc<FeedPool>,
    ring: Mutex<EntryRing>,
    newest: watch::Sender<Seq>,
    /// The full message of which lagging followers read parts, with its first seq. It is read once and
    /// shared by these followers.
    whole: Mutex<Option<(Seq, Arc<FullMessage>)>>,
    closed: AtomicBool,
    crashed: AtomicBool,
}

struct EntryRing {
    entries: VecDeque<FeedEntry>,
    bytes: usize,
    /// The cursor before the oldest entry: all events after this seq are in `entries`.
    after: Seq,
}

/// Result of a read from the feed.
pub(crate) enum ReadResult {
    /// The next entries; empty if there are no newer ones.
    Entries(Vec<FeedEntry>),
    /// The cursor is older than the feed: read the store.
    Lagged,
}

impl Feed {
    pub fn new(last_seq: Seq, pool: Arc<FeedPool>) -> Self {
        let ring = EntryRing { entries: VecDeque::new(), bytes: 0, after: last_seq };
        Self {
            pool,
            ring: Mutex::new(ring),
            newest: watch::Sender::new(last_seq),
            whole: Mutex::default(),
            closed: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
        }
    }

    /// Publishes committed events to all followers.
    pub fn publish(&self, entries: Vec<FeedEntry>) {
        let Some(last) = entries.last().map(|entry| entry.seq) else { return };
        {
            let mut ring = lock(&self.ring);
            let bytes_before = ring.bytes;
            for entry in entries {
                ring.bytes += entry.body.len();
                ring.entries.push_back(entry);
            }
            let share = self.pool.feed_share_bytes();
            while ring.bytes > share
                && let Some(old) = ring.entries.pop_front()
            {
                ring.bytes -= old.body.len();
                ring.after = old.seq;
            }
            self.pool.used.fetch_add(ring.bytes, Ordering::Relaxed);
            self.pool.used.fetch_sub(bytes_before, Ordering::Relaxed);
        }
        self.newest.send_replace(last);
    }

    /// Returns the cell for a full message. A new cell replaces the cell of any other message.
    pub fn full_message_cell(&self, first_seq: Seq) -> Arc<FullMessage> {
        let mut place = lock(&self.whole);
        match &*place {
            Some((known, whole)) if *known == first_seq => Arc::clone(whole),
            _ => Arc::clone(&place.insert((first_seq, Arc::default())).1),
        }
    }

    /// The full message, if it was read already.
    pub fn known_full_message(&self, first_seq: Seq) -> Option<Arc<Envelope>> {
        let place = lock(&self.whole);
        let (_, whole) = place.as_ref().filter(|(known, _)| *known == first_seq)?;
        whole.get().cloned().flatten()
    }

    /// Closes the feed. Followers end after they have read the remaining entries.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.newest.send_modify(|_| {});
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Records that the session's task panicked, so that the session must be loaded again.
    pub fn crash(&self) {
        self.crashed.store(true, Ordering::Release);
        self.close();
    }

    pub fn has_crashed(&self) -> bool {
        self.crashed.load(Ordering::Acquire)
    }

    pub fn last_seq(&self) -> Seq {
        *self.newest.borrow()
    }

    /// Returns a receiver that is notified about newer events.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.newest.subscribe()
    }

    /// The entries after a cursor, with at most `max_bytes`. At least one entry is returned, whatever its length.
    pub fn entries_after(&self, cursor: Seq, max_bytes: usize) -> ReadResult {
        let ring = lock(&self.ring);
        if cursor < ring.after {
            return ReadResult::Lagged;
        }
        let start = ring.entries.partition_point(|entry| entry.seq <= cursor);
        let mut bytes = 0;
        let batch = ring.entries.range(start..).take(BATCH_EVENTS).take_while(|entry| {
            let fits = bytes < max_bytes;
            bytes += entry.body.len();
            fits
        });
        ReadResult::Entries(batch.cloned().collect())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.pool.used.fetch_sub(lock(&self.ring).bytes, Ordering::Relaxed);
    }
}

/// The kind of an event that will be published.
pub(crate) fn entry_kind(event: &Event) -> EntryKind {
    match event {
        Event::MessageStarted { .. } => EntryKind::MessageStarted,
        Event::MessageBlockStarted { index, block } => EntryKind::BlockStarted(*index, block_content(block)),
        Event::MessageTextDelta { text, .. } | Event::MessageThinkingDelta { text, .. } => {
            EntryKind::Streamed(text.len())
        }
        Event::MessageToolInputDelta { .. } => EntryKind::Streamed(0),
        Event::MessageCompleted { .. } => EntryKind::MessageCompleted,
        _ => EntryKind::Other,
    }
}

pub(super) fn block_content(block: &BlockKind) -> BlockContent {
    match block {
        BlockKind::Text => BlockContent::Text,
        BlockKind::Thinking => BlockContent::Thinking,
        BlockKind::ToolCall { .. } => BlockContent::Arguments,
    }
}

#[cfg(test)]
mod tests {
    use crate::stream::feed::*;

    fn entry_of_bytes(seq: Seq, bytes: usize) -> FeedEntry {
        FeedEntry { seq, body: Arc::from("x".repeat(bytes)), kind: EntryKind::Other }
    }

    #[test]
    fn feed_drops_old_entries_and_reports_lagged_reader() {
        let feed = Feed::new(0, Arc::default());
        for seq in 1..=5 {
            feed.publish(vec![entry_of_bytes(seq, MAX_FEED_BYTES / 3)]);
        }
        assert!(matches!(feed.entries_after(0, 1), ReadResult::Lagged));
        let ReadResult::Entries(lines) = feed.entries_after(3, 1) else { panic!("the ring holds these") };
        assert_eq!(lines.first().map(|line| line.seq), Some(4));
        assert_eq!(feed.last_seq(), 5);
    }
    #[test]
    fn dropped_feed_returns_its_bytes_to_pool() {
        let pool = Arc::<FeedPool>::default();
        let feeds = [Feed::new(0, Arc::clone(&pool)), Feed::new(0, Arc::clone(&pool))];
        for feed in &feeds {
            feed.publish((1..=9).map(|seq| entry_of_bytes(seq, MAX_FEED_BYTES / 3)).collect());
        }
        let used = pool.used.load(Ordering::Relaxed);
        assert!(used > MAX_FEED_BYTES && used <= 2 * MAX_FEED_BYTES, "{used}");
        drop(feeds);
        assert_eq!(pool.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn full_pool_leaves_minimum_to_each_feed() {
        let pool = FeedPool::default();
        assert_eq!(pool.feed_share_bytes(), MAX_FEED_BYTES);
        pool.used.store(POOL_BYTES, Ordering::Relaxed);
        assert_eq!(pool.feed_share_bytes(), MIN_FEED_BYTES);
    }
}
