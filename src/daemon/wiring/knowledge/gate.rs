//! Limits the number of simultaneous model calls about all indexes. A user's question has priority over
//! summaries, and summaries over extraction, so that a long job does not delay answers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::oneshot;

use base::sync::lock;

/// The gate. Waiting calls enter by priority, then in order of arrival.
#[derive(Default)]
pub(super) struct CallGate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    limit: usize,
    running: usize,
    arrived: u64,
    waiting: BTreeMap<(u8, u64), oneshot::Sender<CallPermit>>,
}

/// The permission to make one call. Dropping it admits the next call.
pub(super) struct CallPermit(Arc<CallGate>);

impl CallGate {
    /// Waits for a permit. Calls with a lower `priority` value go first. `limit` is the current
    /// setting. Dropping the future returns the permit.
    pub async fn acquire(self: &Arc<Self>, limit: usize, priority: u8) -> CallPermit {
        let admitted = {
            let mut state = lock(&self.0);
            state.limit = limit.max(1);
            state.arrived += 1;
            let (sender, admitted) = oneshot::channel();
            let key = (priority, state.arrived);
            state.waiting.insert(key, sender);
            admitted
        };
        self.admit_waiting();
        match admitted.await {
            Ok(permit) => permit,
            // The gate keeps each sender until it sends, so this error does not occur.
            Err(_) => CallPermit(Arc::clone(self)),
        }
    }

    fn admit_waiting(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = lock(&self.0);
                if state.running >= state.limit {
                    return;
                }
                let Some((_, next)) = state.waiting.pop_first() else { return };
                state.running += 1;
                next
            };
            // If the caller no longer waits, its permit is dropped, which admits the next call.
            if next.send(CallPermit(Arc::clone(self))).is_err() {
                return;
            }
        }
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        {
            let mut state = lock(&self.0.0);
            state.running = state.running.saturating_sub(1);
        }
        self.0.admit_waiting();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn waiting_calls_enter_by_priority_then_by_arrival() {
        let gate = Arc::new(CallGate::default());
        let first = gate.acquire(1, 10).await;
        let mut extraction = Box::pin(gate.acquire(1, 10));
        let mut summary = Box::pin(gate.acquire(1, 8));
        let mut query = Box::pin(gate.acquire(1, 5));
        let mut other_query = Box::pin(gate.acquire(1, 5));
        for waiting in [&mut extraction, &mut summary, &mut query, &mut other_query] {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        drop(first);
        assert!(other_query.as_mut().now_or_never().is_none());
        let permit = query.as_mut().now_or_never().expect("the first query enters");
        // A caller that no longer waits must not block other callers.
        drop(other_query);
        drop(permit);
        assert!(extraction.as_mut().now_or_never().is_none());
        let permit = summary.as_mut().now_or_never().expect("the summary enters");
        drop(permit);
        let _place = extraction.as_mut().now_or_never().expect("the extraction enters");
        let wider = gate.acquire(2, 10).now_or_never();
        assert!(wider.is_some(), "a higher limit counts at once");
    }
}
