//! The tests' own client: newline-delimited JSON over the socket, without code of the product. It
//! checks every event that any scenario receives against the properties in [`StreamProperties`].
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::log::Log;
use super::properties::StreamProperties;
use super::wait::with_deadline;

/// An error object as received.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub code: i64,
    pub kind: String,
    pub message: String,
    pub data: Value,
}

impl Refusal {
    pub fn from_error(error: &Value) -> Self {
        let refusal = Self {
            code: error["code"].as_i64().unwrap_or_default(),
            kind: error["data"]["kind"].as_str().unwrap_or_default().into(),
            message: error["message"].as_str().unwrap_or_default().into(),
            data: error["data"].clone(),
        };
        assert!(!refusal.kind.is_empty() && !refusal.message.is_empty(), "an error without text: {error}");
        assert!(refusal.data["retryable"].is_boolean(), "an error without data.retryable: {error}");
        refusal
    }
}

/// Messages received so far.
#[derive(Default)]
pub(super) struct Inbox {
    replies: HashMap<u64, Value>,
    pub(super) events: HashMap<String, Vec<Value>>,
    properties: HashMap<String, StreamProperties>,
    /// The first violation of a property.
    pub(super) breach: Option<String>,
    pub(super) is_closed: bool,
}

pub(super) struct Wire {
    pub(super) inbox: Mutex<Inbox>,
    pub(super) news: watch::Sender<u64>,
    pub(super) daemon_log: PathBuf,
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    next_id: AtomicU64,
}

/// A connection. Clones share it; it closes when the last clone is dropped.
#[derive(Clone)]
pub struct Client {
    pub(super) wire: Arc<Wire>,
    _reader: Arc<Reader>,
}

struct Reader {
    task: JoinHandle<()>,
    wire: Arc<Wire>,
}

impl Drop for Reader {
    /// A violation that arrived after the last wait must also fail the test.
    fn drop(&mut self) {
        self.task.abort();
        if !std::thread::panicking()
            && let Ok(inbox) = self.wire.inbox.lock()
            && let Some(breach) = &inbox.breach
        {
            panic!("an event violates a property: {breach}");
        }
    }
}

impl Client {
    pub(super) fn from_stream(stream: UnixStream, daemon_log: PathBuf) -> Self {
        let (reader, writer) = stream.into_split();
        let wire = Arc::new(Wire {
            inbox: Mutex::default(),
            news: watch::Sender::new(0),
            daemon_log,
            writer: tokio::sync::Mutex::new(writer),
            next_id: AtomicU64::new(1),
        });
        let task = tokio::spawn(read(reader, Arc::clone(&wire)));
        Self { _reader: Arc::new(Reader { task, wire: Arc::clone(&wire) }), wire }
    }

    /// Sends a request and returns its id, without waiting for the reply.
    pub async fn send(&self, method: &str, params: Value) -> u64 {
        let id = self.wire.next_id.fetch_add(1, Ordering::Relaxed);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.wire.writer.lock().await.write_all(format!("{line}\n").as_bytes()).await.expect("connected");
        id
    }

    /// The reply to a request that was sent.
    pub async fn reply(&self, id: u64) -> Result<Value, Refusal> {
        let what = format!("the reply to call {id}");
        let look = |inbox: &mut Inbox| {
            assert!(!inbox.is_closed || inbox.replies.contains_key(&id), "the daemon hung up");
            inbox.replies.remove(&id)
        };
        let reply = self.wire.wait(&what, look).await;
        match reply.get("error") {
            Some(error) => Err(Refusal::from_error(error)),
            None => Ok(reply["result"].clone()),
        }
    }

    /// Calls a daemon that may die meanwhile. Returns `None` if it closed the connection instead of
    /// replying.
    pub async fn call_or_none(&self, method: &str, params: Value) -> Option<Result<Value, Refusal>> {
        let id = self.wire.next_id.fetch_add(1, Ordering::Relaxed);
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        // Writing to a dead daemon fails; a daemon that dies later closes the connection.
        self.wire.writer.lock().await.write_all(format!("{line}\n").as_bytes()).await.ok()?;
        let look = |inbox: &mut Inbox| match inbox.replies.remove(&id) {
            None if inbox.is_closed => Some(None),
            reply => reply.map(Some),
        };
        let reply = self.wire.wait(&format!("the reply to {method}, or a crash"), look).await?;
        Some(match reply.get("error") {
            Some(error) => Err(Refusal::from_error(error)),
            None => Ok(reply["result"].clone()),
        })
    }

    pub async fn try_call(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        let id = self.send(method, params).await;
        self.reply(id).await
    }

