//! Calls that a model repeats although their result does not change: the model is reminded, then the user is asked.

use crate::decide::plan::PlanBuilder;
use crate::request::model_texts;
use types::event::Event;
use types::question::{Choice, Question, QuestionKind};
use types::session::{Subtype, TurnError};

impl PlanBuilder<'_> {
    /// Stops at a call that was repeated too often: asks the user, or ends the turn of an unattended session. Returns
    /// whether it did. Precondition: all calls of the message are done.
    pub fn stop_repetition(&mut self) -> bool {
        let limit = self.engine.settings.repeat_limit;
        let row = self.state.turn.as_ref().and_then(|turn| turn.repeated.clone());
        let Some(row) = row.filter(|row| limit > 0 && row.count >= limit) else { return false };
        let (tool, count) = (&row.call.tool, row.count);
        if self.state.spec.background {
            let message = format!(
                "the model called {tool} {count} times in a row with the same arguments and the same result \
                 ([session] repeat_limit = {limit}); say in the next input what to do instead"
            );
            self.finish_turn(Subtype::ErrorRepeatedCall, vec![TurnError::new("repeated_call", message)]);
            return true;
        }
        let question = Question {
            child_session_id: None,
            request_id: self.mint.question(),
            kind: QuestionKind::RepeatedCall,
            text: format!(
                "the model called {tool} {count} times in a row with the same arguments and got the same result. \
                 continue: it goes on; abort: the turn ends"
            ),
            call_id: Some(row.call.call_id),
            tool: Some(tool.clone()),
            input: Some(row.call.input.clone()),
            output: None,
            options: Choice::ALL.to_vec(),
            questions: Vec::new(),
        };
        self.push_turn(Event::QuestionRequested { question });
        true
    }

    /// Continues the turn after a user allowed more repetitions. The reminders of this step are already given.
    pub fn continue_after_repetition(&mut self) {
        if self.check_time() {
            return;
        }
        self.deliver_steered();
        self.call_model();
    }

    /// Adds the reminder about a call that the model repeats.
    pub fn remind_of_repetition(&mut self) {
        let is_on = self.engine.settings.repeat_limit > 0;
        let row = self.state.turn.as_ref().and_then(|turn| turn.repeated.as_ref()).filter(|_| is_on);
        let text = row
            .filter(|row| row.count >= REMINDER_COUNT && !row.is_reminded)
            .map(|row| model_texts::repeated_call(&row.call.tool, row.count));
        self.remind_of_call(text);
    }
}

/// Number of identical calls in a row after which the model is reminded.
const REMINDER_COUNT: u32 = 3;
