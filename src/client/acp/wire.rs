//! JSON-RPC messages, one per line: parsing, errors, the writer, and replies that are never forgotten.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use crate::connection::client::CallError;
use crate::failure::Failure;
use crate::terminal::escape;
use api::Code;
use base::sync::lock;

/// Messages that wait for the writer. A session whose editor does not read waits as well, and then the daemon keeps
/// its events.
const OUTPUT_CAPACITY: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct AcpError {
    pub(super) code: i32,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl AcpError {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code: editor_code(code.number()), message: message.into(), data: None }
    }

    /// A parameter is missing or wrong. `path` names it.
    pub(super) fn param(path: &str, problem: &str) -> Self {
        let message = format!("{path}: {problem}");
        Self { data: Some(json!({ "path": path })), ..Self::new(Code::InvalidParams, message) }
    }

    pub(super) fn unknown_session(id: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no session {id:?}; session/list names them"))
    }

    /// Whether the daemon refused this parameter, or a part of it.
    pub(super) fn is_about(&self, parameter: &str) -> bool {
        let path = self.data.as_ref().and_then(|data| data["path"].as_str());
        path.is_some_and(|path| path.starts_with(parameter))
    }
}

/// A number for editors. In this protocol -32000 asks for a sign-in, but the daemon means "not authorised" by it.
fn editor_code(number: i32) -> i32 {
    if number == Code::NotAuthorised.number() { Code::Internal.number() } else { number }
}

impl From<CallError> for AcpError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Fault(fault) => {
                let data = Some(fault.data).filter(|data| !data.is_null());
                Self { code: editor_code(fault.code), message: fault.message, data }
            }
            other => Failure::from(other).into(),
        }
    }
}

impl From<Failure> for AcpError {
    fn from(failure: Failure) -> Self {
        Self::new(Code::Internal, failure.message)
    }
}

/// The id of a request, exactly as the client wrote it.
pub(super) type RequestId = Box<RawValue>;

/// The meaning of a line.
#[derive(Debug)]
pub(super) enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// A reply to a request of this program. `None` for an error.
    Response {
        id: Option<u64>,
        result: Option<Value>,
    },
    Invalid {
        id: RequestId,
        error: AcpError,
    },
    Empty,
}

fn null_id() -> RequestId {
    RawValue::NULL.to_owned()
}

/// An invalid message whose id is not known.
pub(super) fn invalid(code: Code, message: impl Into<String>) -> Incoming {
    Incoming::Invalid { id: null_id(), error: AcpError::new(code, message) }
}

pub(super) fn parse(line: &[u8]) -> Incoming {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Incoming::Empty;
    }
    let Ok(text) = std::str::from_utf8(line) else {
        return invalid(Code::ParseError, "the line is not UTF-8");
    };
    if line.starts_with(b"[") {
        return invalid(
            Code::InvalidRequest,
            "batches are not part of this protocol; send one message per line",
        );
    }
    let mut members: BTreeMap<String, Box<RawValue>> = match serde_json::from_str(text) {
        Ok(members) => members,
        Err(error) => {
            return match serde_json::from_str::<IgnoredAny>(text) {
                Ok(_) => invalid(Code::InvalidRequest, "expected a JSON object"),
                Err(_) => invalid(Code::ParseError, format!("the line is not JSON: {error}")),
            };
        }
    };
    let id = members.remove("id");
    let is_id =
        |id: &RawValue| id.get().starts_with(|c: char| matches!(c, '"' | '-' | 'n') || c.is_ascii_digit());
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return invalid(Code::InvalidRequest, "id: expected a number, a string or null");
    }
    let refuse = |problem: &str| Incoming::Invalid {
        id: id.clone().unwrap_or_else(null_id),
        error: AcpError::new(Code::InvalidRequest, problem),
    };
    if members.get("jsonrpc").is_some_and(|version| version.get() != "\"2.0\"") {
        return refuse("jsonrpc: expected \"2.0\"");
    }
    let value = |raw: Box<RawValue>| serde_json::from_str::<Value>(raw.get());
    let Some(method) = members.remove("method") else {
        let has_error = members.contains_key("error");
        let result = members.remove("result");
        if result.is_none() && !has_error {
            return refuse("there is no method");
        }
        let result = result.filter(|_| !has_error);
        let id = id.and_then(|id| id.get().parse().ok());
        // A result that cannot be read counts as an error.
        return Incoming::Response { id, result: result.and_then(|raw| value(raw).ok()) };
    };
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return refuse("method: expected a string");
    };
    let Ok(params) = members.remove("params").map_or(Ok(Value::Null), value) else {
        return refuse("params: nested too deeply");
    };
    match id {
        Some(id) => Incoming::Request { id, method, params },
        None => Incoming::Notification { method, params },
    }
}

