//! Newline-delimited JSON for clients: a connection, requests, lines with a limit, replies, events.

use std::path::PathBuf;
use std::time::Duration;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use crate::connection::fault_words;
use crate::connection::ssh::{Prompts, RemoteFailure, SshProcess, SshRoute};
use crate::failure::Failure;
use crate::terminal::escape;
use api::fault::WireFault;
use api::params::HelloParams;
use api::{ApiMethod, DAEMON_EVENT, SESSION_EVENT, methods};
use types::daemon_event::{DaemonEvent, RestartReason, SessionNotification};
use types::event::Envelope;
use types::ids::Seq;

/// How long the daemon may take to accept, to reply to `daemon.hello` and to open a subscription.
pub(crate) const GREETING_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for a daemon on another machine, which may have to be started there.
const REMOTE_GREETING_TIMEOUT: Duration = Duration::from_secs(25);
/// The same if ssh may ask for a password first.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(180);

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The daemon replied with an error.
    Fault(WireFault),
    /// The connection ended first. The call may or may not have taken effect.
    Closed,
    /// No connection, or no line of JSON (then the kind is `InvalidData`).
    Io(io::Error),
    /// The daemon replied in a form that this version does not know. The text says which program to update.
    Unreadable(String),
    /// No connection to a daemon on another machine.
    Remote(RemoteFailure),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Fault(fault) => write!(f, "{} ({})", fault.message, fault.kind()),
            CallError::Closed => f.write_str("the daemon closed the connection"),
            CallError::Io(error) => error.fmt(f),
            CallError::Unreadable(text) => f.write_str(text),
            CallError::Remote(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl CallError {
    /// Whether the connection broke or could not be made for a reason that may pass.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            CallError::Closed => true,
            CallError::Io(error) => error.kind() != io::ErrorKind::InvalidData,
            CallError::Remote(failure) => !failure.is_final(),
            CallError::Fault(_) | CallError::Unreadable(_) => false,
        }
    }
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        CallError::Io(error)
    }
}

/// Maximum bytes of a line; a longer one is an error. Events are 64 KiB at most; replies with pages of
/// sessions or items are longer.
const MAX_LINE_BYTES: usize = 64 << 20;

/// Lines of a stream.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    partial: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), partial: Vec::new() }
    }

    /// The next line without its end, `None` at the end of the stream. Cancel-safe: an incomplete line
    /// is kept. A last line without an end is not a message and is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            self.partial.extend_from_slice(&chunk[..end.unwrap_or(chunk.len())]);
            let used = end.map_or(chunk.len(), |at| at + 1);
            self.reader.consume(used);
            if self.partial.len() > MAX_LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a line from the daemon is too long"));
            }
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.partial)));
            }
        }
    }
}

#[derive(Deserialize)]
struct IncomingMessage<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<WireFault>,
}

#[derive(Deserialize)]
struct EventParams<'a> {
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct EventHead {
    seq: Seq,
    #[serde(rename = "type")]
    kind: String,
}

/// One message from the daemon.
pub(crate) enum Message {
    /// A reply to the call with this id; `None` if the daemon could not read the id.
    Reply { id: Option<u64>, outcome: Result<Box<RawValue>, WireFault> },
    /// An event of a subscription.
    Event(Box<ReceivedEvent>),
    /// A changed session, from `daemon.subscribe`.
    Session(Box<SessionNotification>),
    /// The daemon stops as planned, from `daemon.subscribe`.
    Restarting(RestartReason),
    /// A message that this version does not know.
    Other,
}

/// An event as received; parsed if this version knows its kind.
#[derive(Debug, Clone)]
pub struct ReceivedEvent {
    /// Seq of the event.
    pub seq: Seq,
    /// The event's `type`.
    pub kind: String,
    /// The JSON text exactly as the daemon sent it.
    pub raw: Box<RawValue>,
    /// The parsed event; `None` for kinds or shapes that are newer than this client.
    pub event: Option<Envelope>,
}

impl ReceivedEvent {
    /// Parses one event.
    ///
    /// # Errors
    /// The text is not an object with `seq` and `type`.
    pub fn parse(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let head: EventHead = serde_json::from_str(raw.get())?;
        let event = serde_json::from_str(raw.get()).ok();
        Ok(Self { seq: head.seq, kind: head.kind, raw: raw.to_owned(), event })
    }
}

