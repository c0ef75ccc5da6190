//! The requests and questions that wait for the user.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use crate::answer::question::{GivenAnswers, is_typed};
use crate::ui::question_list::OptionCursor;
use crate::ui::render::asked_summary;
use crate::ui::request_list::RequestList;
use crate::ui::request_timing::{Phase, RequestTiming};
use crate::ui::summary::one_line;
use types::ids::{CallId, ItemId, PermissionId, QuestionId, RequestId, SessionId};
use types::question::Question;
use types::session::PermissionRequest;
use types::time::Timestamp;

#[derive(Default)]
pub(in crate::ui::attach) struct PendingRequests {
    pub(in crate::ui::attach) requests: RequestList,
    /// Open questions, for example about a call with an unknown outcome after a restart.
    pub(in crate::ui::attach) questions: VecDeque<Question>,
    pub(in crate::ui::attach) answers: GivenAnswers,
    /// The cursor in the options of the question, and the marked options.
    pub(in crate::ui::attach) options: OptionCursor,
    /// The open choice between two answers of the model.
    pub(in crate::ui::attach) feedback: Option<(QuestionId, Vec<ItemId>)>,
    /// When the open request or question was made.
    pub(in crate::ui::attach) since: Option<Timestamp>,
    pub(super) timing: RequestTiming,
    /// When the user opened the page with the rules for the folder.
    pub(super) page_opened: Option<Instant>,
    /// The request that this client answered with a lasting grant.
    pub(super) granted: Option<PermissionId>,
    /// Names of the agents that work as sub-agents, by session.
    pub(super) agents: HashMap<SessionId, String>,
    /// The text of a notification that was not shown yet.
    pub(super) alert: Option<String>,
}

impl PendingRequests {
    /// The question or request that keys answer. Questions come before permission requests. The list of requests
    /// counts as one request, whichever of them it shows.
    pub(super) fn front(&self) -> Option<RequestId> {
        let question = self.questions.front().map(|question| question.request_id);
        let feedback = self.feedback.as_ref().map(|(request_id, _)| *request_id);
        let question = question.or(feedback).map(RequestId::Question);
        question.or_else(|| self.requests.iter().next().map(|r| RequestId::Permission(r.request_id)))
    }

    /// Whether no question or permission request is open.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.questions.is_empty()
    }

    /// Whether the model asks and the question is shown, so that typed text is its answer.
    pub(super) fn has_open_question(&self) -> bool {
        let is_shown = !matches!(self.timing.phase(), None | Some(Phase::Hidden));
        is_shown && self.questions.front().is_some_and(is_typed)
    }

    /// Whether a request or a question is about this call.
    pub(super) fn has_call(&self, call_id: CallId) -> bool {
        self.requests.iter().any(|request| request.call_id == call_id)
            || self.questions.iter().any(|question| question.call_id == Some(call_id))
    }

    pub(super) fn add_request(&mut self, request: &PermissionRequest, made_at: Timestamp) {
        let mut request = request.clone();
        if let Some(agent) = request.child_session_id.map(|id| self.agent_of(id)) {
            request.reason = format!("sub-agent {agent}: {}", request.reason);
        }
        self.alert = Some(one_line(&format!("{}?", asked_summary(&request)), 100));
        self.requests.push(request);
        self.since.get_or_insert(made_at);
    }

    pub(super) fn remove_request(&mut self, id: PermissionId) {
        self.requests.remove(id);
        self.update_since();
    }

    pub(super) fn add_question(&mut self, question: &Question, made_at: Timestamp) {
        self.questions.push_back(question.clone());
        self.since = Some(made_at);
        self.alert = Some(one_line(&question.text, 100));
    }

    pub(super) fn remove_question(&mut self, id: QuestionId) -> Option<Question> {
        let index = self.questions.iter().position(|question| question.request_id == id)?;
        if index == 0 {
            self.answers.clear();
            self.options = OptionCursor::default();
        }
        let question = self.questions.remove(index);
        self.update_since();
        question
    }

    fn update_since(&mut self) {
        if self.is_empty() {
            self.since = None;
        }
    }

    /// The agent of a sub-agent. Returns its id if another sub-agent started it, because then its agent is
    /// unknown.
    fn agent_of(&self, id: SessionId) -> String {
        self.agents.get(&id).cloned().unwrap_or_else(|| id.to_string())
    }
}
