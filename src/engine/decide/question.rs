//! Questions to the user, about the state after a restart and of the model: each is asked once and answered once.

use std::sync::Arc;

use crate::decide::plan::PlanBuilder;
use crate::input::Refusal;
use crate::output::{Effect, Reply};
use crate::request::model_texts;
use crate::state::{CallStage, CallState, Hold};
use types::event::{Event, SettledBy};
use types::ids::{CallId, QuestionId};
use types::question::{Choice, Question, QuestionKind, UserAnswer, UserQuestion, WrongAnswer, check_answers};
use types::session::Subtype;
use types::tool::{ToolOutcome, ToolStatus};

impl PlanBuilder<'_> {
    /// Asks what to do about a call that may have been running when the daemon died.
    pub fn ask_about(&mut self, call: &CallState, why: &str) {
        let CallStage::Running { output, .. } = &call.stage else { return };
        let output = output.text();
        let tool = &call.call.tool;
        // The call no longer runs, so it cannot receive answers to its own questions.
        self.withdraw_questions(call);
        let question = Question {
            child_session_id: None,
            request_id: self.mint.question(),
            kind: QuestionKind::UnknownOutcome,
            text: format!(
                "the daemon stopped while {tool} may have been running{why}. Whether it took effect is not \
                 known, and it is not run again. continue: the model is told so and goes on; abort: the turn ends"
            ),
            call_id: Some(call.call.call_id),
            tool: Some(tool.clone()),
            input: Some(call.call.input.clone()),
            output: (!output.is_empty()).then_some(output),
            options: Choice::ALL.to_vec(),
            questions: Vec::new(),
        };
        self.push_item(call.item_id, Event::QuestionRequested { question });
    }

    /// Asks whether the turn continues.
    pub fn ask_to_resume(&mut self) {
        let question = Question {
            child_session_id: None,
            request_id: self.mint.question(),
            kind: QuestionKind::Resume,
            text: "the daemon was restarted during this turn, which is paused (on_restart = \"pause\"). \
                   continue: it goes on where it was; abort: it ends"
                .into(),
            call_id: None,
            tool: None,
            input: None,
            output: None,
            options: Choice::ALL.to_vec(),
            questions: Vec::new(),
        };
        self.push_turn(Event::QuestionRequested { question });
    }

    /// The open question that the whole turn waits for, if any.
    pub fn paused_by(&self) -> Option<QuestionId> {
        match self.state.turn.as_ref()?.restart.hold {
            Some(Hold::Paused { request_id, .. }) => Some(request_id),
            _ => None,
        }
    }

    /// The repeated call that the open question of the turn is about, if any.
    pub fn repeated_call(&self) -> Option<CallId> {
        match self.state.turn.as_ref()?.restart.hold {
            Some(Hold::Paused { repeated_call, .. }) => repeated_call,
            _ => None,
        }
    }

    /// Calls with an open question.
    fn unknown_calls(&self) -> Vec<(QuestionId, CallId)> {
        let open = |call: &CallState| match call.stage {
            CallStage::Unknown { request_id, .. } => Some((request_id, call.call.call_id)),
            _ => None,
        };
        self.state.calls().iter().filter_map(open).collect()
    }

    pub fn has_questions(&self) -> bool {
        self.paused_by().is_some() || !self.unknown_calls().is_empty()
    }

    /// Handles an answer; the first one counts.
    pub fn answer_question(&mut self, request_id: QuestionId, choice: Choice) -> Result<(), Refusal> {
        if self.is_aborting() {
            return Err(Refusal::NotPending);
        }
        let paused = self.paused_by() == Some(request_id);
        let repeated_call = self.repeated_call().filter(|_| paused);
        let call = self.unknown_calls().into_iter().find(|(id, _)| *id == request_id);
        // The next event records the answer.
        let reply = Reply::QuestionAnswered(self.state.next_seq);
        match call {
            Some((_, call_id)) => self.settle_unknown(call_id, choice, SettledBy::Answer),
            None if paused => self.settle_paused(choice, SettledBy::Answer),
            None if self.call_with_questions(request_id).is_some() => {
                let why = "this question takes answers, one for each of its questions".into();
                return Err(Refusal::WrongAnswer(WrongAnswer { path: "choice".into(), why }));
            }
            None => return Err(Refusal::NotPending),
        }
        self.reply = reply;
        match choice {
            Choice::Continue if repeated_call.is_some() => self.continue_after_repetition(),
            Choice::Continue if paused => self.continue_turn(),
            Choice::Continue => self.advance_tools(),
            Choice::Abort => {
                self.push_turn(Event::TurnAborting { ending: false, subtype: Subtype::Aborted });
                self.stop_turn();
            }
        }
        Ok(())
    }

    /// Settles every open question by continuing, because the user sent a new input instead of an answer.
    pub fn continue_all(&mut self) {
        for (_, call_id) in self.unknown_calls() {
            self.settle_unknown(call_id, Choice::Continue, SettledBy::Submit);
        }
        if self.paused_by().is_some() {
            let is_repetition = self.repeated_call().is_some();
            self.settle_paused(Choice::Continue, SettledBy::Submit);
            if is_repetition {
                self.continue_after_repetition();
            } else {
                self.continue_turn();
            }
        } else {
            self.advance_tools();
        }
    }

    /// Settles the question about a call and gives the call its result.
    pub fn settle_unknown(&mut self, call_id: CallId, choice: Choice, by: SettledBy) {
        let Some(call) = self.state.call(call_id).cloned() else { return };
        let CallStage::Unknown { request_id, output, .. } = &call.stage else { return };
        let kind = QuestionKind::UnknownOutcome;
        self.push_resolved(&call, *request_id, kind, (Some(choice), Vec::new()), by);
        self.complete(call.call.call_id, unknown(output), 0);
    }

    /// Settles the question whether the turn continues.
    pub fn settle_paused(&mut self, choice: Choice, by: SettledBy) {
        let Some(request_id) = self.paused_by() else { return };
        let call_id = self.repeated_call();
        let kind = if call_id.is_some() { QuestionKind::RepeatedCall } else { QuestionKind::Resume };
        let (choice, answers) = (Some(choice), Vec::new());
        self.push_turn(Event::QuestionResolved {
            request_id,
            kind,
            call_id,
            choice,
            answers,
            by,
            child_session_id: None,
        });
    }
}

