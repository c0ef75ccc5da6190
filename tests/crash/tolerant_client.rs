//! A client that expects the daemon to die. Every request may end without a reply, and every received
//! message goes into the [`ClientLog`].

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::client_log::{ClientLog, StreamCursor};
use crate::support::client::{Client, Refusal};
use crate::support::log::Log;

/// A client of one session.
#[derive(Clone)]
pub struct CrashTolerantClient {
    pub client: Client,
    pub session: String,
    pub client_log: Arc<ClientLog>,
}

/// The result of a request: `None` if the daemon died before it replied.
pub type Outcome = Option<Result<Value, Refusal>>;

impl CrashTolerantClient {
    async fn ask(&self, method: &str, mut params: Value) -> Outcome {
        params["session_id"] = json!(self.session);
        self.client.call_or_none(method, params).await
    }

    /// Submits with an idempotency key, so that the client can repeat the request.
    pub async fn submit(&self, input: &str, key: &str) -> Outcome {
        self.submit_with(json!({"input": input, "idempotency_key": key})).await
    }

    /// Submits with these parameters.
    pub async fn submit_with(&self, params: Value) -> Outcome {
        let reply = self.ask("session.submit", params).await?;
        if let Ok(reply) = &reply {
            self.client_log.record_submit(&self.session, reply);
        }
        Some(reply)
    }

    /// Answers a permission request.
    pub async fn approve(&self, asked: &Value, mut answer: Value) -> Outcome {
        answer["request_id"] = asked["request_id"].clone();
        let reply = self.client.call_or_none("session.approve", answer).await?;
        if let Ok(reply) = &reply {
            self.client_log.record_answer(&self.session, &asked["request_id"], reply);
        }
        Some(reply)
    }

    /// Answers a question that is not a permission request.
    pub async fn decide(&self, question: &Value, choice: &str) -> Outcome {
        let answer = json!({"request_id": question["request_id"], "choice": choice});
        let reply = self.client.call_or_none("session.answer", answer).await?;
        if let Ok(reply) = &reply {
            self.client_log.record_answer(&self.session, &question["request_id"], reply);
        }
        Some(reply)
    }

    /// Aborts the running turn.
    pub async fn abort(&self) -> Outcome {
        let reply = self.ask("session.abort", json!({})).await?;
        let stopped = reply.as_ref().ok().and_then(|reply| reply["stopped"].as_array());
        for id in stopped.into_iter().flatten().filter_map(Value::as_str) {
            if id.starts_with("turn_") {
                self.client_log.record_abort(&self.session, id);
            }
        }
        Some(reply)
    }

    /// The journal after a cursor. `None` if the daemon is dead.
    pub async fn log(&self, after_seq: u64) -> Option<Log> {
        let subscription = self.ask("session.subscribe", json!({"after_seq": after_seq})).await?;
        let subscription = match subscription {
            Err(refusal) if refusal.kind == "shutting_down" => return None,
            subscription => subscription.expect("a received seq is a valid cursor"),
        };
        Some(Log::new(self.client.clone(), subscription.as_str().expect("a text").to_owned()))
    }

    /// Reads on from `reading` and answers permission requests. Ends when the daemon dies, or when the
    /// session is idle if `until_rest` is set. Returns the new cursor.
    pub fn run(&self, reading: StreamCursor, manner: AnswerPolicy) -> JoinHandle<StreamCursor> {
        self.run_with(reading, manner, |_| {})
    }

    /// Same as `run`, and calls the callback for every event.
    pub fn run_with(
        &self,
        mut reading: StreamCursor,
        manner: AnswerPolicy,
        tell: impl Fn(&Value) + Send + 'static,
    ) -> JoinHandle<StreamCursor> {
        let tolerant = self.clone();
        tokio::spawn(async move {
            reading.start_connection();
            let Some(mut log) = tolerant.log(reading.cursor).await else { return reading };
            while let Some(event) = log.next_or_end().await {
                tolerant.client_log.record_event(&tolerant.session, &event);
                reading.record_event(&event);
                tell(&event);
                if !tolerant.react(&event, manner).await {
                    break;
                }
            }
            reading
        })
    }

    /// Handles one event. Returns whether the client continues.
    async fn react(&self, event: &Value, manner: AnswerPolicy) -> bool {
        match event["type"].as_str() {
            Some("permission.requested") if manner != AnswerPolicy::Watches => {
                // Another client or an abort may have answered first; then the daemon rejects this
                // answer, which is correct.
                self.approve(event, json!({"decision": "allow"})).await;
                true
            }
            Some("question.requested") if manner != AnswerPolicy::Watches => {
                self.decide(event, "continue").await;
                true
            }
            Some("turn.completed") => manner != AnswerPolicy::AnswersOneTurn,
            _ => true,
        }
    }
}

/// How the client answers permission requests while it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPolicy {
    /// Answers nothing.
    Watches,
    /// Allows every request.
    Answers,
    /// Allows every request and stops when one turn has ended.
    AnswersOneTurn,
}
