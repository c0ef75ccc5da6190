//! The messages of the protocol: one JSON text per line. Calls run at the same time, so that a waiting call
//! does not delay other calls.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::tools::{self, SessionScope};
use crate::connection::connector::Connector;
use crate::failure::Failure;

/// Revisions of the protocol, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Maximum length of a message in bytes.
const MAX_MESSAGE_BYTES: u64 = 4 << 20;
/// Maximum number of calls at the same time.
const MAX_CALLS: usize = 32;
/// How long running calls may take after the end of the input. A client that has closed its sending side may
/// still read.
const END_TIMEOUT: Duration = Duration::from_secs(30);

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

const INSTRUCTIONS: &str = "Tools to hand work to coding sessions on this machine. session_start begins one, \
    session_wait waits until it is done or needs a user. Permission requests are answered by the user, never here.";

/// Serves until the input has ended and every call that was running then has its reply. With `all_sessions`,
/// the tools reach every session of the user, not only those that they started.
pub(crate) async fn serve(reach: &Connector, all_sessions: bool) -> Result<(), Failure> {
    let reachable = SessionScope { all: all_sessions, started: Mutex::default() };
    serve_streams(reach, &reachable, tokio::io::stdin(), tokio::io::stdout()).await
}

async fn serve_streams(
    reach: &Connector,
    reachable: &SessionScope,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(), Failure> {
    let mut input = BufReader::new(input);
    let mut calls = FuturesUnordered::new();
    let mut stops: HashMap<String, oneshot::Sender<()>> = HashMap::new();
    let mut line = Vec::new();
    let mut end: Option<Instant> = None;
    while end.is_none() || !calls.is_empty() {
        let reply = tokio::select! {
            Some((id, reply)) = calls.next(), if !calls.is_empty() => {
                stops.remove(&id);
                reply
            }
            // If another branch of the select is faster, `line` keeps a partial line.
            () = tokio::time::sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return Ok(()),
            read = read_line(&mut input, &mut line), if end.is_none() => {
                if !read? {
                    end = Some(Instant::now() + END_TIMEOUT);
                }
                let text = std::mem::take(&mut line);
                match parse_message(&text, stops.len()) {
                    Message::Reply(reply) => Some(reply),
                    Message::Cancel(id) => {
                        // Dropping the sender ends the call without a reply.
                        stops.remove(&id);
                        None
                    }
                    Message::Call { id, name, arguments } => {
                        let (stop, stopped) = oneshot::channel::<()>();
                        let key = id.to_string();
                        stops.insert(key.clone(), stop);
                        calls.push(async move {
                            let reply = tokio::select! {
                                result = tools::call(reach, reachable, &name, arguments) => Some(call_reply(&id, result)),
                                _ = stopped => None,
                            };
                            (key, reply)
                        });
                        None
                    }
                    Message::Nothing => None,
                }
            }
        };
        if let Some(reply) = reply {
            output.write_all(format!("{reply}\n").as_bytes()).await?;
            output.flush().await?;
        }
    }
    Ok(())
}

/// Reads up to the end of a line. Returns `false` at the end of the input, where `line` may contain a last
/// line. Cancel-safe.
async fn read_line(
    input: &mut (impl tokio::io::AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let room = MAX_MESSAGE_BYTES.saturating_sub(line.len() as u64);
    input.take(room).read_until(b'\n', line).await?;
    if line.ends_with(b"\n") {
        return Ok(true);
    }
    if line.len() as u64 >= MAX_MESSAGE_BYTES {
        return Err(Failure::usage(format!("a message has more than {} MiB", MAX_MESSAGE_BYTES >> 20)));
    }
    Ok(false)
}

/// The meaning of a line.
enum Message {
    Reply(Value),
    Call { id: Value, name: String, arguments: Value },
    Cancel(String),
    Nothing,
}

fn parse_message(line: &[u8], running: usize) -> Message {
    if line.trim_ascii().is_empty() {
        return Message::Nothing;
    }
    let Ok(message) = serde_json::from_slice::<Value>(line) else {
        return Message::Reply(error_reply(&Value::Null, PARSE_ERROR, "the line is not JSON"));
    };
    let (method, params) = (message["method"].as_str(), &message["params"]);
    let Some(id) = message.get("id") else {
        return match method {
            Some("notifications/cancelled") => Message::Cancel(params["requestId"].to_string()),
            _ => Message::Nothing,
        };
    };
    let Some(method) = method else {
        return Message::Reply(error_reply(id, INVALID_REQUEST, "there is no method"));
    };
    let result = match method {
        "initialize" => {
            let wanted = params["protocolVersion"].as_str().unwrap_or_default();
            let revision = REVISIONS.iter().find(|revision| **revision == wanted).unwrap_or(&REVISIONS[0]);
            json!({
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "agentctl", "version": env!("CARGO_PKG_VERSION")},
                "instructions": INSTRUCTIONS,
            })
        }
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::list() }),
        "tools/call" => {
            let Some(name) = params["name"].as_str().filter(|name| tools::exists(name)) else {
                return Message::Reply(error_reply(id, INVALID_PARAMS, "there is no such tool"));
            };
            if running >= MAX_CALLS {
                return Message::Reply(error_reply(id, INVALID_REQUEST, "too many calls at the same time"));
            }
            let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
            return Message::Call { id: id.clone(), name: name.to_owned(), arguments };
        }
        other => {
            return Message::Reply(error_reply(id, METHOD_NOT_FOUND, &format!("there is no method {other}")));
        }
    };
    Message::Reply(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error_reply(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The reply to a call. A failure is a result, so that the calling model sees it.
fn call_reply(id: &Value, result: Result<Value, Failure>) -> Value {
    let result = match result {
        Ok(value) => json!({
            "content": [{"type": "text", "text": value.to_string()}],
            "structuredContent": value,
        }),
        Err(failure) => json!({"content": [{"type": "text", "text": failure.message}], "isError": true}),
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_daemon::FakeDaemon;

    fn all_sessions() -> SessionScope {
        SessionScope { all: true, started: Mutex::default() }
    }

    #[tokio::test]
    async fn calls_get_replies_after_end_of_input() {
        let fake = FakeDaemon::start(|_, _, _| {
            Ok(json!({"session": {"session_id": "ses_1", "title": "t", "state": "idle", "cwd": "/w"}}))
        });
        let call = |id: u64| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "session_status", "arguments": {"session_id": "ses_1"}}})
        };
        // The last line has no line break.
        let input = format!("{}\n{}", call(1), call(2));
        let mut output = Vec::new();
        serve_streams(&fake.connector(), &all_sessions(), input.as_bytes(), &mut output)
            .await
            .expect("served");
        let mut ids: Vec<Value> = String::from_utf8(output)
            .expect("text")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
            .collect();
        ids.sort_by_key(Value::as_u64);
        assert_eq!(ids, [json!(1), json!(2)]);
    }

    #[tokio::test]
    async fn served_messages_are_answered_by_the_protocol() {
        let fake = FakeDaemon::start(|_, method, params| {
            assert_eq!((method, &params["session_id"]), ("session.get", &json!("ses_1")));
            Ok(json!({"session": {"session_id": "ses_1", "title": "t", "state": "idle", "cwd": "/w"}}))
        });
        let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
            "params": {"name": "session_status", "arguments": {"session_id": "ses_1"}}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover"}),
            call,
            json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "approve"}}),
        ];
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect::<String>() + "not JSON\n";
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(input.as_bytes()).await.expect("written");
        let (reader, mut writer) = tokio::io::split(server);
        let reach = fake.connector();
        let mut replies = HashMap::new();
        let mut lines = BufReader::new(client).lines();
        let all = all_sessions();
        let work = serve_streams(&reach, &all, reader, &mut writer);
        tokio::pin!(work);
        while replies.len() < 5 {
            tokio::select! {
                _ = &mut work => panic!("it ended"),
                line = lines.next_line() => {
                    let reply: Value = serde_json::from_str(&line.expect("read").expect("a line")).expect("JSON");
                    replies.insert(reply["id"].to_string(), reply);
                }
            }
        }
        assert_eq!(replies["1"]["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(replies["2"]["error"]["code"], METHOD_NOT_FOUND);
        assert_eq!(replies["3"]["result"]["structuredContent"]["state"], "idle");
        assert_eq!(replies["4"]["error"]["code"], INVALID_PARAMS);
        assert_eq!(replies["null"]["error"]["code"], PARSE_ERROR);
    }
}
