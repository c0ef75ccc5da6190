//! Decisions of the user: permission requests and questions. A decision that was made elsewhere is withdrawn.

use std::sync::Arc;

use super::{Conversation, log};
use crate::acp::permission::{permission_answer, permission_params};
use crate::acp::question;
use crate::acp::wire::{OpenRequest, Output};
use crate::answer::permission::denial;
use crate::connection::session_calls::idempotency_key;
use api::params::{AnswerParams, ApproveParams};
use api::{Code, methods};
use types::event::{Envelope, Event};
use types::ids::RequestId;
use types::permission::Decision;
use types::permission_request::PermissionRequest;
use types::question::Question;

/// A pending decision.
pub(super) struct UserRequest {
    subject: RequestSubject,
    open: OpenRequest,
    is_sent: bool,
}

#[derive(Clone)]
enum RequestSubject {
    Permission(Box<PermissionRequest>),
    Question(Box<Question>),
}

impl UserRequest {
    fn new(subject: RequestSubject) -> Self {
        Self { subject, open: OpenRequest::default(), is_sent: false }
    }

    pub(super) async fn withdraw(&self, output: &Output) {
        self.open.withdraw(output).await;
    }
}

impl Conversation {
    /// Keeps the pending decisions up to date. During a replay nothing is sent.
    pub(super) async fn on_request_event(&mut self, envelope: &Envelope) {
        match &envelope.event {
            Event::PermissionRequested { request, .. } => {
                let subject = RequestSubject::Permission(Box::new(request.clone()));
                self.requests.insert(RequestId::Permission(request.request_id), UserRequest::new(subject));
            }
            Event::QuestionRequested { question } => {
                let subject = RequestSubject::Question(Box::new(question.clone()));
                self.requests.insert(RequestId::Question(question.request_id), UserRequest::new(subject));
            }
            Event::PermissionResolved { request_id, .. } => {
                self.withdraw_request(RequestId::Permission(*request_id)).await;
            }
            Event::QuestionResolved { request_id, .. } => {
                self.withdraw_request(RequestId::Question(*request_id)).await;
            }
            _ => return,
        }
        if self.replay.is_none() {
            self.send_pending_requests();
        }
    }

    async fn withdraw_request(&mut self, id: RequestId) {
        if let Some(request) = self.requests.remove(&id) {
            request.withdraw(&self.shared.output).await;
        }
    }

    pub(super) fn send_pending_requests(&mut self) {
        let mut ids: Vec<RequestId> =
            self.requests.iter().filter(|(_, request)| !request.is_sent).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        for id in ids {
            let Some(request) = self.requests.get_mut(&id) else { continue };
            request.is_sent = true;
            let (subject, open) = (request.subject.clone(), request.open.clone());
            let (shared, session_id) = (Arc::clone(&self.shared), self.session_id);
            self.work.push(Box::pin(async move {
                match subject {
                    RequestSubject::Permission(request) => {
                        let params = permission_params(session_id, &request).written(shared.features.version);
                        let asked = open.ask(&shared.output, "session/request_permission", &params).await;
                        let Some(reply) = asked else { return };
                        let answer = permission_answer(&request, reply.as_ref());
                        send_answer(&shared, &request, answer).await;
                    }
                    RequestSubject::Question(question) => {
                        let features = shared.features;
                        let asked =
                            question::ask(&shared.output, session_id, &question, features, &open).await;
                        let Some(answer) = asked else { return };
                        let params = AnswerParams { idempotency_key: Some(idempotency_key()), ..answer };
                        log(shared.daemon.call::<methods::session::Answer>(&params).await.err());
                    }
                }
            }));
        }
    }
}

/// Sends an answer. If the daemon cannot accept an answer that allows, the call is denied, because a request that the
/// editor no longer shows must not stay pending.
async fn send_answer(shared: &super::Shared, request: &PermissionRequest, answer: ApproveParams) {
    let params = ApproveParams { idempotency_key: Some(idempotency_key()), ..answer };
    let Err(error) = shared.daemon.call::<methods::session::Approve>(&params).await else { return };
    if error.code == Code::NotPending.number() {
        return;
    }
    if params.decision == Some(Decision::Allow) {
        let words = format!("The answer of the user could not be accepted: {}", error.message);
        let denial = ApproveParams {
            idempotency_key: Some(idempotency_key()),
            digest: None,
            ..denial(request, &words)
        };
        log(shared.daemon.call::<methods::session::Approve>(&denial).await.err());
    }
    log(Some(error));
}