/// Parses parameters. Absent parameters count as an empty object.
pub(super) fn params<T: DeserializeOwned>(params: Value) -> Result<T, AcpError> {
    let params = if params.is_null() { json!({}) } else { params };
    T::deserialize(&params).map_err(|error| match wrong_param::<T>(&params, &error) {
        Some(name) => AcpError::param(name, &error.to_string()),
        None => AcpError::new(Code::InvalidParams, format!("could not read the parameters: {error}")),
    })
}

/// The parameter that an error is about: without it, there is no error or another one.
fn wrong_param<'p, T: DeserializeOwned>(params: &'p Value, error: &serde_json::Error) -> Option<&'p str> {
    let is_wrong = |name: &&String| {
        let mut others = params.clone();
        others.as_object_mut().map(|fields| fields.remove(*name));
        T::deserialize(&others).map_or_else(|other| other.to_string() != error.to_string(), |_| true)
    };
    params.as_object()?.keys().find(is_wrong).map(String::as_str)
}

/// Reports a problem on standard error, which editors show in their logs.
pub(super) fn log(message: &str) {
    let _ = writeln!(std::io::stderr(), "agentctl acp: {}", escape::line(message));
}

const VERSION: &str = "2.0";

#[derive(Serialize)]
struct Call<'a, Params> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a Params,
}

#[derive(Serialize)]
struct Answer<'a, Reply> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: Reply,
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: &'a AcpError,
}

type Replies = HashMap<u64, oneshot::Sender<Option<Value>>>;

/// The way to the editor. Clones share it.
#[derive(Clone)]
pub(super) struct Output {
    lines: mpsc::Sender<String>,
    /// Requests to the editor that wait for a reply.
    replies: Arc<Mutex<Replies>>,
    next_id: Arc<AtomicU64>,
}

impl Output {
    /// The output, and the lines for [`write_lines`].
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (lines, receiver) = mpsc::channel(OUTPUT_CAPACITY);
        (Self { lines, replies: Arc::default(), next_id: Arc::new(AtomicU64::new(1)) }, receiver)
    }

    /// Sends a notification. The editor may have closed its side; the program ends soon then.
    pub(super) async fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&Call { jsonrpc: VERSION, id: None, method, params }).await;
    }

    async fn request(&self, method: &str, params: &impl Serialize) -> SentRequest {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = oneshot::channel();
        lock(&self.replies).insert(id, sender);
        self.send(&Call { jsonrpc: VERSION, id: Some(id), method, params }).await;
        SentRequest { id, reply }
    }

    /// Passes a reply on. A reply to an unknown or withdrawn request is ignored.
    pub(super) fn accept(&self, id: Option<u64>, result: Option<Value>) {
        if let Some(sender) = id.and_then(|id| lock(&self.replies).remove(&id)) {
            let _ = sender.send(result);
        }
    }

    /// Withdraws a request: its answer no longer matters.
    async fn withdraw(&self, id: u64) {
        if lock(&self.replies).remove(&id).is_some() {
            self.notify("$/cancel_request", &json!({ "requestId": id })).await;
        }
    }

    async fn send(&self, message: &impl Serialize) {
        // All messages are made of texts, numbers and parsed JSON, so that this cannot fail.
        if let Ok(line) = serde_json::to_string(message) {
            let _ = self.lines.send(line).await;
        }
    }

    /// Sends an error for a line that is no request.
    pub(super) async fn refuse(&self, id: &RawValue, error: &AcpError) {
        self.send(&Refusal { jsonrpc: VERSION, id, error }).await;
    }
}

