//! A model provider for tests, on a port of this machine. It speaks Anthropic Messages, OpenAI Chat
//! Completions and OpenAI Responses; the path of a request selects the API. It answers from a script,
//! records all requests, and refuses requests that a strict provider would refuse (`model_rules`).
//!
//! ```ignore
//! let server = ModelServer::start().await;
//! server.push(Step::calls([("Write", json!({"file_path": "a", "content": "b"}))]));
//! let gate = Gate::new();
//! server.push(Step::text("one two three").hold_after(1, &gate));   // stops after "one "
//! // … point a provider at server.url() (anthropic) or server.openai_url() (openai_chat) …
//! gate.wait_reached().await;
//! gate.open();
//! server.assert_no_breach();
//! ```
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::model_responses::{self, StoredAnswers};
use super::model_rules::{check_anthropic, check_openai, check_version};
pub use super::model_script::{Gate, Step};
use super::model_script::{expect_within, wait_count};
use super::model_wire::render;

/// A request that the server received.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    /// The text after the question mark of the address.
    pub query: String,
    /// Header names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The tool results at the end of the conversation, in any API: id and text.
    pub fn tool_results(&self) -> Vec<(String, String)> {
        let pair = |id: &Value, text: &Value| {
            // A result with media is a list that begins with the text.
            let text = text.as_str().or_else(|| text[0]["text"].as_str());
            (id.as_str().unwrap_or("?").to_owned(), text.unwrap_or("?").to_owned())
        };
        if self.is_anthropic() {
            let last = self.messages().last().and_then(|message| message["content"].as_array());
            let results = last.into_iter().flatten().filter(|block| block["type"] == "tool_result");
            return results.map(|block| pair(&block["tool_use_id"], &block["content"])).collect();
        }
        if self.is_responses() {
            let items = self.body["input"].as_array().map_or(&[][..], Vec::as_slice);
            let tail = items.iter().rev().skip_while(|item| item["role"] == "user");
            let outputs = tail.take_while(|item| item["type"] == "function_call_output");
            let mut results: Vec<_> = outputs.map(|item| pair(&item["call_id"], &item["output"])).collect();
            results.reverse();
            return results;
        }
        let tail = self.messages().iter().rev().skip_while(|m| m["role"] == "user");
        let mut results: Vec<_> = tail
            .take_while(|message| message["role"] == "tool")
            .map(|message| pair(&message["tool_call_id"], &message["content"]))
            .collect();
        results.reverse();
        results
    }

    pub(super) fn is_responses(&self) -> bool {
        self.path.ends_with("/responses")
    }

    pub(super) fn is_anthropic(&self) -> bool {
        self.path.ends_with("/v1/messages")
    }
}

/// Interval of keep-alive bytes from a server that sends nothing else.
const KEEP_ALIVE_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);

type Fallback = Box<dyn Fn(&Request) -> Step + Send>;

#[derive(Default)]
struct State {
    script: Mutex<VecDeque<Step>>,
    fallback: Mutex<Option<Fallback>>,
    requests: Mutex<Vec<Request>>,
    breaches: Mutex<Vec<String>>,
    /// Answers that a request of Responses may continue.
    kept: Mutex<StoredAnswers>,
    /// Requests for the list of models.
    lists: Mutex<Vec<Request>>,
    /// Status and body of the answer to them; by default an empty list.
    list_answer: Mutex<Option<(u16, String)>>,
    /// Whether the last answer was paused.
    paused: Mutex<bool>,
    asked: watch::Sender<usize>,
    hangups: watch::Sender<usize>,
    connections: watch::Sender<usize>,
}

/// The server. It ends when dropped.
pub struct ModelServer {
    url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ModelServer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(State::default());
        let served = Arc::clone(&state);
        let task = tokio::spawn(async move {
            // Aborting this task drops the set, which ends every connection.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                served.connections.send_modify(|count| *count += 1);
                let state = Arc::clone(&served);
                connections.spawn(async move { drop(serve(socket, &state).await) });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, state, task }
    }