impl PlanBuilder<'_> {
    /// Raises the questions of a call. An unattended session has no user to ask, so the call gets its result at once.
    pub fn ask_user(&mut self, call: &CallState, questions: Vec<UserQuestion>) {
        if self.state.spec.background {
            let call_id = call.call.call_id;
            let text = model_texts::QUESTION_UNATTENDED;
            self.complete(call_id, ToolOutcome::failed("no_answer", text), 0);
            return;
        }
        self.raise_questions(call, questions);
    }

    /// Raises the questions of a running tool, for example those of an MCP server. If no user can answer, the tool is
    /// informed at once.
    pub fn raise_tool_questions(&mut self, call_id: CallId, questions: Vec<UserQuestion>) {
        let call = self.state.call(call_id).cloned();
        let running = call.filter(|call| matches!(call.stage, CallStage::Running { question: None, .. }));
        match running.filter(|_| !self.state.spec.background && !self.is_aborting()) {
            Some(call) => self.raise_questions(&call, questions),
            None => self.add_effect(Effect::AnswerTool { call_id, answers: None }),
        }
    }

    /// Withdraws the questions of a running tool that no longer waits for the answers.
    pub fn tool_stopped_asking(&mut self, call_id: CallId) {
        if let Some(call) = self.state.call(call_id).cloned()
            && matches!(call.stage, CallStage::Running { .. })
        {
            self.withdraw_questions(&call);
        }
    }

    fn raise_questions(&mut self, call: &CallState, questions: Vec<UserQuestion>) {
        let question = Question {
            child_session_id: None,
            request_id: self.mint.question(),
            kind: QuestionKind::Question,
            text: questions.first().map(|question| question.question.clone()).unwrap_or_default(),
            call_id: Some(call.call.call_id),
            tool: Some(call.call.tool.clone()),
            input: None,
            output: None,
            options: Vec::new(),
            questions,
        };
        self.push_item(call.item_id, Event::QuestionRequested { question });
    }

    fn call_with_questions(&self, request_id: QuestionId) -> Option<(CallState, Arc<Vec<UserQuestion>>)> {
        self.state.calls().iter().find_map(|call| {
            let open = call.open_question().filter(|open| open.request_id == request_id)?;
            Some((call.clone(), Arc::clone(&open.questions)))
        })
    }

    /// Handles the user's answers to questions of the model; the first ones count.
    pub fn answer_user(&mut self, request_id: QuestionId, answers: Vec<UserAnswer>) -> Result<(), Refusal> {
        if self.is_aborting() {
            return Err(Refusal::NotPending);
        }
        let Some((call, questions)) = self.call_with_questions(request_id) else {
            let takes_choice = self.paused_by() == Some(request_id)
                || self.unknown_calls().iter().any(|(id, _)| *id == request_id);
            let why = "this question takes a choice: continue or abort".into();
            return Err(match takes_choice {
                true => Refusal::WrongAnswer(WrongAnswer { path: "answers".into(), why }),
                false => Refusal::NotPending,
            });
        };
        check_answers(&questions, &answers).map_err(Refusal::WrongAnswer)?;
        let text = model_texts::answers(&questions, &answers);
        let reply = Reply::QuestionAnswered(self.state.next_seq);
        self.resolve_questions(&call, request_id, answers.clone(), SettledBy::Answer);
        self.reply = reply;
        if matches!(call.stage, CallStage::Running { .. }) {
            self.add_effect(Effect::AnswerTool { call_id: call.call.call_id, answers: Some(answers) });
            return Ok(());
        }
        self.complete(call.call.call_id, ToolOutcome::completed(text), 0);
        self.advance_tools();
        Ok(())
    }

    /// Settles the questions of a call that ends without answers.
    pub fn withdraw_questions(&mut self, call: &CallState) {
        if let Some(open) = call.open_question() {
            self.resolve_questions(call, open.request_id, Vec::new(), SettledBy::Abort);
        }
    }

    fn resolve_questions(
        &mut self,
        call: &CallState,
        request_id: QuestionId,
        answers: Vec<UserAnswer>,
        by: SettledBy,
    ) {
        self.push_resolved(call, request_id, QuestionKind::Question, (None, answers), by);
    }

    /// Records how a question about a call ended.
    fn push_resolved(
        &mut self,
        call: &CallState,
        request_id: QuestionId,
        kind: QuestionKind,
        (choice, answers): (Option<Choice>, Vec<UserAnswer>),
        by: SettledBy,
    ) {
        let call_id = Some(call.call.call_id);
        self.push_item(
            call.item_id,
            Event::QuestionResolved {
                request_id,
                kind,
                call_id,
                choice,
                answers,
                by,
                child_session_id: None,
            },
        );
    }
}

/// The result of a call whose outcome is unknown.
pub(crate) fn unknown(output: &str) -> ToolOutcome {
    ToolOutcome {
        status: ToolStatus::Unknown,
        ..ToolOutcome::failed("unknown_outcome", model_texts::unknown(output))
    }
}