struct SentRequest {
    id: u64,
    /// The result; `None` after an error. It fails if the request was withdrawn.
    reply: oneshot::Receiver<Option<Value>>,
}

/// The request for one decision of the user, which may be withdrawn at any time. A decision may need several requests,
/// one after the other.
#[derive(Clone, Default)]
pub(super) struct OpenRequest(Arc<Mutex<OpenState>>);

#[derive(Clone, Copy, Default)]
enum OpenState {
    #[default]
    NotSent,
    Sent(u64),
    Withdrawn,
}

impl OpenRequest {
    /// Sends a request and waits for the result, which is `None` after an error. Returns `None` if the decision was
    /// withdrawn.
    pub(super) async fn ask(
        &self,
        output: &Output,
        method: &str,
        params: &impl Serialize,
    ) -> Option<Option<Value>> {
        if matches!(*lock(&self.0), OpenState::Withdrawn) {
            return None;
        }
        let sent = output.request(method, params).await;
        let before = {
            let mut state = lock(&self.0);
            let before = *state;
            if !matches!(before, OpenState::Withdrawn) {
                *state = OpenState::Sent(sent.id);
            }
            before
        };
        if matches!(before, OpenState::Withdrawn) {
            output.withdraw(sent.id).await;
        }
        sent.reply.await.ok()
    }

    pub(super) async fn withdraw(&self, output: &Output) {
        let before = std::mem::replace(&mut *lock(&self.0), OpenState::Withdrawn);
        if let OpenState::Sent(id) = before {
            output.withdraw(id).await;
        }
    }
}

/// The duty to reply to a request. If it is dropped, for example by a panic, the editor gets an error instead of
/// waiting for ever.
pub(super) struct Responder {
    id: RequestId,
    output: Output,
    is_answered: bool,
}

impl Responder {
    pub(super) fn new(id: RequestId, output: &Output) -> Self {
        Self { id, output: output.clone(), is_answered: false }
    }

    /// The id of the request as the client wrote it.
    pub(super) fn id(&self) -> &str {
        self.id.get()
    }

    pub(super) async fn reply(mut self, outcome: Result<impl Serialize, AcpError>) {
        self.is_answered = true;
        let (jsonrpc, id) = (VERSION, &*self.id);
        match outcome {
            Ok(result) => self.output.send(&Answer { jsonrpc, id, result }).await,
            Err(error) => self.output.send(&Refusal { jsonrpc, id, error: &error }).await,
        }
    }

    /// Gives the reply up, because the editor is gone.
    pub(super) fn abandon(mut self) {
        self.is_answered = true;
    }

    pub(super) async fn refuse(self, error: AcpError) {
        self.reply(Err::<(), _>(error)).await;
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if !self.is_answered {
            let error = AcpError::new(Code::Internal, "the request failed unexpectedly; see standard error");
            let refusal = Refusal { jsonrpc: VERSION, id: &self.id, error: &error };
            if let Ok(line) = serde_json::to_string(&refusal) {
                let _ = self.output.lines.try_send(line);
            }
        }
    }
}

