//! Waiting before another attempt: a wait that a restart continues, and that tells of itself when it
//! is long (Q30).

use crate::engine::decide::plan::{Effect, PlanBuilder};
use crate::engine::state::Activity;
use crate::types::event::Event;
use crate::types::ids::Seq;
use crate::types::time::Timestamp;

/// A wait, as it stood when it was last told of.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::engine) struct Backoff {
    /// What is left of it, in milliseconds.
    pub left_ms: u64,
    /// The moment at which that was so.
    pub told_at: Timestamp,
    /// What is waited for.
    pub reason: String,
    /// The attempt that failed last.
    pub attempt: u32,
}

impl PlanBuilder<'_> {
    /// Begins the wait that the event `token` tells of.
    pub fn start_backoff(&mut self, token: Seq, delay_ms: u64) {
        self.effect(Effect::Sleep { token, delay_ms: self.slice(delay_ms) });
    }

    /// The part of a wait after which it is told of again.
    fn slice(&self, left_ms: u64) -> u64 {
        left_ms.min(self.engine.settings.retry.heartbeat_ms.max(1))
    }

    pub fn timer_fired(&mut self, token: Seq) {
        if self.wait_is_over(token) {
            return;
        }
        let Some(turn) = &self.state.turn else { return };
        let Activity::Waiting { token: expected, wait } = &turn.activity else { return };
        if *expected != token || turn.aborting || turn.hold.is_some() {
            return;
        }
        let (step, left_ms) = (turn.step, wait.as_ref().map_or(0, |wait| wait.left_ms));
        let left_ms = left_ms - self.slice(left_ms);
        if !self.start_next_slice(left_ms) {
            self.call_model_step(step);
        }
    }

    /// After a restart: waits for what is left of the wait. Returns whether anything is.
    pub fn continue_backoff(&mut self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        let Activity::Waiting { wait: Some(wait), .. } = &turn.activity else { return false };
        self.start_next_slice(wait.left_ms.saturating_sub(self.now.at.since(wait.told_at)))
    }

    /// Tells that a wait goes on, and waits.
    fn start_next_slice(&mut self, left_ms: u64) -> bool {
        let Some(Activity::Waiting { wait: Some(wait), .. }) =
            self.state.turn.as_ref().map(|turn| &turn.activity)
        else {
            return false;
        };
        if left_ms == 0 {
            return false;
        }
        let beat =
            Event::Heartbeat { reason: wait.reason.clone(), attempt: wait.attempt, remaining_ms: left_ms };
        let token = self.push_turn(beat);
        self.start_backoff(token, left_ms);
        true
    }
}
