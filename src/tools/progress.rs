//! Tells how far a call without output is, if it takes long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use types::tool::ToolProgress;

/// The channel for notes of one call. Cheap to clone; all clones keep one rhythm.
#[derive(Clone)]
pub(crate) struct CallProgress {
    sender: Option<mpsc::Sender<ToolProgress>>,
    started_at: Instant,
    interval: Duration,
    /// Milliseconds from the start to the next note.
    due: Arc<AtomicU64>,
}

impl CallProgress {
    /// For a call whose progress is of no interest.
    pub(crate) fn none() -> Self {
        Self { sender: None, started_at: Instant::now(), interval: Duration::MAX, due: Arc::default() }
    }

    /// Sends a note at most once per `interval`, the first one after it.
    pub(crate) fn new(sender: mpsc::Sender<ToolProgress>, interval: Duration) -> Self {
        let due = Arc::new(AtomicU64::new(millis(interval)));
        Self { sender: Some(sender), started_at: Instant::now(), interval, due }
    }

    /// Call it often; it sends a note only when one is due. A full channel drops the note.
    pub(crate) fn report(&self, note: impl FnOnce() -> String) {
        let Some(sender) = &self.sender else { return };
        let (now, due) = (millis(self.started_at.elapsed()), self.due.load(Relaxed));
        let next = now.saturating_add(millis(self.interval));
        if now >= due && self.due.compare_exchange(due, next, Relaxed, Relaxed).is_ok() {
            let _ = sender.try_send(ToolProgress { stream: ToolProgress::NOTE, text: note() + "\n" });
        }
    }

    /// Runs work that waits for something else, and reports meanwhile. Cancel-safe if the work is.
    pub(crate) async fn follow<T>(&self, work: impl Future<Output = T>, note: impl Fn() -> String) -> T {
        if self.sender.is_none() {
            return work.await;
        }
        tokio::pin!(work);
        let mut ticks = tokio::time::interval(self.interval.max(Duration::from_millis(1)));
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = ticks.tick() => self.report(&note),
            }
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