/// Writes lines until all senders are gone or the editor has closed its side.
pub(super) async fn write_lines(mut lines: mpsc::Receiver<String>, mut output: impl AsyncWrite + Unpin) {
    let mut batch = Vec::new();
    while let Some(line) = lines.recv().await {
        batch.clear();
        push_line(&mut batch, &line);
        while let Ok(line) = lines.try_recv() {
            push_line(&mut batch, &line);
        }
        if output.write_all(&batch).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

fn push_line(batch: &mut Vec<u8>, line: &str) {
    batch.extend_from_slice(line.as_bytes());
    batch.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(line: &[u8]) -> (String, i32) {
        match parse(line) {
            Incoming::Invalid { id, error } => (id.get().to_owned(), error.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parameter_of_another_type_is_named() {
        use super::super::schema::NewSessionParams;
        let wrong = |input: Value| params::<NewSessionParams>(input).err().map(|error| error.message);
        let named = |input: Value, name: &str| {
            assert!(wrong(input).is_some_and(|message| message.starts_with(name)), "{name}");
        };
        named(json!({"cwd": null, "mcpServers": []}), "cwd: ");
        named(json!({"cwd": 5}), "cwd: ");
        named(json!({"cwd": "/", "mcpServers": "x"}), "mcpServers: ");
        named(json!({"mcpServers": []}), "could not read the parameters: missing field `cwd`");
        assert_eq!(wrong(json!({"cwd": "/"})), None);
    }

    #[test]
    fn invalid_line_gets_error_with_its_id_if_known() {
        let cases: [(&[u8], &str, i32); 11] = [
            (b"\xff\xfe", "null", -32700),
            (b"not JSON", "null", -32700),
            (b"{\"id\":", "null", -32700),
            (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", "null", -32600),
            (b"[]", "null", -32600),
            (b"3", "null", -32600),
            (b"{\"id\":{},\"method\":\"x\"}", "null", -32600),
            (b"{\"id\":true,\"method\":\"x\"}", "null", -32600),
            (b"{\"id\":7,\"method\":4}", "7", -32600),
            (b"{\"id\":\"a\"}", "\"a\"", -32600),
            (b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"x\"}", "7", -32600),
        ];
        for (line, id, code) in cases {
            assert_eq!(error_of(line), (id.to_owned(), code), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn request_id_of_every_type_is_kept_as_written() {
        for id in ["1", "-4", "1.50", "1e3", "99999999999999999999", "\"x\\u0041\"", "null", "\"\""] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            match parse(line.as_bytes()) {
                Incoming::Request { id: kept, params, .. } => {
                    assert_eq!((kept.get(), params), (id, Value::Null))
                }
                other => panic!("{id}: {other:?}"),
            }
        }
        assert!(matches!(parse(br#"{"method":"m"}"#), Incoming::Notification { .. }));
        assert!(matches!(parse(b" \r"), Incoming::Empty));
    }

    #[test]
    fn reply_with_error_has_no_result() {
        for line in
            [r#"{"id":1,"result":{"x":1},"error":{"code":1}}"#, r#"{"id":1,"error":null,"result":{}}"#]
        {
            assert!(matches!(parse(line.as_bytes()), Incoming::Response { result: None, .. }), "{line}");
        }
        assert!(matches!(parse(br#"{"id":1,"result":{}}"#), Incoming::Response { result: Some(_), .. }));
    }

    #[test]
    fn daemon_refusal_never_asks_editor_to_sign_in() {
        let fault = |code| api::fault::WireFault { code, message: "no".into(), data: json!({"kind": "k"}) };
        let code = |number| AcpError::from(CallError::Fault(fault(number))).code;
        assert_eq!((code(-32000), code(-32002), code(-32602)), (-32603, -32002, -32602));
        assert_eq!(AcpError::from(CallError::Closed).code, -32603);
    }

    #[tokio::test]
    async fn dropped_request_is_answered_with_error() {
        let (output, mut lines) = Output::new();
        let id = || RawValue::from_string("7".into()).expect("JSON");
        let task = tokio::spawn({
            let responder = Responder::new(id(), &output);
            async move {
                let _responder = responder;
                panic!("as a fault of the program would");
            }
        });
        assert!(task.await.is_err());
        let line: Value = serde_json::from_str(&lines.recv().await.expect("a line")).expect("JSON");
        assert_eq!((&line["id"], &line["error"]["code"]), (&json!(7), &json!(-32603)));
        Responder::new(id(), &output).reply(Ok(json!({}))).await;
        drop(output);
        assert!(lines.recv().await.expect("a line").contains("result"));
        assert_eq!(lines.recv().await, None, "one reply for each request");
    }

    #[tokio::test]
    async fn withdrawn_request_is_cancelled_once_and_ignores_its_answer() {
        let (output, mut lines) = Output::new();
        let sent = output.request("session/request_permission", &json!({})).await;
        lines.recv().await.expect("the request");
        output.withdraw(sent.id).await;
        let line: Value = serde_json::from_str(&lines.recv().await.expect("a line")).expect("JSON");
        assert_eq!(
            (&line["method"], &line["params"]["requestId"]),
            (&json!("$/cancel_request"), &json!(sent.id))
        );
        output.accept(Some(sent.id), Some(json!({})));
        assert!(sent.reply.await.is_err());
        output.withdraw(sent.id).await;
        drop(output);
        assert_eq!(lines.recv().await, None);
    }
}
