//! An editor in tests: it starts `agentctl acp`, writes lines and keeps every line that comes back, in order.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::scenarios::agentctl::command;
use crate::support::daemon::TestDaemon;
use crate::support::wait::with_deadline;

pub(super) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    seen: Arc<Mutex<Vec<Value>>>,
    news: watch::Sender<usize>,
    next_id: u64,
    /// Every message to the bridge.
    pub(super) sent: Vec<Value>,
    _reader: JoinHandle<()>,
}

impl Editor {
    /// The bridge before `initialize`.
    pub(super) fn spawn(daemon: &TestDaemon, arguments: &[&str]) -> Self {
        Self::from_command(command(daemon, arguments))
    }

    /// A bridge with an environment of its own.
    pub(super) fn from_command(mut command: Command) -> Self {
        // A trace of the program must not reach standard output.
        command.env("RUST_LOG", "trace").stdin(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("agentctl starts");
        let (seen, news) = (Arc::new(Mutex::new(Vec::new())), watch::Sender::new(0));
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (all, count) = (Arc::clone(&seen), news.clone());
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                record('<', &line);
                let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "noise": line }));
                all.lock().expect("sound").push(message);
                count.send_modify(|count| *count += 1);
            }
        });
        let input = child.stdin.take();
        Self { child, input, seen, news, next_id: 1, sent: Vec::new(), _reader: reader }
    }

    /// The bridge after `initialize` with these capabilities.
    pub(super) async fn start_with(daemon: &TestDaemon, capabilities: Value) -> Self {
        // Tests that kill the daemon start it again themselves.
        let mut editor = Self::spawn(daemon, &["acp", "--no-start"]);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities,
            "clientInfo": {"name": "tests", "version": "1"}});
        editor.call("initialize", params).await;
        editor
    }

    pub(super) async fn start(daemon: &TestDaemon) -> Self {
        Self::start_with(daemon, json!({})).await
    }

    /// A bridge with a new session in the workspace.
    pub(super) async fn with_session(daemon: &TestDaemon) -> (Self, String) {
        let mut editor = Self::start(daemon).await;
        let session = editor.new_session(&daemon.workspace()).await;
        (editor, session)
    }

    pub(super) async fn new_session(&mut self, cwd: &Path) -> String {
        let reply = self.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
        reply["sessionId"].as_str().expect("an id").to_owned()
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().expect("open").write_all(bytes).await.expect("the bridge reads");
    }

    pub(super) async fn send(&mut self, message: Value) {
        record('>', &message.to_string());
        self.write(format!("{message}\n").as_bytes()).await;
        self.sent.push(message);
    }

    /// Sends a request and returns its id.
    pub(super) async fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    pub(super) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Every line so far.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.seen.lock().expect("sound").clone()
    }

    /// Waits until `look` finds something in the lines.
    pub(super) async fn wait<T>(&self, what: &str, mut look: impl FnMut(&[Value]) -> Option<T>) -> T {
        let mut news = self.news.subscribe();
        let work = async {
            loop {
                news.borrow_and_update();
                if let Some(found) = look(&self.seen.lock().expect("sound")) {
                    return found;
                }
                news.changed().await.expect("a sender");
            }
        };
        with_deadline(what, || format!("{:#?}", self.messages()), work).await
    }

    /// The reply to a request: the whole message.
    pub(super) async fn reply(&self, id: u64) -> Value {
        self.wait(&format!("the reply to {id}"), |seen| {
            seen.iter().find(|message| message["id"] == id && message["method"].is_null()).cloned()
        })
        .await
    }

    pub(super) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let reply = self.reply(id).await;
        assert!(reply["error"].is_null(), "{method}: {reply}");
        reply["result"].clone()
    }

    /// The error of a request that is refused.
    pub(super) async fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let reply = self.reply(id).await;
        assert!(reply["result"].is_null() && reply["error"]["message"].is_string(), "{method}: {reply}");
        assert_ne!(reply["error"]["code"], -32000, "{reply}");
        reply["error"].clone()
    }

    /// Sends a prompt and returns its id.
    pub(super) async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    /// The stop reason of a prompt.
    pub(super) async fn stop_reason(&self, id: u64) -> Value {
        let reply = self.reply(id).await;
        assert!(reply["error"].is_null(), "{reply}");
        reply["result"]["stopReason"].clone()
    }

    pub(super) async fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({ "sessionId": session })).await;
    }

    /// The request of the bridge with this number, from 0: the whole message.
    pub(super) async fn asked(&self, number: usize) -> Value {
        self.wait("a request of the bridge", |seen| {
            seen.iter()
                .filter(|message| !message["method"].is_null() && !message["id"].is_null())
                .nth(number)
                .cloned()
        })
        .await
    }

    /// Answers a request of the bridge.
    pub(super) async fn answer(&mut self, asked: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
    }

    /// Chooses an option of a permission request by its kind.
    pub(super) async fn choose(&mut self, asked: &Value, kind: &str) {
        let options = asked["params"]["options"].as_array().expect("options");
        let option = options.iter().find(|option| option["kind"] == kind).expect("this kind of option");
        let outcome = json!({"outcome": "selected", "optionId": option["optionId"]});
        self.answer(asked, json!({ "outcome": outcome })).await;
    }

    /// The updates of a session so far.
    pub(super) fn updates(&self, session: &str) -> Vec<Value> {
        updates(&self.messages(), session)
    }

    /// Waits for an update of this kind.
    pub(super) async fn update(&self, session: &str, kind: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.wait(&format!("an update {kind}"), |seen| {
            updates(seen, session).into_iter().find(|update| update["sessionUpdate"] == kind && fits(update))
        })
        .await
    }

    /// The text of all chunks of this kind so far.
    pub(super) fn text(&self, session: &str, kind: &str) -> String {
        text(&self.updates(session), kind)
    }

    /// Waits until the answers of the session end with this text. Deltas may be joined.
    pub(super) async fn answered(&self, session: &str, end: &str) {
        let is_there = |seen: &[Value]| text(&updates(seen, session), "agent_message_chunk").ends_with(end);
        self.wait(&format!("the answer {end:?}"), |seen| is_there(seen).then_some(())).await;
    }

    /// Closes standard input and waits until the bridge has exited.
    pub(super) async fn close(mut self) -> Vec<Value> {
        self.input = None;
        let status =
            with_deadline("the bridge to exit", String::new, self.child.wait()).await.expect("waited");
        assert!(status.success(), "{status}");
        self.messages()
    }

    /// Kills the bridge with SIGKILL.
    pub(super) async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }
}

fn text(updates: &[Value], kind: &str) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

/// Appends a line to the file that `AGENTD_TEST_ACP_LINES` names, for judges of the schema outside these tests.
fn record(direction: char, line: &str) {
    let Some(file) = std::env::var_os("AGENTD_TEST_ACP_LINES") else { return };
    let file = std::fs::File::options().create(true).append(true).open(file);
    let _ = file
        .and_then(|mut file| file.write_all(format!("{}{direction}{line}\n", std::process::id()).as_bytes()));
}

/// The updates of a session in lines.
pub(super) fn updates(messages: &[Value], session: &str) -> Vec<Value> {
    let of_session =
        |message: &&Value| message["method"] == "session/update" && message["params"]["sessionId"] == session;
    messages.iter().filter(of_session).map(|message| message["params"]["update"].clone()).collect()
}