    /// `base_url` of an anthropic provider.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `base_url` of an openai_chat provider.
    pub fn openai_url(&self) -> String {
        format!("{}/v1", self.url)
    }

    /// Removes all stored conversations (Responses).
    pub fn forget_conversations(&self) {
        self.state.kept.lock().expect("no panic").clear();
    }

    /// Appends to the script.
    pub fn push(&self, step: Step) {
        self.state.script.lock().expect("no panic").push_back(step);
    }

    /// Answers every request after the end of the script, for tests with many sessions.
    pub fn set_fallback(&self, answer: impl Fn(&Request) -> Step + Send + 'static) {
        *self.state.fallback.lock().expect("no panic") = Some(Box::new(answer));
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().expect("no panic").clone()
    }

    /// All requests for the list of models so far.
    pub fn list_requests(&self) -> Vec<Request> {
        self.state.lists.lock().expect("no panic").clone()
    }

    /// Sets the answer to requests for the list of models.
    pub fn answer_list(&self, status: u16, body: &str) {
        *self.state.list_answer.lock().expect("no panic") = Some((status, body.to_owned()));
    }

    /// Waits until at least `n` requests have arrived, and returns all.
    pub async fn wait_for_requests(&self, n: usize) -> Vec<Request> {
        expect_within("requests", wait_count(&self.state.asked, n)).await;
        self.requests()
    }

    /// Waits until clients have disconnected from at least `n` held streams.
    pub async fn wait_for_hangups(&self, n: usize) {
        expect_within("a hang-up", wait_count(&self.state.hangups, n)).await;
    }

    /// Number of accepted connections.
    pub fn connections(&self) -> usize {
        *self.state.connections.borrow()
    }

    /// Rules that requests violated, and requests beyond the script.
    pub fn breaches(&self) -> Vec<String> {
        self.state.breaches.lock().expect("no panic").clone()
    }

    pub fn assert_no_breach(&self) {
        assert_eq!(self.breaches(), Vec::<String>::new(), "requests broke rules of the provider");
    }
}

/// Serves one connection until it is closed.
async fn serve(mut socket: TcpStream, state: &State) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    while let Some(request) = read_request(&mut socket).await? {
        if request.path.ends_with("/v1/models") {
            let set = state.list_answer.lock().expect("no panic").clone();
            let (status, body) = set.unwrap_or((200, "{\"data\":[]}".to_owned()));
            state.lists.lock().expect("no panic").push(request);
            let kind = if body.starts_with('<') { "text/html" } else { "application/json" };
            let head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n");
            let length = body.len();
            socket.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).await?;
            continue;
        }
        let number = state.requests.lock().expect("no panic").len();
        let step = choose_step(&request, state);
        if request.is_responses() && request.body["store"] == true {
            let calls = model_responses::calls_of(&step, number);
            state.kept.lock().expect("no panic").insert(model_responses::response_id(number), calls);
        }
        *state.paused.lock().expect("no panic") = step.stop.as_deref() == Some("pause_turn");
        state.requests.lock().expect("no panic").push(request.clone());
        state.asked.send_modify(|count| *count += 1);
        if !answer(&mut socket, &request, &step, number, state).await? {
            break;
        }
    }
    socket.shutdown().await
}

/// The rule that a request violates, if any, for a provider that stores no conversation.
pub fn breach(request: &Request) -> Option<String> {
    let verdict = if request.is_anthropic() {
        check_anthropic(&request.body, false)
    } else if request.is_responses() {
        model_responses::check(&request.body, &StoredAnswers::default()).map_err(|(_, text)| text)
    } else {
        check_openai(&request.body)
    };
    verdict.err()
}

