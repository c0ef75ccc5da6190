//! Records what happens to the job that the session works on.

use crate::decide::plan::PlanBuilder;
use types::event::Event;
use types::job::JobEvent;
use types::session::SessionState;

impl PlanBuilder<'_> {
    /// Records events of the job, oldest first, except those that the session has. An ended session records nothing.
    pub fn job_events(&mut self, events: Vec<JobEvent>) {
        if self.state.status == SessionState::Ended {
            return;
        }
        for event in events {
            if event.seq > self.state.job_seq {
                self.push_session(Event::JobEvent { event: Box::new(event) });
            }
        }
    }
}
