//! What a server asks for while a call runs: questions to the user and model calls. The call's owner answers.

#![expect(deprecated, reason = "servers of the revisions until 2026-07-28 use sampling")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequests, InputResponses,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::form::{Form, FormAnswer};
use crate::sampling::{SamplingAnswer, SamplingRequest, ServerModelCall};
use crate::server_log::ServerLog;

/// Maximum number of requests of one call, so that users are not asked without end.
const MAX_REQUESTS: u32 = 16;

/// A request of a server.
pub enum ServerRequest {
    /// A question to the user (elicitation).
    Question(ServerQuestion),
    /// A model call (sampling).
    ModelCall(ServerModelCall),
}

/// What the configuration lets a server ask for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AllowedRequests {
    pub elicitation: bool,
    pub sampling: bool,
}

/// A server's question and the place for its answer. Without an answer it counts as cancelled.
pub struct ServerQuestion {
    pub form: Form,
    reply: oneshot::Sender<FormAnswer>,
}

impl ServerQuestion {
    /// Gives the answer to the server.
    pub fn answer(self, answer: FormAnswer) {
        // Fails if the server has withdrawn the question.
        let _ = self.reply.send(answer);
    }

    /// Resolves when the server no longer waits for an answer.
    pub async fn wait_withdrawn(&mut self) {
        self.reply.closed().await;
    }
}

/// Receives the requests of one call.
#[derive(Clone)]
pub(super) struct RequestSink {
    requests: mpsc::Sender<ServerRequest>,
    allowed: AllowedRequests,
    /// Number of open requests: the time limit of the call does not run meanwhile.
    open: Arc<watch::Sender<u32>>,
    /// Number of requests so far.
    request_count: Arc<AtomicU32>,
    log: Arc<ServerLog>,
}

/// Counts an open request.
struct OpenRequest(Arc<watch::Sender<u32>>);

