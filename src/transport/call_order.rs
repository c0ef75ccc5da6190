//! The order of a connection's calls. They run concurrently, but a client that writes three requests
//! without waiting for replies expects them to take effect in that order. A method may wait for its
//! turn. It lets the next call pass when it is answered, or earlier.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::sync::lock;

/// The queue of one connection.
#[derive(Debug)]
pub(super) struct CallOrder {
    line: Mutex<Line>,
    passed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Line {
    given: u64,
    /// Every ticket below this number has passed.
    passed: u64,
    /// Tickets that passed before their turn.
    early: BTreeSet<u64>,
}

/// One call's position in the queue; dropping it lets the next call pass.
#[derive(Debug)]
pub(super) struct Ticket {
    turns: Arc<CallOrder>,
    number: u64,
}

impl CallOrder {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { line: Mutex::default(), passed: watch::Sender::new(0) })
    }

    /// Issues the next ticket. Must be called in the order in which the calls arrived.
    pub fn ticket(self: &Arc<Self>) -> Ticket {
        let mut line = lock(&self.line);
        let number = line.given;
        line.given += 1;
        Ticket { turns: Arc::clone(self), number }
    }
}

impl Ticket {
    /// Resolves when every earlier call has passed. Cancel-safe.
    pub async fn turn(&self) {
        let mut passed = self.turns.passed.subscribe();
        // The sender lives as long as the ticket, so this cannot fail.
        let _ = passed.wait_for(|passed| *passed >= self.number).await;
    }

    /// Lets the next call pass. Calling it twice has no further effect.
    pub fn pass(&self) {
        let mut line = lock(&self.turns.line);
        if self.number < line.passed {
            return;
        }
        line.early.insert(self.number);
        let before = line.passed;
        while let Some(first) = line.early.first().copied().filter(|first| *first == line.passed) {
            line.early.remove(&first);
            line.passed += 1;
        }
        if line.passed > before {
            self.turns.passed.send_replace(line.passed);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pass();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use crate::transport::call_order::*;

    #[test]
    fn call_order_admits_ticket_after_all_earlier() {
        let turns = CallOrder::new();
        let (first, second, third) = (turns.ticket(), turns.ticket(), turns.ticket());
        assert!(first.turn().now_or_never().is_some());
        assert!(third.turn().now_or_never().is_none());
        second.pass();
        assert!(third.turn().now_or_never().is_none());
        drop(first);
        assert!(third.turn().now_or_never().is_some());
        second.pass();
        assert!(third.turn().now_or_never().is_some());
    }
}
