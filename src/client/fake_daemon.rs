//! A scripted daemon for tests. It uses real sockets and lines, and a closure gives its replies.
//! Subscriptions replay one journal and follow it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::connection::connector::Connector;
use crate::connection::paths::ClientPaths;

pub(super) const SESSION: &str = "ses_0190f2a4-0000-7000-8000-000000000001";
pub(super) const TURN: &str = "turn_0190f2a4-0000-7000-8000-000000000002";
pub(super) const ITEM: &str = "item_0190f2a4-0000-7000-8000-000000000003";
pub(super) const CALL: &str = "call_0190f2a4-0000-7000-8000-000000000004";
pub(super) const ASK: &str = "perm_0190f2a4-0000-7000-8000-000000000005";

type AnswerFn = dyn Fn(&Journal, &str, &Value) -> Result<Value, Value> + Send + Sync;

/// The events of the only session; grows while subscriptions follow it.
#[derive(Clone)]
pub(super) struct Journal(Arc<watch::Sender<Vec<Value>>>);

impl Journal {
    /// Appends events given by their own fields; the envelope is filled in.
    pub(super) fn push(&self, events: impl IntoIterator<Item = Value>) {
        self.0.send_modify(|rows| {
            for event in events {
                let mut row = json!({"seq": rows.len() + 1, "session_id": SESSION, "turn_id": TURN,
                                     "item_id": ITEM, "at_ms": 1_700_000_000_000_i64});
                row.as_object_mut().expect("an object").extend(event.as_object().expect("an object").clone());
                rows.push(row);
            }
        });
    }

    pub(super) fn rows(&self) -> Vec<Value> {
        self.0.borrow().clone()
    }
}

/// The daemon. Dropping it closes every connection. Its journal may be passed to the next daemon.
pub(super) struct FakeDaemon {
    pub(super) socket: PathBuf,
    pub(super) journal: Journal,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    /// The announced reason of a planned stop.
    stop: watch::Sender<Option<&'static str>>,
    _dir: Arc<TempDir>,
    serving: JoinSet<()>,
}

impl FakeDaemon {
    /// Serves with `answers` for every method except hello and subscriptions.
    pub(super) fn start(
        answers: impl Fn(&Journal, &str, &Value) -> Result<Value, Value> + Send + Sync + 'static,
    ) -> Self {
        let dir = Arc::new(tempfile::tempdir().expect("a folder"));
        let journal = Journal(Arc::new(watch::Sender::new(Vec::new())));
        let socket = dir.path().join("fake.sock");
        let calls = Arc::default();
        let stop = watch::Sender::new(None);
        let mut fake = Self { socket, journal, calls, stop, _dir: dir, serving: JoinSet::new() };
        fake.serve(Arc::new(answers));
        fake
    }

    /// Simulates a restart: drops every connection and serves again on the same socket.
    pub(super) async fn restart(
        &mut self,
        answers: impl Fn(&Journal, &str, &Value) -> Result<Value, Value> + Send + Sync + 'static,
    ) {
        self.serving.shutdown().await;
        let _ = std::fs::remove_file(&self.socket);
        self.serve(Arc::new(answers));
    }

    /// Announces a planned stop to every subscription.
    pub(super) fn announce_stop(&self, reason: &'static str) {
        self.stop.send_replace(Some(reason));
    }

    fn serve(&mut self, answers: Arc<AnswerFn>) {
        let listener = UnixListener::bind(&self.socket).expect("bound");
        let (journal, calls, stop) = (self.journal.clone(), self.calls.clone(), self.stop.subscribe());
        self.serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve_connection(
                    stream,
                    journal.clone(),
                    calls.clone(),
                    answers.clone(),
                    stop.clone(),
                ));
            }
        });
    }

    /// The calls so far, by method, without hello and subscriptions.
    pub(super) fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().expect("sound").clone()
    }

    pub(super) fn connector(&self) -> Connector {
        let env = |_: &str| Some("/nonexistent".to_string());
        let places = ClientPaths::find(&env, Some(self.socket.clone()), None).expect("places");
        Connector {
            places,
            host: None,
            may_start: false,
            role: api::params::ClientRole::Controller,
            name: "agentctl".into(),
        }
    }
}

