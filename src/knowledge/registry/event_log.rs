//! The events of one job or query, for subscriptions. Each follower reads at its own pace.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use base::sync::lock;
use types::knowledge::KnowledgeEvent;

/// The newest events of one job or query. A follower that is slower than the capacity misses events in the middle,
/// never the last one.
#[derive(Debug)]
pub struct EventLog {
    state: Mutex<LogState>,
    /// Number of events so far.
    grown: watch::Sender<u64>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct LogState {
    events: VecDeque<Arc<str>>,
    /// Number of the first event that is kept.
    first: u64,
    is_ended: bool,
}

impl EventLog {
    /// Keeps at most `capacity` events.
    #[must_use]
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), grown: watch::Sender::new(0), capacity: capacity.max(1) })
    }

    /// Adds an event. After a terminal event nothing is added.
    pub fn push(&self, event: &KnowledgeEvent) {
        // Serialising plain values cannot fail.
        let text: Arc<str> = serde_json::to_string(event).unwrap_or_default().into();
        let mut state = lock(&self.state);
        if state.is_ended {
            return;
        }
        state.is_ended = event.is_terminal();
        state.events.push_back(text);
        if state.events.len() > self.capacity {
            state.events.pop_front();
            state.first += 1;
        }
        let count = state.first + state.events.len() as u64;
        drop(state);
        self.grown.send_replace(count);
    }

    /// Whether the last event was added.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        lock(&self.state).is_ended
    }

    /// Follows the events from the first one that is kept.
    #[must_use]
    pub fn follow(self: &Arc<Self>) -> LogFollower {
        LogFollower { next: 0, grown: self.grown.subscribe(), log: Arc::clone(self) }
    }
}

/// Reads an [`EventLog`].
#[derive(Debug)]
pub struct LogFollower {
    log: Arc<EventLog>,
    next: u64,
    grown: watch::Receiver<u64>,
}

impl LogFollower {
    /// The next events, at least one; `None` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<Arc<str>>> {
        loop {
            {
                let state = lock(&self.log.state);
                let skip = usize::try_from(self.next.saturating_sub(state.first)).unwrap_or(usize::MAX);
                let events: Vec<Arc<str>> = state.events.iter().skip(skip).cloned().collect();
                if !events.is_empty() {
                    self.next = state.first + state.events.len() as u64;
                    return Some(events);
                }
                if state.is_ended {
                    return None;
                }
            }
            self.grown.changed().await.ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn followers_receive_newest_events_and_one_end() {
        let log = EventLog::new(2);
        let mut early = log.follow();
        log.push(&KnowledgeEvent::ExtractingKeywords {});
        assert_eq!(early.next().await.map(|events| events.len()), Some(1));
        for text in ["a", "b", "c"] {
            log.push(&KnowledgeEvent::Delta { text: text.into() });
        }
        log.push(&KnowledgeEvent::Cancelled {});
        log.push(&KnowledgeEvent::Cancelled {});
        let texts = |events: Option<Vec<Arc<str>>>| events.map(|events| events.join(" "));
        let expected = r#"{"type":"delta","text":"c"} {"type":"cancelled"}"#;
        assert_eq!(texts(early.next().await).as_deref(), Some(expected));
        assert_eq!(early.next().await, None);
        assert_eq!(texts(log.follow().next().await).as_deref(), Some(expected), "also after the end");
        assert!(log.is_ended());
    }
}
