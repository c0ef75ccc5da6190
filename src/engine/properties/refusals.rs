//! Properties of refusals: the inputs that the engine must refuse.

use crate::calls::OUTSIDE;
use crate::reference_model::ReferenceModel;
use engine::{Input, QueueEdit, Refusal, SubmitRequest};
use types::ids::TurnId;
use types::message::input_line;
use types::permission::{Decision, OnTimeout, Scope};
use types::question::WrongAnswer;
use types::queue::WhenBusy;
use types::session::SessionState;

impl ReferenceModel {
    /// The refusal that the input must receive, if any.
    pub fn expected_refusal(&self, input: &Input) -> Option<Refusal> {
        let current = self.turn.as_ref().map(|turn| turn.id);
        match input {
            Input::Submit(_) if self.status.0 == SessionState::Ended => Some(Refusal::Ended),
            Input::Submit(_) if self.archived => Some(Refusal::Archived),
            Input::Submit(submit) if input_line(&submit.input).trim().is_empty() => Some(Refusal::EmptyInput),
            Input::Submit(submit) if submit.expected_turn.is_some() && submit.expected_turn != current => {
                Some(Refusal::StaleTurn { current })
            }
            Input::Submit(submit) if submit.options.mode.is_some() && self.is_steering(submit) => {
                Some(Refusal::ModeOfSteer)
            }
            Input::Submit(submit) if submit.options.model.is_some() && self.is_steering(submit) => {
                Some(Refusal::ModelOfSteer)
            }
            Input::Submit(submit) if submit.options.thinking.is_some() && self.is_steering(submit) => {
                Some(Refusal::ThinkingOfSteer)
            }
            Input::Submit(submit) if submit.options.tools.is_some() && self.is_steering(submit) => {
                Some(Refusal::ToolsOfSteer)
            }
            Input::Submit(submit) if submit.options.command.is_some() && self.is_steering(submit) => {
                Some(Refusal::CommandOfSteer)
            }
            Input::Submit(submit) if submit.options.output_schema.is_some() && self.is_steering(submit) => {
                Some(Refusal::OptionOfSteer("output_schema"))
            }
            Input::Command(_) if self.status.0 == SessionState::Ended => Some(Refusal::Ended),
            Input::Command(it) if it.expected_turn.is_some() && it.expected_turn != current => {
                Some(Refusal::StaleTurn { current })
            }
            Input::Command(it) if it.when_busy == Some(WhenBusy::Reject) => {
                current.map(|turn_id| Refusal::Busy { turn_id })
            }
            Input::Submit(submit) if submit.options.system_prompt.is_some() && self.is_steering(submit) => {
                Some(Refusal::OptionOfSteer("system_prompt"))
            }
            Input::Submit(submit) if submit.when_busy == Some(WhenBusy::Reject) && current.is_some() => {
                current.map(|turn_id| Refusal::Busy { turn_id })
            }
            Input::Submit(submit) if current.is_none() => {
                let calls_made = self.calls_made + u64::from(self.helper.is_some());
                let limit = submit.options.budgets.and_then(|limits| limits.session_model_calls);
                let limit = limit.filter(|limit| calls_made >= *limit)?;
                let why = format!("the session's limit of {limit} model calls was reached");
                Some(Refusal::Budget(why))
            }
            Input::Answer(input) => {
                let answer = &input.answer;
                match self.requests.get(&answer.request_id) {
                    Some((_, _, false)) if !self.is_aborting() && answer.digest.is_some() => {
                        Some(Refusal::OtherRequest)
                    }
                    Some((.., false))
                        if !self.is_aborting() && answer.no_approver && answer.decision == Decision::Deny =>
                    {
                        let may_pause = self.setup.settings.unattended.on_timeout == OnTimeout::Pause;
                        may_pause.then_some(Refusal::Paused)
                    }
                    Some((.., false)) if !self.is_aborting() && self.outside.contains(&answer.request_id) => {
                        let is_lasting = answer.decision == Decision::Allow && answer.scope == Scope::Session;
                        let is_other = answer.grant.as_ref().is_some_and(|grant| grant != OUTSIDE);
                        let is_else = answer.scope == Scope::Project || input.edited.is_some();
                        (is_else || is_lasting && is_other).then_some(Refusal::RetryMustBeUnchanged)
                    }
                    Some((.., false))
                        if !self.is_aborting()
                            && self.plans.contains(&answer.request_id)
                            && answer.decision == Decision::Allow =>
                    {
                        (answer.scope != Scope::Once).then_some(Refusal::PlanNeedsOtherMode)
                    }
                    Some((_, suggests, false)) if !self.is_aborting() => {
                        let needs_grant = answer.decision == Decision::Allow && answer.scope != Scope::Once;
                        (needs_grant && answer.grant.is_none() && !suggests).then_some(Refusal::NoGrant)
                    }
                    _ => Some(Refusal::NotPending),
                }
            }
            Input::EditQueue { edit, .. } => {
                let missing = |id: &TurnId| !self.queue.contains(id);
                let (turn_id, before) = match edit {
                    QueueEdit::Clear => return None,
                    QueueEdit::Remove { turn_id } | QueueEdit::Update { turn_id, .. } => (turn_id, None),
                    QueueEdit::Move { turn_id, before } => (turn_id, before.as_ref()),
                };
                let lost = Some(turn_id).filter(|id| missing(id)).or(before.filter(|id| missing(id)));
                match (lost, edit) {
                    (Some(turn_id), _) => Some(Refusal::NotQueued { turn_id: *turn_id }),
                    (None, QueueEdit::Update { input, .. }) => {
                        input_line(input).trim().is_empty().then_some(Refusal::EmptyInput)
                    }
                    (None, _) => None,
                }
            }
            Input::Rewind(_) if self.status.0 == SessionState::Ended => Some(Refusal::Ended),
            Input::Rewind(_) if self.archived => Some(Refusal::Archived),
            Input::Rewind(_) => current.map(|turn_id| Refusal::Busy { turn_id }),
            Input::Archive { .. } if self.status.0 == SessionState::Ended => Some(Refusal::Ended),
            Input::Archive { archived, .. } if *archived == self.archived => None,
            Input::Archive { .. } => match current {
                Some(turn_id) => Some(Refusal::Busy { turn_id }),
                None => self.running_commands().next().map(|_| Refusal::CommandsRun),
            },
            Input::Compact { .. } if self.status.0 == SessionState::Ended => Some(Refusal::Ended),
            Input::Compact { .. } if self.archived => Some(Refusal::Archived),
            Input::Update(_) | Input::Rule { .. } if self.status.0 == SessionState::Ended => {
                Some(Refusal::Ended)
            }
            Input::Rule { add: false, kind, rule, .. } => {
                let has_rule = self.rules.contains(&(kind.name(), rule.clone()));
                (!has_rule).then_some(Refusal::NoSuchRule)
            }
            Input::ChooseAnswer { request_id, .. } => {
                let feedback_id = self.turn.as_ref().and_then(|turn| turn.feedback_id);
                (feedback_id != Some(*request_id) || self.is_aborting()).then_some(Refusal::NotPending)
            }
            Input::AnswerQuestion { request_id, .. } | Input::AnswerUser { request_id, .. }
                if self.is_aborting()
                    || self.questions.get(request_id).is_none_or(|(_, settled)| *settled) =>
            {
                Some(Refusal::NotPending)
            }
            Input::AnswerQuestion { request_id, .. } if self.user_questions.contains(request_id) => {
                let why = "this question takes answers, one for each of its questions".into();
                Some(Refusal::WrongAnswer(WrongAnswer { path: "choice".into(), why }))
            }
            Input::AnswerUser { answers, .. } if answers.is_empty() => {
                let why = "expected 1 answers, one for each question, got 0".into();
                Some(Refusal::WrongAnswer(WrongAnswer { path: "answers".into(), why }))
            }
            Input::AnswerUser { .. } => None,
            Input::AnswerQuestion { request_id, .. } => match self.questions.get(request_id) {
                Some((_, false)) if !self.is_aborting() => None,
                _ => Some(Refusal::NotPending),
            },
            Input::Abort { turn_id, call_id: Some(call_id), .. }
                if self.running_commands().any(|it| {
                    it.call_id == *call_id
                        && (turn_id.is_none() || *turn_id == current || *turn_id == it.turn_id)
                }) =>
            {
                None
            }
            Input::Abort { turn_id: Some(turn_id), call_id: None, .. } if self.queue.contains(turn_id) => {
                None
            }
            Input::Abort { turn_id: Some(turn_id), .. } if current.is_some_and(|id| id != *turn_id) => {
                Some(Refusal::StaleTurn { current })
            }
            Input::Abort { call_id: Some(call_id), turn_id, .. }
                if current.is_some()
                    && (turn_id.is_none() || *turn_id == current)
                    && !self.is_aborting()
                    && !self.message.iter().any(|call| call.call_id == *call_id) =>
            {
                Some(Refusal::NoSuchCall)
            }
            _ => None,
        }
    }

    /// Whether a submit would steer the running turn.
    fn is_steering(&self, submit: &SubmitRequest) -> bool {
        let (paused, has_unknown_outcome) = self.open_questions();
        let continues = (paused || has_unknown_outcome) && submit.options.command.is_none();
        let joins = submit.when_busy == Some(WhenBusy::Steer) || submit.when_busy.is_none() && continues;
        joins && self.turn.is_some() && !self.is_aborting()
    }
}
