//! Questions of a server to the user while a call runs. The call's owner answers them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputResponses,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::form::{Form, FormAnswer};
use crate::server_log::ServerLog;

/// Maximum number of questions of one call, so that users are not asked without end.
const MAX_QUESTIONS: u32 = 16;

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

/// Receives the questions of one call.
#[derive(Clone)]
pub(super) struct QuestionSink {
    /// Absent if the configuration does not let the server ask.
    questions: Option<mpsc::Sender<ServerQuestion>>,
    /// Number of open questions: the time limit of the call does not run meanwhile.
    open: Arc<watch::Sender<u32>>,
    /// Number of questions so far.
    question_count: Arc<AtomicU32>,
    log: Arc<ServerLog>,
}

/// Counts an open question.
struct OpenQuestion(Arc<watch::Sender<u32>>);

impl OpenQuestion {
    fn new(open: &Arc<watch::Sender<u32>>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(Arc::clone(open))
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl QuestionSink {
    pub fn new(questions: Option<mpsc::Sender<ServerQuestion>>, log: Arc<ServerLog>) -> Self {
        Self { questions, open: Arc::new(watch::Sender::new(0)), question_count: Arc::default(), log }
    }

    /// Asks the user. Dropping the future withdraws the question.
    pub async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        let declined = |why: &str| {
            self.log.note(&format!("a question to the user was declined: {why}"));
            ElicitResult::new(ElicitationAction::Decline)
        };
        let Some(questions) = &self.questions else {
            return declined("`elicitation = true` lets this server ask");
        };
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return declined("only questions with a form are supported");
        };
        let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
        let order = requested_schema.property_order.unwrap_or_default();
        let form = match Form::parse(&message, schema, &order) {
            Ok(form) => form,
            Err(why) => return declined(&why),
        };
        if self.question_count.fetch_add(1, Ordering::Relaxed) >= MAX_QUESTIONS {
            return declined(&format!("the call has asked {MAX_QUESTIONS} questions already"));
        }
        let _open = OpenQuestion::new(&self.open);
        let (reply, answer) = oneshot::channel();
        if questions.send(ServerQuestion { form, reply }).await.is_err() {
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
                _ => {
                    return Err(
                        "the server asked for a model call, and agentd makes none for servers".to_owned()
                    );
                }
            };
            Ok((key, response.map_err(|error| error.to_string())?))
        };
        join_all(requests.into_iter().map(respond)).await.into_iter().collect()
    }

    /// Resolves after this time. The time of open questions does not count.
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

    fn request(schema: Value) -> ElicitRequestParams {
        let value = serde_json::json!({"mode": "form", "message": "Which?", "requestedSchema": schema});
        serde_json::from_value(value).expect("a request")
    }

    #[tokio::test]
    async fn time_of_open_question_does_not_count() {
        let asker = QuestionSink::new(None, Arc::default());
        let open = OpenQuestion::new(&asker.open);
        let limit = asker.time_limit(Duration::from_millis(20));
        tokio::pin!(limit);
        assert!(tokio::time::timeout(Duration::from_millis(200), limit.as_mut()).await.is_err());
        drop(open);
        assert!(tokio::time::timeout(Duration::from_secs(10), limit).await.is_ok());
    }

    #[tokio::test]
    async fn answer_of_caller_reaches_server() {
        let (send, mut questions) = mpsc::channel(1);
        let asker = QuestionSink::new(Some(send), Arc::default());
        let schema = serde_json::json!({"type": "object", "properties": {}});
        let question = asker.ask(request(schema));
        let answer = async {
            questions.recv().await.expect("a question").answer(FormAnswer::Accepted(Default::default()));
        };
        let (reply, ()) = tokio::join!(question, answer);
        assert_eq!(reply.action, ElicitationAction::Accept);
    }

    #[tokio::test]
    async fn questions_without_end_are_declined() {
        let (send, mut questions) = mpsc::channel(1);
        let log: Arc<ServerLog> = Arc::default();
        let asker = QuestionSink::new(Some(send), Arc::clone(&log));
        let answers = tokio::spawn(async move {
            let mut count = 0;
            while let Some(question) = questions.recv().await {
                question.answer(FormAnswer::Accepted(Default::default()));
                count += 1;
            }
            count
        });
        let schema = serde_json::json!({"type": "object", "properties": {}});
        for _ in 0..MAX_QUESTIONS {
            assert_eq!(asker.ask(request(schema.clone())).await.action, ElicitationAction::Accept);
        }
        assert_eq!(asker.ask(request(schema)).await.action, ElicitationAction::Decline);
        drop(asker);
        assert_eq!(answers.await.expect("the answers"), MAX_QUESTIONS);
        assert!(log.lines()[0].contains("16 questions already"));
    }

    #[tokio::test]
    async fn question_is_declined_where_configuration_does_not_allow_it() {
        let log: Arc<ServerLog> = Arc::default();
        let asker = QuestionSink::new(None, Arc::clone(&log));
        let schema = serde_json::json!({"type": "object", "properties": {}});
        assert_eq!(asker.ask(request(schema)).await.action, ElicitationAction::Decline);
        assert!(log.lines()[0].contains("elicitation = true"));
    }
}
