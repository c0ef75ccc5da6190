//! The order of a connection's calls. Calls run concurrently, but a client that writes three requests without
//! waiting for replies expects them to take effect in that order. A method can therefore wait until the
//! earlier calls have passed. A call passes when it is answered, or earlier if its method allows that.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use base::sync::lock;

/// The queue of one connection.
#[derive(Debug)]
pub(super) struct CallOrder {
    state: Mutex<TicketState>,
    passed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct TicketState {
    next_number: u64,
    /// Every ticket below this number has passed.
    passed: u64,
    /// Tickets that passed before their turn.
    early: BTreeSet<u64>,
}

/// One call's position in the queue; dropping it lets the next call pass.
#[derive(Debug)]
pub(super) struct Ticket {
    order: Arc<CallOrder>,
    number: u64,
}

impl CallOrder {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), passed: watch::Sender::new(0) })
    }

    /// Issues the next ticket. Must be called in the order in which the calls arrived.
    pub fn ticket(self: &Arc<Self>) -> Ticket {
        let mut state = lock(&self.state);
        let number = state.next_number;
        state.next_number += 1;
        Ticket { order: Arc::clone(self), number }
    }
}

impl Ticket {
    /// Resolves when every earlier call has passed. Cancel-safe.
    pub async fn wait_turn(&self) {
        let mut passed = self.order.passed.subscribe();
        // The sender lives as long as the ticket, so this cannot fail.
        let _ = passed.wait_for(|passed| *passed >= self.number).await;
    }

    /// Lets the next call pass. Calling it twice has no further effect.
    pub fn let_pass(&self) {
        let mut state = lock(&self.order.state);
        if self.number < state.passed {
            return;
        }
        state.early.insert(self.number);
        let before = state.passed;
        while let Some(first) = state.early.first().copied().filter(|first| *first == state.passed) {
            state.early.remove(&first);
            state.passed += 1;
        }
        if state.passed > before {
            self.order.passed.send_replace(state.passed);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.let_pass();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use crate::call_order::*;

    #[test]
    fn call_order_admits_ticket_after_all_earlier() {
        let order = CallOrder::new();
        let (first, second, third) = (order.ticket(), order.ticket(), order.ticket());
        assert!(first.wait_turn().now_or_never().is_some());
        assert!(third.wait_turn().now_or_never().is_none());
        second.let_pass();
        assert!(third.wait_turn().now_or_never().is_none());
        drop(first);
        assert!(third.wait_turn().now_or_never().is_some());
        second.let_pass();
        assert!(third.wait_turn().now_or_never().is_some());
    }
}
