//! The recent journal in memory, serialised once for all who follow. Only the session writes to it,
//! after the commit; readers take what they want at their own pace.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OnceCell, watch};

use crate::types::event::Envelope;
use crate::types::ids::Seq;

/// Bytes kept in memory; whoever is further behind reads the store. Little in tests, so that
/// followers fall behind.
const KEEP_BYTES: usize = if cfg!(test) { 3 * 1024 } else { 1024 * 1024 };
/// Events handed to a follower at once.
const BATCH: usize = 500;

/// A finished message with all that was cut out of it; `None` if that is not to be had.
pub(in crate::session) type FullMessage = OnceCell<Option<Arc<Envelope>>>;

/// One event as it stands on the wire.
#[derive(Clone, Debug)]
pub(in crate::session) struct Entry {
    pub seq: Seq,
    pub body: Arc<str>,
    pub shape: EntryKind,
}

/// What a follower must know of an event without parsing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum EntryKind {
    /// A message begins; its block rows refer to this event's seq.
    MessageStarted,
    /// A block begins.
    BlockStarted(u32, Content),
    /// That much text or reasoning of the open block; 0 for arguments.
    Streamed(usize),
    /// A message ends.
    MessageCompleted,
    /// Anything else.
    Other,
}

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::session) enum Content {
    Text,
    Thinking,
    /// Arguments of a call: clients get them whole with the item.
    Arguments,
}

/// The recent journal of one session.
pub(in crate::session) struct Feed {
    ring: Mutex<Ring>,
    newest: watch::Sender<Seq>,
    /// The message that followers behind it are given pieces of, by its first seq: made whole once for all of
    /// them, and not by each for itself.
    whole: Mutex<Option<(Seq, Arc<FullMessage>)>>,
    closed: AtomicBool,
    crashed: AtomicBool,
}

struct Ring {
    lines: VecDeque<Entry>,
    bytes: usize,
    /// Everything after this seq is in `lines`.
    after: Seq,
}

/// What a look at the ring gave.
pub(in crate::session) enum ReadResult {
    /// The next lines; empty if there is nothing newer.
    Entries(Vec<Entry>),
    /// The cursor is too far behind: ask the store.
    Lagged,
}

impl Feed {
    pub fn new(last_seq: Seq) -> Self {
        let ring = Ring { lines: VecDeque::new(), bytes: 0, after: last_seq };
        Self {
            ring: Mutex::new(ring),
            newest: watch::Sender::new(last_seq),
            whole: Mutex::default(),
            closed: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
        }
    }

    /// Shows committed events to everybody.
    pub fn publish(&self, lines: Vec<Entry>) {
        let Some(last) = lines.last().map(|line| line.seq) else { return };
        {
            let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
            for line in lines {
                ring.bytes += line.body.len();
                ring.lines.push_back(line);
            }
            while ring.bytes > KEEP_BYTES
                && let Some(old) = ring.lines.pop_front()
            {
                ring.bytes -= old.body.len();
                ring.after = old.seq;
            }
        }
        self.newest.send_replace(last);
    }

    /// The place of a message that is made whole; that of another message is given up.
    pub fn whole(&self, first_seq: Seq) -> Arc<FullMessage> {
        let mut place = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        match &*place {
            Some((known, whole)) if *known == first_seq => Arc::clone(whole),
            _ => Arc::clone(&place.insert((first_seq, Arc::default())).1),
        }
    }

    /// The message, if it was made whole.
    pub fn known_whole(&self, first_seq: Seq) -> Option<Arc<Envelope>> {
        let place = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, whole) = place.as_ref().filter(|(known, _)| *known == first_seq)?;
        whole.get().cloned().flatten()
    }

    /// Nothing more will come: followers end once they have read what there is.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.newest.send_modify(|_| {});
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The session's task panicked: the session must be loaded again.
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

    /// Tells when there is something newer.
    pub fn watch(&self) -> watch::Receiver<Seq> {
        self.newest.subscribe()
    }

    /// The lines after a cursor, at most `most` bytes of them; one is always given, however long.
    pub fn after(&self, cursor: Seq, most: usize) -> ReadResult {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor < ring.after {
            return ReadResult::Lagged;
        }
        let start = ring.lines.partition_point(|line| line.seq <= cursor);
        let mut bytes = 0;
        let batch = ring.lines.range(start..).take(BATCH).take_while(|line| {
            let fits = bytes < most;
            bytes += line.body.len();
            fits
        });
        ReadResult::Entries(batch.cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::session::stream::feed::*;

    fn line(seq: Seq, bytes: usize) -> Entry {
        Entry { seq, body: Arc::from("x".repeat(bytes)), shape: EntryKind::Other }
    }

    #[test]
    fn feed_drops_old_entries_and_reports_lagged_reader() {
        let feed = Feed::new(0);
        for seq in 1..=5 {
            feed.publish(vec![line(seq, KEEP_BYTES / 3)]);
        }
        assert!(matches!(feed.after(0, 1), ReadResult::Lagged));
        let ReadResult::Entries(lines) = feed.after(3, 1) else { panic!("the ring holds these") };
        assert_eq!(lines.first().map(|line| line.seq), Some(4));
        assert_eq!(feed.last_seq(), 5);
    }
}