async fn serve_connection(
    stream: UnixStream,
    journal: Journal,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    answers: Arc<AnswerFn>,
    stop: watch::Receiver<Option<&'static str>>,
) {
    let (read, write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut write = Some(write);
    let mut feeds = JoinSet::new();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).expect("a request");
        let method = request["method"].as_str().expect("a method");
        let params = &request["params"];
        let outcome = match method {
            "daemon.hello" => Ok(json!({"protocol_version": 1, "version": "9.9.9",
                                        "name": params["name"], "role": "controller"})),
            "session.subscribe" => Ok(json!("sub_1")),
            // Its reply is lost like those of an older daemon; the announcement comes nevertheless.
            "daemon.subscribe" if write.is_none() => continue,
            _ => {
                calls.lock().expect("sound").push((method.into(), params.clone()));
                answers(&journal, method, params)
            }
        };
        let reply = match outcome {
            Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": request["id"], "error": error}),
        };
        let Some(socket) = &mut write else { continue };
        if socket.write_all(format!("{reply}\n").as_bytes()).await.is_err() {
            return;
        }
        if method == "session.subscribe" {
            let after = params["after_seq"].as_u64().unwrap_or(0);
            let socket = write.take().expect("one subscription");
            feeds.spawn(send_events(socket, journal.clone(), after, stop.clone()));
        }
    }
}

async fn send_events(
    mut write: OwnedWriteHalf,
    journal: Journal,
    after: u64,
    mut stop: watch::Receiver<Option<&'static str>>,
) {
    let mut news = journal.0.subscribe();
    let mut sent = usize::try_from(after).expect("small");
    loop {
        let rows = news.borrow_and_update().clone();
        for row in rows.iter().skip(sent) {
            let note = json!({"jsonrpc": "2.0", "method": "session.event",
                              "params": {"subscription": "sub_1", "result": row}});
            if write.write_all(format!("{note}\n").as_bytes()).await.is_err() {
                return;
            }
        }
        sent = rows.len();
        tokio::select! {
            changed = news.changed() => if changed.is_err() {
                return;
            },
            Ok(()) = stop.changed() => {
                let reason = *stop.borrow_and_update();
                let note = json!({"jsonrpc": "2.0", "method": "daemon.event", "params": {"subscription": "sub_2",
                                  "result": {"kind": "daemon.restarting", "reason": reason}}});
                if write.write_all(format!("{note}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Creates `turn.completed` with the given subtype.
pub(super) fn turn_completed(subtype: &str) -> Value {
    json!({"type": "turn.completed", "result": {
        "subtype": subtype, "text": "the answer", "stop_reason": "end_turn", "usage": {}, "usage_by_model": {},
        "cost_usd_micros": 0, "duration_ms": 5, "model_ms": 1, "tools_ms": 1, "permission_ms": 1,
        "model_calls": 1, "permission_denials": [], "errors": []}})
}

/// A permission request for `make`.
pub(super) fn permission_requested() -> Value {
    json!({"type": "permission.requested", "request_id": ASK, "call_id": CALL, "tool": "Bash",
        "input": {"command": "make"}, "summary": "make", "subject": {"kind": "bash", "command": "make"},
        "reason": "no rule allows it", "suggestions": ["Bash(make)"], "read_only": false})
}

/// The answer to the request of [`permission_requested`].
pub(super) fn permission_resolved(decision: &str) -> Value {
    json!({"type": "permission.resolved", "request_id": ASK, "call_id": CALL, "decision": decision,
        "scope": "once", "by": "answer", "origin": {"client": "other", "uid": 0}})
}

/// A delta with more text.
pub(super) fn text_delta(text: &str) -> Value {
    json!({"type": "message.text_delta", "index": 0, "text": text})
}