    /// Calls a method and expects success.
    pub async fn call(&self, method: &str, params: Value) -> Value {
        match self.try_call(method, params.clone()).await {
            Ok(result) => result,
            Err(refusal) => panic!("{method} {params} was refused: {refusal:?}\n{}", self.wire.tail()),
        }
    }

    /// Calls a method and expects an error.
    pub async fn refused(&self, method: &str, params: Value) -> Refusal {
        match self.try_call(method, params.clone()).await {
            Ok(result) => panic!("{method} {params} was not refused: {result}"),
            Err(refusal) => refusal,
        }
    }

    /// Waits until the daemon closes the connection.
    pub async fn hung_up(&self) {
        self.wire.wait("the daemon to hang up", |inbox| inbox.is_closed.then_some(())).await;
    }
}

impl Wire {
    /// Waits until `look` returns a value.
    pub(super) async fn wait<T>(&self, what: &str, look: impl FnMut(&mut Inbox) -> Option<T>) -> T {
        with_deadline(what, || self.tail(), self.wait_on(look)).await
    }

    /// Same as `wait`, for things that may never arrive: the caller sets the time limit.
    pub(super) async fn wait_on<T>(&self, mut look: impl FnMut(&mut Inbox) -> Option<T>) -> T {
        let mut news = self.news.subscribe();
        loop {
            news.borrow_and_update();
            {
                let mut inbox = self.inbox.lock().expect("no panic");
                if let Some(breach) = &inbox.breach {
                    let breach = breach.clone();
                    drop(inbox);
                    panic!("an event violates a property: {breach}");
                }
                if let Some(found) = look(&mut inbox) {
                    return found;
                }
            }
            news.changed().await.expect("a sender");
        }
    }

    /// The received events and the last lines of the daemon's log, for failure messages.
    pub(super) fn tail(&self) -> String {
        let mut text = String::new();
        if let Ok(inbox) = self.inbox.lock() {
            for (subscription, events) in &inbox.events {
                text.push_str(&format!("subscription {subscription}:\n"));
                let newest = &events[events.len().saturating_sub(30)..];
                newest.iter().for_each(|event| text.push_str(&format!("  {}\n", shorten(event))));
            }
            if inbox.is_closed {
                text.push_str("the daemon hung up\n");
            }
        }
        let log = std::fs::read_to_string(&self.daemon_log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        text.push_str("the daemon's log ends:\n");
        lines[lines.len().saturating_sub(15)..].iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        text
    }
}

/// Formats an event on one readable line.
pub(super) fn shorten(event: &Value) -> String {
    let text = event.to_string();
    let end = text.floor_char_boundary(200);
    let seq = &event["seq"];
    let kind = event["type"].as_str().unwrap_or("?");
    format!("{seq} {kind} {}{}", &text[..end], if end < text.len() { "…" } else { "" })
}

async fn read(reader: OwnedReadHalf, wire: Arc<Wire>) {
    let mut lines = BufReader::new(reader);
    let mut line = String::new();
    loop {
        line.clear();
        // A killed daemon may leave an incomplete line; ignore it.
        let open = matches!(lines.read_line(&mut line).await, Ok(1..)) && line.ends_with('\n');
        {
            let mut inbox = wire.inbox.lock().expect("no panic");
            if open {
                inbox.receive_line(&line);
            } else {
                inbox.is_closed = true;
            }
        }
        wire.news.send_modify(|count| *count += 1);
        if !open {
            return;
        }
    }
}

impl Inbox {
    fn receive_line(&mut self, line: &str) {
        let Ok(mut message) = serde_json::from_str::<Value>(line) else {
            self.breach.get_or_insert(format!("not JSON: {line:?}"));
            return;
        };
        if let Some(id) = message["id"].as_u64() {
            self.replies.insert(id, message);
            return;
        }
        let subscription = message["params"]["subscription"].as_str().map(str::to_owned);
        match (message["method"].as_str(), subscription) {
            (Some("session.event"), Some(subscription)) => {
                let event = message["params"]["result"].take();
                let properties = self.properties.entry(subscription.clone()).or_default();
                if let Err(breach) = properties.check(&event, line.len()) {
                    self.breach.get_or_insert(format!("{breach}: {}", shorten(&event)));
                }
                self.events.entry(subscription).or_default().push(event);
            }
            // Events of many sessions, whose seqs are in no common order, or events without a seq.
            (Some("permission.event" | "knowledge.event" | "daemon.event"), Some(subscription)) => {
                let event = message["params"]["result"].take();
                self.events.entry(subscription).or_default().push(event);
            }
            _ => {
                self.breach.get_or_insert(format!("neither a reply nor an event: {line}"));
            }
        }
    }
}

/// A session and the connection that is used for it.
#[derive(Clone)]
pub struct Session {
    pub client: Client,
    pub id: String,
}

impl Client {
    /// The sandbox in `daemon.status`, once its levels are tested.
    pub async fn sandbox(&self) -> Value {
        let tested = async {
            loop {
                let sandbox = self.call("daemon.status", json!({})).await["sandbox"].clone();
                if sandbox["tested"] == true {
                    return sandbox;
                }
            }
        };
        with_deadline("the test of the sandbox levels", || self.wire.tail(), tested).await
    }