fn choose_step(request: &Request, state: &State) -> Step {
    // The daemon checks an address with an empty request, which every provider refuses.
    if request.body == serde_json::json!({}) {
        return Step::error(400, "invalid_request_error", "model: field required");
    }
    let verdict = if request.is_anthropic() {
        check_version(request.header("anthropic-version"), &request.body)
            .and_then(|()| check_anthropic(&request.body, *state.paused.lock().expect("no panic")))
    } else if request.is_responses() {
        match model_responses::check(&request.body, &state.kept.lock().expect("no panic")) {
            // Not a violation: a server that does not store conversations for ever returns this error.
            Err((word, text)) if word == model_responses::UNKNOWN_RESPONSE => {
                return Step::error(400, word, &text);
            }
            verdict => verdict.map_err(|(_, text)| text),
        }
    } else if request.path.ends_with("/chat/completions") {
        check_openai(&request.body)
    } else {
        Err(format!("no such path: {}", request.path))
    };
    let next = || {
        let scripted = state.script.lock().expect("no panic").pop_front();
        scripted.or_else(|| state.fallback.lock().expect("no panic").as_ref().map(|answer| answer(request)))
    };
    match verdict.and_then(|()| next().ok_or_else(|| "the script has no step left".to_owned())) {
        Ok(step) => step,
        Err(breach) => {
            state.breaches.lock().expect("no panic").push(breach.clone());
            Step::error(400, "invalid_request_error", &breach)
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let (path, query) = (path.to_owned(), query.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = head_end + 4 + length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    while bytes.len() < length {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    let body = serde_json::from_slice(&bytes[head_end + 4..length]).unwrap_or(Value::Null);
    Ok(Some(Request { path, query, headers, body }))
}

/// Sends one answer. Returns whether the connection stays open.
async fn answer(
    socket: &mut TcpStream,
    request: &Request,
    step: &Step,
    number: usize,
    state: &State,
) -> std::io::Result<bool> {
    if let Some(gate) = &step.before
        && !wait_at_gate(gate, socket, state).await
    {
        return Ok(false);
    }
    let (status, content_type, events) = render(request, step, number);
    let mut head = format!("HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\n");
    for (name, value) in &step.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("transfer-encoding: chunked\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    let mut left = step.cut_after.unwrap_or(usize::MAX);
    let mut deltas = 0;
    for event in &events {
        if event.is_delta && deltas == 0 && !hold_stream(step, 0, socket, state).await {
            return Ok(false);
        }
        for part in event.bytes.chunks(step.write_size.unwrap_or(usize::MAX)) {
            let part = &part[..part.len().min(left)];
            left -= part.len();
            if !part.is_empty() {
                socket.write_all(format!("{:x}\r\n", part.len()).as_bytes()).await?;
                socket.write_all(part).await?;
                socket.write_all(b"\r\n").await?;
            }
            if left == 0 {
                return Ok(false);
            }
        }
        deltas += usize::from(event.is_delta);
        if event.is_delta && !hold_stream(step, deltas, socket, state).await {
            return Ok(false);
        }
    }
    socket.write_all(b"0\r\n\r\n").await?;
    Ok(true)
}

/// Waits at the gates after this many deltas, or repeats the keep-alive bytes for ever.
async fn hold_stream(step: &Step, deltas: usize, socket: &mut TcpStream, state: &State) -> bool {
    if let Some((_, bytes)) = step.keep_alive.as_ref().filter(|(after, _)| *after == deltas) {
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        while socket.write_all(&chunk).await.is_ok() {
            tokio::time::sleep(KEEP_ALIVE_INTERVAL).await;
        }
        state.hangups.send_modify(|count| *count += 1);
        return false;
    }
    for (_, gate) in step.holds.iter().filter(|(after, _)| *after == deltas) {
        if !wait_at_gate(gate, socket, state).await {
            return false;
        }
    }
    true
}

/// Waits for the gate or for the client to disconnect. Returns whether the client is still connected.
async fn wait_at_gate(gate: &Gate, socket: &mut TcpStream, state: &State) -> bool {
    let mut nothing = [0];
    tokio::select! {
        () = gate.wait_open() => true,
        _ = socket.read(&mut nothing) => {
            state.hangups.send_modify(|count| *count += 1);
            false
        }
    }
}