/// Parses one line. `None` if it is not a JSON-RPC message.
pub(crate) fn parse(line: &[u8]) -> Option<Message> {
    let incoming: IncomingMessage<'_> = serde_json::from_slice(line).ok()?;
    if let Some(method) = incoming.method {
        if method == DAEMON_EVENT {
            let carried: Option<EventParams<'_>> = serde_json::from_str(incoming.params?.get()).ok();
            let event = carried.and_then(|it| serde_json::from_str(it.result.get()).ok());
            return Some(match event {
                Some(DaemonEvent::Session(event)) => Message::Session(event),
                Some(DaemonEvent::Daemon(event)) => Message::Restarting(event.reason),
                Some(DaemonEvent::Job(_) | DaemonEvent::Schedule(_)) | None => Message::Other,
            });
        }
        if method != SESSION_EVENT {
            return Some(Message::Other);
        }
        let carried: EventParams<'_> = serde_json::from_str(incoming.params?.get()).ok()?;
        return ReceivedEvent::parse(carried.result).ok().map(|event| Message::Event(Box::new(event)));
    }
    let id = incoming.id.as_ref().and_then(Value::as_u64);
    let outcome = match (incoming.error, incoming.result) {
        (Some(fault), _) => Err(fault),
        (None, Some(result)) => Ok(result.to_owned()),
        (None, None) => Ok(RawValue::NULL.to_owned()),
    };
    Some(Message::Reply { id, outcome })
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Fault(fault) => fault_words::failure(&fault),
            CallError::Closed => Self::unreachable("the daemon closed the connection"),
            CallError::Unreadable(text) => Self::internal(escape::text(&text)),
            CallError::Io(error) => Self::unreachable(format!("lost the daemon: {error}")),
            CallError::Remote(failure) if failure.is_final() => {
                Self::unreachable(failure.message).into_final()
            }
            CallError::Remote(failure) => Self::unreachable(failure.message),
        }
    }
}

/// Where a daemon listens.
#[derive(Clone, Debug)]
pub(crate) enum DaemonAddress {
    /// A socket of this machine.
    Socket(PathBuf),
    /// Another machine.
    Ssh(Box<SshRoute>),
}

impl DaemonAddress {
    /// The address for further connections to the same daemon.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Socket(path) => Self::Socket(path.clone()),
            Self::Ssh(route) => Self::Ssh(Box::new(route.again())),
        }
    }
}

/// An open connection to a daemon.
pub(crate) struct DaemonStream {
    pub(crate) read: OwnedReadHalf,
    pub(crate) write: OwnedWriteHalf,
    pub(crate) carrier: Carrier,
}

/// The program that carries a connection; none for a socket of this machine.
pub(crate) struct Carrier {
    ssh: Option<SshProcess>,
    greeting_timeout: Duration,
}

impl Carrier {
    /// Waits for the first replies of a connection. If there are none, says why, for which it ends the program.
    pub(crate) async fn greet<T>(
        &mut self,
        replies: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let error = match timeout(self.greeting_timeout, replies).await {
            Ok(Ok(replies)) => return Ok(replies),
            Ok(Err(error)) => error,
            Err(_) => no_answer(),
        };
        let Some(ssh) = self.ssh.take() else { return Err(error) };
        Err(match error {
            CallError::Fault(fault) if fault.kind() == "unsupported_version" => {
                CallError::Remote(RemoteFailure::version(ssh.host(), &fault))
            }
            lost if lost.is_lost() => CallError::Remote(ssh.into_failure().await),
            other => other,
        })
    }
}

impl DaemonStream {
    fn new(stream: UnixStream, carrier: Carrier) -> Self {
        let (read, write) = stream.into_split();
        Self { read, write, carrier }
    }

    /// Starts to connect to a daemon on another machine, and does not wait: [`Carrier::greet`] reports the failure.
    pub(crate) fn over_ssh(route: &SshRoute) -> Result<Self, CallError> {
        let (stream, ssh) = SshProcess::start(route).map_err(CallError::Remote)?;
        let greeting_timeout = match route.prompts {
            Prompts::Allowed => PROMPT_TIMEOUT,
            Prompts::Never => REMOTE_GREETING_TIMEOUT,
        };
        Ok(Self::new(stream, Carrier { ssh: Some(ssh), greeting_timeout }))
    }
}