    /// Creates a session in the daemon's workspace.
    pub async fn create(&self, daemon: &super::daemon::TestDaemon) -> Session {
        self.create_with(daemon, json!({})).await
    }

    /// Same as `create`, with more parameters.
    pub async fn create_with(&self, daemon: &super::daemon::TestDaemon, more: Value) -> Session {
        let mut params = json!({"cwd": daemon.workspace()});
        merge(&mut params, more);
        let reply = self.call("session.create", params).await;
        let id = reply["session"]["session_id"].as_str().expect("an id").to_owned();
        Session { client: self.clone(), id }
    }

    /// The same session over this connection.
    pub fn join(&self, session: &Session) -> Session {
        Session { client: self.clone(), id: session.id.clone() }
    }
}

/// Inserts the members of `more` into `params`.
fn merge(params: &mut Value, more: Value) {
    if let (Some(params), Value::Object(more)) = (params.as_object_mut(), more) {
        params.extend(more);
    }
}

impl Session {
    fn params(&self, more: Value) -> Value {
        let mut params = json!({"session_id": self.id});
        merge(&mut params, more);
        params
    }

    /// Calls `session.VERB` for this session and expects success.
    pub async fn call(&self, verb: &str, more: Value) -> Value {
        self.client.call(&format!("session.{verb}"), self.params(more)).await
    }

    /// Calls `session.VERB` for this session and expects an error.
    pub async fn refused(&self, verb: &str, more: Value) -> Refusal {
        self.client.refused(&format!("session.{verb}"), self.params(more)).await
    }

    /// Sends `session.VERB` without waiting for the reply.
    pub async fn send(&self, verb: &str, more: Value) -> u64 {
        self.client.send(&format!("session.{verb}"), self.params(more)).await
    }

    /// Subscribes from the beginning of the journal.
    pub async fn follow(&self) -> Log {
        self.follow_after(0).await
    }

    /// Subscribes to the events after a cursor.
    pub async fn follow_after(&self, after_seq: u64) -> Log {
        let subscription = self.call("subscribe", json!({"after_seq": after_seq})).await;
        let subscription = subscription.as_str().expect("a subscription is named by a text").to_owned();
        Log::new(self.client.clone(), subscription)
    }

    /// Submits input and returns the turn id.
    pub async fn submit(&self, input: &str) -> String {
        self.submit_with(json!({"input": input})).await["turn_id"].as_str().expect("a turn").to_owned()
    }

    /// Submits with more parameters and returns the whole reply.
    pub async fn submit_with(&self, params: Value) -> Value {
        self.call("submit", params).await
    }

    /// Allows a permission request once.
    pub async fn allow(&self, asked: &Value) -> Value {
        self.answer(asked, json!({"decision": "allow"})).await
    }

    /// Answers a permission request and expects success.
    pub async fn answer(&self, asked: &Value, answer: Value) -> Value {
        self.client.call("session.approve", with_request(asked, answer)).await
    }

    /// Answers a permission request and expects an error.
    pub async fn answer_refused(&self, asked: &Value, answer: Value) -> Refusal {
        self.client.refused("session.approve", with_request(asked, answer)).await
    }

    /// The result of `session.get`.
    pub async fn view(&self) -> Value {
        self.call("get", json!({})).await["session"].clone()
    }

    /// The whole journal, read page by page.
    pub async fn events(&self) -> Vec<Value> {
        self.pages("events", "events").await
    }

    /// The whole conversation, read page by page.
    pub async fn items(&self) -> Vec<Value> {
        self.pages("items", "items").await
    }

    async fn pages(&self, verb: &str, name: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut page = json!({"limit": 50});
        loop {
            let reply = self.call(verb, page.clone()).await;
            all.extend(reply[name].as_array().expect("a list").iter().cloned());
            match reply.get("next_cursor") {
                Some(cursor) => page["cursor"] = cursor.clone(),
                None => return all,
            }
        }
    }

    /// Pending permission requests of the session.
    pub async fn pending(&self) -> Vec<Value> {
        let reply = self.client.call("permission.list", self.params(json!({}))).await;
        reply["requests"].as_array().expect("a list").clone()
    }
}

fn with_request(asked: &Value, answer: Value) -> Value {
    let mut params = json!({"request_id": asked["request_id"]});
    merge(&mut params, answer);
    params
}
