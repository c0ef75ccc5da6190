//! Records the runs of hooks as events. A hook on `stop` can make the session continue.

use crate::decide::plan::PlanBuilder;
use crate::input::SubmitRequest;
use crate::request::model_texts;
use types::event::Event;
use types::hook::HookRun;
use types::ids::CallId;
use types::message::InputBlock;
use types::queue::WhenBusy;
use types::session::SessionState;
use types::turn_options::TurnOptions;

impl PlanBuilder<'_> {
    /// Records runs of hooks. `continues` is the reason with which a `stop` hook makes the session continue.
    pub fn hooks_ran(&mut self, call_id: Option<CallId>, runs: Vec<HookRun>, continues: Option<String>) {
        let item_id = call_id.and_then(|id| self.state.call(id)).map(|call| call.item_id);
        for run in runs {
            let event = Event::HookCompleted { call_id, run };
            match item_id {
                Some(item_id) => self.push_item(item_id, event),
                None => self.push_turn(event),
            };
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