/// Connects to a daemon. For one on another machine see [`DaemonStream::over_ssh`].
pub(crate) async fn dial(address: &DaemonAddress) -> Result<DaemonStream, CallError> {
    match address {
        DaemonAddress::Socket(path) => {
            let connecting = timeout(GREETING_TIMEOUT, UnixStream::connect(path));
            let stream = connecting.await.map_err(|_| no_answer())??;
            Ok(DaemonStream::new(stream, Carrier { ssh: None, greeting_timeout: GREETING_TIMEOUT }))
        }
        DaemonAddress::Ssh(route) => DaemonStream::over_ssh(route),
    }
}

pub(crate) fn request(id: u64, method: &str, params: &impl Serialize) -> Result<String, CallError> {
    let request = serde_json::json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let mut text = serde_json::to_string(&request).map_err(|e| invalid_data(&e.to_string()))?;
    text.push('\n');
    Ok(text)
}

/// The first two requests of a connection for a subscription.
pub(super) fn subscribe_requests<M: ApiMethod>(
    greeting: &HelloParams,
    params: &M::Params,
) -> Result<String, CallError> {
    Ok(request(1, methods::daemon::Hello::METHOD.name, greeting)? + &request(2, M::METHOD.name, params)?)
}

pub(super) fn invalid_data(what: &str) -> CallError {
    CallError::Io(io::Error::new(io::ErrorKind::InvalidData, what))
}

pub(crate) fn no_answer() -> CallError {
    CallError::Io(io::Error::new(io::ErrorKind::TimedOut, "the daemon does not answer"))
}

#[cfg(test)]
mod tests {
    use crate::connection::wire::*;

    #[tokio::test]
    async fn received_lines_are_independent_of_chunk_boundaries() {
        let (mut ours, theirs) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move {
            tokio::io::AsyncWriteExt::write_all(&mut ours, b"{\"a\":1}\n\nrest\nunfinished").await
        });
        let mut lines = Lines::new(theirs);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.expect("readable") {
            seen.push(String::from_utf8(line).expect("text"));
        }
        writer.await.expect("ran").expect("written");
        assert_eq!(seen, ["{\"a\":1}", "", "rest"]);
    }

    #[test]
    fn replies_events_and_unknown_messages_are_distinguished() {
        let check = |text: &str, expected: &str| {
            let shown = match parse(text.as_bytes()) {
                Some(Message::Reply { id, outcome: Ok(raw) }) => format!("reply {id:?} {raw}"),
                Some(Message::Reply { id, outcome: Err(fault) }) => format!("fault {id:?} {}", fault.kind()),
                Some(Message::Event(event)) => {
                    format!("event {} {} {}", event.seq, event.kind, event.event.is_some())
                }
                Some(Message::Session(event)) => format!("session {}", event.session.session_id),
                Some(Message::Restarting(reason)) => format!("restarting {reason:?}"),
                Some(Message::Other) => "other".into(),
                None => "nothing".into(),
            };
            assert_eq!(shown, expected);
        };
        check(r#"{"jsonrpc":"2.0","id":4,"result":{"a":[1]}}"#, r#"reply Some(4) {"a":[1]}"#);
        check(r#"{"jsonrpc":"2.0","id":4,"result":null}"#, "reply Some(4) null");
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x","data":{"kind":"parse_error"}}}"#,
            "fault None parse_error",
        );
        let event = |body: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session.event","params":{{"subscription":"s","result":{body}}}}}"#
            )
        };
        let session = "ses_0190f2a4-0000-7000-8000-000000000000";
        check(
            &event(&format!(r#"{{"seq":3,"session_id":"{session}","at_ms":1,"type":"turn.aborting"}}"#)),
            "event 3 turn.aborting true",
        );
        check(
            &event(&format!(r#"{{"seq":9,"session_id":"{session}","at_ms":1,"type":"moon.rose","x":1}}"#)),
            "event 9 moon.rose false",
        );
        check(r#"{"jsonrpc":"2.0","method":"daemon.event","params":{}}"#, "other");
        let stop = |kind: &str, reason: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"daemon.event","params":{{"subscription":"s","result":{{"kind":"{kind}","reason":"{reason}","later":1}}}}}}"#
            )
        };
        check(&stop("daemon.restarting", "restart"), "restarting Restart");
        check(&stop("daemon.restarting", "of a later version"), "other");
        check(&stop("daemon.dreaming", "restart"), "other");
        check("garbage", "nothing");
    }
}
