//! Records the runs of hooks as events. A hook on `stop` can make the session continue.

use crate::decide::plan::PlanBuilder;
use crate::input::SubmitRequest;
use crate::request::model_texts;
use types::event::Event;
use types::hook::{HookFailure, HookRun, HookStatus, PROBLEM_NOTICE, REPAIRED_NOTICE, STOPPED_NOTICE};
use types::ids::CallId;
use types::message::InputBlock;
use types::queue::WhenBusy;
use types::session::{SessionState, Subtype};
use types::turn_options::TurnOptions;

impl PlanBuilder<'_> {
    /// Records runs of hooks. `context` reaches the running turn now, and else the next input.
    pub fn hooks_ran(&mut self, call_id: Option<CallId>, runs: Vec<HookRun>, context: Option<String>) {
        // An asynchronous hook may end after its session.
        if self.state.status == SessionState::Ended {
            return;
        }
        let item_id = call_id.and_then(|id| self.state.call(id)).map(|call| call.item_id);
        let mut status = HookStatus::clone(&self.state.hooks);
        for run in runs {
            if let Some(error) = run.error.clone() {
                status.failure = Some(HookFailure { event: run.event, command: run.command.clone(), error });
            } else {
                status.failure.take_if(|failed| (failed.event, &failed.command) == (run.event, &run.command));
            }
            let event = Event::HookCompleted { call_id, run };
            match item_id {
                Some(item_id) => self.push_item(item_id, event),
                None => self.push_turn(event),
            };
        }
        if let Some(context) = context {
            if self.state.turn.is_some() && !self.is_aborting() {
                let text = model_texts::hook_context(&[context]);
                self.push_turn(Event::TurnSteered { input: vec![InputBlock::Text { text }] });
            } else {
                status.context.push(context);
            }
        }
        self.set_hook_status(status);
    }

    /// Reports entries and files of hooks that cannot be used, once for each change.
    pub fn hooks_read(&mut self, problems: Vec<String>) {
        if self.state.hooks.problems == problems || self.state.status == SessionState::Ended {
            return;
        }
        let (kind, text) = match problems.join("; ") {
            text if text.is_empty() => (REPAIRED_NOTICE, "all hooks can be used again".to_owned()),
            text => (PROBLEM_NOTICE, text),
        };
        self.set_hook_status(HookStatus { problems, ..HookStatus::clone(&self.state.hooks) });
        self.push_session(Event::Notice { kind: kind.into(), text });
    }

    fn set_hook_status(&mut self, status: HookStatus) {
        if *self.state.hooks != status {
            self.push_session(Event::HooksStatus { status });
        }
    }

    /// Ends the turn, or makes the session continue, as hooks request it.
    pub fn follow_hooks(&mut self, continues: Option<String>, stops: Option<String>) {
        if let Some(reason) = stops
            && self.state.turn.is_some()
            && !self.is_aborting()
        {
            let text = format!("a hook ended the turn: {reason}");
            self.push_turn(Event::Notice { kind: STOPPED_NOTICE.into(), text });
            self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::PermissionDenied });
            self.stop_turn();
            return;
        }
        let Some(reason) = continues else { return };
        // A running turn, for example with a user's queued input, takes precedence over the hook.
        if self.state.turn.is_some() || self.state.status == SessionState::Ended || self.state.archived {
            return;
        }
        let text = model_texts::stop_hook(&reason);
        // `submit` refuses if a limit of the session is reached. The turn then stays ended.
        let _ = self.submit(SubmitRequest {
            input: vec![InputBlock::Text { text }],
            blobs: Vec::new(),
            when_busy: Some(WhenBusy::Queue),
            expected_turn: None,
            options: TurnOptions::default(),
            origin: None,
        });
    }
}