impl OpenRequest {
    fn new(open: &Arc<watch::Sender<u32>>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(Arc::clone(open))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl RequestSink {
    pub fn new(requests: mpsc::Sender<ServerRequest>, allowed: AllowedRequests, log: Arc<ServerLog>) -> Self {
        Self { requests, allowed, open: Arc::new(watch::Sender::new(0)), request_count: Arc::default(), log }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The call has made too many.
    fn count(&self) -> Result<OpenRequest, String> {
        match self.request_count.fetch_add(1, Ordering::Relaxed) {
            count if count < MAX_REQUESTS => Ok(OpenRequest::new(&self.open)),
            _ => Err(format!("the call has made {MAX_REQUESTS} requests already")),
        }
    }

    /// Asks the user whether to call a model, and the caller to do so. Dropping the future withdraws the request.
    ///
    /// # Errors
    /// There is no answer; the text for the server says why.
    pub async fn sample(&self, params: CreateMessageRequestParams) -> Result<CreateMessageResult, String> {
        let answer = self.call_model(params).await;
        if let Err(why) = &answer {
            self.log.note(&format!("a model call for the server was refused: {why}"));
        }
        answer.map(CreateMessageResult::from)
    }

    async fn call_model(&self, params: CreateMessageRequestParams) -> Result<SamplingAnswer, String> {
        if !self.allowed.sampling {
            return Err(
                "agentd makes model calls for this server (sampling) only with `sampling = true`".into()
            );
        }
        let request = SamplingRequest::parse(params)?;
        let _open = self.count()?;
        let (reply, answer) = oneshot::channel();
        let call = ServerRequest::ModelCall(ServerModelCall { request, reply });
        self.requests.send(call).await.map_err(|_| "the call has ended".to_owned())?;
        answer.await.unwrap_or_else(|_| Err("the call has ended".into()))
    }

    /// Asks the user. Dropping the future withdraws the question.
    pub async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        let declined = |why: &str| {
            self.log.note(&format!("a question to the user was declined: {why}"));
            ElicitResult::new(ElicitationAction::Decline)
        };
        if !self.allowed.elicitation {
            return declined("`elicitation = true` lets this server ask");
        }
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return declined("only questions with a form are supported");
        };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
        let order = requested_schema.property_order.unwrap_or_default();
        let form = match Form::parse(&message, schema, &order) {
            Ok(form) => form,
            Err(why) => return declined(&why),
        };
        let _open = match self.count() {
            Ok(open) => open,
            Err(why) => return declined(&why),
        };
        let (reply, answer) = oneshot::channel();
        let question = ServerRequest::Question(ServerQuestion { form, reply });
        if self.requests.send(question).await.is_err() {
            return ElicitResult::new(ElicitationAction::Cancel);
        }
        match answer.await {
            Ok(FormAnswer::Accepted(values)) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            Ok(FormAnswer::Declined) => ElicitResult::new(ElicitationAction::Decline),
            Err(_) => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Answers the requests of a result that needs input. `roots`: the answer to `roots/list`.
    ///
    /// # Errors
    /// A request cannot be answered; the text says why.
    pub async fn fulfil(&self, requests: InputRequests, roots: &Value) -> Result<InputResponses, String> {
        let respond = |(key, request): (String, InputRequest)| async move {
            let response = match request {
                InputRequest::Elicitation(request) => serde_json::to_value(self.ask(request.params).await),
                InputRequest::ListRoots(_) => Ok(roots.clone()),
                InputRequest::CreateMessage(request) => {
                    let answer = self.sample(request.params).await;
                    serde_json::to_value(
                        answer.map_err(|why| format!("the server asked for a model call: {why}"))?,
                    )
                }
                _ => return Err("the server asked for something that agentd does not know".to_owned()),
            };
            Ok((key, response.map_err(|error| error.to_string())?))
        };
        join_all(requests.into_iter().map(respond)).await.into_iter().collect()
    }

    /// Resolves after this time. The time of open requests does not count.
    pub async fn time_limit(&self, limit: Duration) {
        let mut open = self.open.subscribe();
        let mut left = limit;
        loop {
            if open.wait_for(|count| *count == 0).await.is_err() {
                return;
            }
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = open.wait_for(|count| *count > 0) => left = left.saturating_sub(began.elapsed()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: AllowedRequests = AllowedRequests { elicitation: true, sampling: true };

    fn sink(allowed: AllowedRequests) -> (RequestSink, mpsc::Receiver<ServerRequest>) {
        let (requests, received) = mpsc::channel(1);
        (RequestSink::new(requests, allowed, Arc::default()), received)
    }

    async fn next_question(requests: &mut mpsc::Receiver<ServerRequest>) -> Option<ServerQuestion> {
        match requests.recv().await? {
            ServerRequest::Question(question) => Some(question),
            ServerRequest::ModelCall(_) => None,
        }
    }

    fn request(schema: Value) -> ElicitRequestParams {
        let value = serde_json::json!({"mode": "form", "message": "Which?", "requestedSchema": schema});
        serde_json::from_value(value).expect("a request")
    }

    #[tokio::test]
    async fn time_of_open_question_does_not_count() {
        let (asker, _requests) = sink(ALL);
        let open = OpenRequest::new(&asker.open);
        let limit = asker.time_limit(Duration::from_millis(20));
        tokio::pin!(limit);
        assert!(tokio::time::timeout(Duration::from_millis(200), limit.as_mut()).await.is_err());
        drop(open);
        assert!(tokio::time::timeout(Duration::from_secs(10), limit).await.is_ok());
    }

    #[tokio::test]
    async fn answer_of_caller_reaches_server() {
        let (asker, mut requests) = sink(ALL);
        let schema = serde_json::json!({"type": "object", "properties": {}});
        let question = asker.ask(request(schema));
        let answer = async {
            next_question(&mut requests)
                .await
                .expect("a question")
                .answer(FormAnswer::Accepted(Default::default()));
        };
        let (reply, ()) = tokio::join!(question, answer);
        assert_eq!(reply.action, ElicitationAction::Accept);
    }

    #[tokio::test]
    async fn questions_without_end_are_declined() {
        let (asker, mut requests) = sink(ALL);
        let log = Arc::clone(&asker.log);
        let answers = tokio::spawn(async move {
            let mut count = 0;
            while let Some(question) = next_question(&mut requests).await {
                question.answer(FormAnswer::Accepted(Default::default()));
                count += 1;
            }
            count
        });
        let schema = serde_json::json!({"type": "object", "properties": {}});
        for _ in 0..MAX_REQUESTS {
            assert_eq!(asker.ask(request(schema.clone())).await.action, ElicitationAction::Accept);
        }
        assert_eq!(asker.ask(request(schema)).await.action, ElicitationAction::Decline);
        drop(asker);
        assert_eq!(answers.await.expect("the answers"), MAX_REQUESTS);
        assert!(log.lines()[0].contains("16 requests already"));
    }

    #[tokio::test]
    async fn question_is_declined_where_configuration_does_not_allow_it() {
        let (asker, _requests) = sink(AllowedRequests::default());
        let schema = serde_json::json!({"type": "object", "properties": {}});
        assert_eq!(asker.ask(request(schema)).await.action, ElicitationAction::Decline);
        assert!(asker.log.lines()[0].contains("elicitation = true"));
        let params = serde_json::json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5});
        let refused = asker.sample(serde_json::from_value(params).expect("params")).await;
        assert!(refused.is_err_and(|why| why.contains("sampling = true")));
    }
}
