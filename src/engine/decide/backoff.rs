//! Waits before another attempt. A restart continues the wait, and a long wait is reported repeatedly.

use crate::decide::plan::PlanBuilder;
use crate::output::Effect;
use crate::state::Activity;
use types::event::Event;
use types::ids::Seq;

impl PlanBuilder<'_> {
    /// Starts the wait that the event `token` reports.
    pub fn start_backoff(&mut self, token: Seq, delay_ms: u64) {
        self.add_effect(Effect::Sleep { token, delay_ms: self.next_slice_ms(delay_ms) });
    }

    /// The part of a wait, in milliseconds, after which it is reported again.
    fn next_slice_ms(&self, left_ms: u64) -> u64 {
        left_ms.min(self.engine.settings.retry.heartbeat.millis().max(1))
    }

    pub fn timer_fired(&mut self, token: Seq) {
        if self.end_resume_wait(token) {
            return;
        }
        let Some(turn) = &self.state.turn else { return };
        let Activity::Waiting { token: expected, wait } = &turn.activity else { return };
        if *expected != token || turn.stop.is_aborting || turn.restart.hold.is_some() {
            return;
        }
        let (step, left_ms) = (turn.step, wait.as_ref().map_or(0, |wait| wait.left_ms));
        let left_ms = left_ms - self.next_slice_ms(left_ms);
        if !self.start_next_slice(left_ms) {
            self.call_model_step(step);
        }
    }

    /// After a restart: continues the remaining wait. Returns `false` if nothing remains.
    pub fn continue_backoff(&mut self) -> bool {
        let Some(turn) = &self.state.turn else { return false };
        let Activity::Waiting { wait: Some(wait), .. } = &turn.activity else { return false };
        self.start_next_slice(wait.left_ms.saturating_sub(self.now.at.since(wait.reported_at)))
    }

    /// Reports that a wait continues, and starts the timer for its next part.
    fn start_next_slice(&mut self, left_ms: u64) -> bool {
        let Some(Activity::Waiting { wait: Some(wait), .. }) =
            self.state.turn.as_ref().map(|turn| &turn.activity)
        else {
            return false;
        };
        if left_ms == 0 {
            return false;
        }
        let (reason, attempt, max) = (wait.reason.clone(), wait.attempt, wait.max);
        let beat = Event::Heartbeat { reason, attempt, remaining_ms: left_ms, max };
        let token = self.push_turn(beat);
        self.start_backoff(token, left_ms);
        true
    }
}
