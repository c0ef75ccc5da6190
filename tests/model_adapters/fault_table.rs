//! The outcome of every provider failure in all three APIs: a fault kind, in bounded time, with a text
//! that says what to check. The table is part of the reference (`proto-docs/models.md`).

use std::collections::BTreeSet;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::support::printed;

/// How long a provider may be silent in these tests.
const IDLE_TIMEOUT: ConfigDuration = ConfigDuration::from_millis(300);

/// The behaviour of a row's server.
enum ServerBehaviour {
    /// Answers with this step.
    Step(Box<Step>),
    /// Answers with one step for each API.
    Each(fn(ProviderKind) -> Step),
    /// Sends one line without an end, of this many mebibytes.
    EndlessLine(usize),
}

fn whole_answer(kind: ProviderKind, text: &[u8]) -> Vec<u8> {
    let (before, after) = match kind {
        ProviderKind::Anthropic => (
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
             data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"",
            "\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n",
        ),
        ProviderKind::OpenAiChat => (
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"",
            "\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        _ => (
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"",
            "\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n",
        ),
    };
    [before.as_bytes(), text, after.as_bytes()].concat()
}

/// An answer that begins correctly and contains `damage` before its end.
fn damaged_answer(kind: ProviderKind, damage: &str) -> Vec<u8> {
    let answer = String::from_utf8(whole_answer(kind, b"some words")).expect("text");
    let (before, after) = answer.split_once("\n\n").expect("events");
    format!("{before}\n\n{damage}{after}").into_bytes()
}

fn rows(shut: &Gate) -> Vec<(&'static str, ServerBehaviour)> {
    let status = |status, kind: &str, message: &str| {
        ServerBehaviour::Step(Box::new(Step::error(status, kind, message)))
    };
    let slow = |step: Step| ServerBehaviour::Step(Box::new(step.header("retry-after", "2")));
    let body =
        |status, kind: &str, body: &[u8]| ServerBehaviour::Step(Box::new(Step::raw(status, kind, body)));
    const EVENTS: &str = "text/event-stream";
    vec![
        ("status 400", status(400, "invalid_request_error", "max_tokens is too large")),
        ("status 401", status(401, "authentication_error", "invalid key")),
        ("status 403", status(403, "permission_error", "not for you")),
        ("status 404", status(404, "not_found_error", "no such model")),
        ("status 408", body(408, "text/plain", b"")),
        ("status 413", status(413, "request_too_large", "request exceeds the maximum size")),
        ("status 429", status(429, "rate_limit_error", "slow down")),
        ("status 429, `Retry-After: 2`", slow(Step::error(429, "rate_limit_error", "slow down"))),
        ("status 500", status(500, "api_error", "oops")),
        ("status 502, a web page", body(502, "text/html", b"<html>Bad gateway</html>")),
        ("status 529", status(529, "overloaded_error", "Overloaded")),
        (
            "status 307",
            ServerBehaviour::Step(Box::new(
                Step::raw(307, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            )),
        ),
        ("status 200, a web page", body(200, "text/html", b"<!doctype html><title>Sign in</title>")),
        ("status 200, nothing", body(200, EVENTS, b"")),
        ("status 200, half a JSON object", body(200, "application/json", b"{\"id\":")),
        ("an event that is no JSON", body(200, EVENTS, b"data: {oops\n\n")),
        (
            "an event that is no JSON, inside the answer",
            ServerBehaviour::Each(|kind| Step::raw(200, EVENTS, damaged_answer(kind, "data: {oops\n\n"))),
        ),
        (
            "half an event inside the answer",
            ServerBehaviour::Each(|kind| Step::raw(200, EVENTS, damaged_answer(kind, "data: {\"id\":\n\n"))),
        ),
        (
            "an event of another program inside the answer",
            ServerBehaviour::Each(|kind| {
                Step::raw(200, EVENTS, damaged_answer(kind, "data: upstream error 1\n\n"))
            }),
        ),
        (
            "`insufficient_quota` inside the answer",
            ServerBehaviour::Step(Box::new(
                Step::text("some words").break_off("insufficient_quota", "no credit"),
            )),
        ),
        ("random bytes", body(200, EVENTS, b"\x00\xff\x17\x99 \x80zz\n\x01")),
        ("a line of 100 MB", ServerBehaviour::EndlessLine(100)),
        (
            "an error inside the answer",
            ServerBehaviour::Step(Box::new(Step::text("some words").break_off("overloaded_error", "sorry"))),
        ),
        (
            "a connection that breaks inside the answer",
            ServerBehaviour::Step(Box::new(Step::text("some words here").cut_after(350))),
        ),
        ("silence before the answer", ServerBehaviour::Step(Box::new(Step::text("never").hold(shut)))),
        (
            "silence inside the answer",
            ServerBehaviour::Step(Box::new(Step::text("some words here").hold_after(1, shut))),
        ),
        ("one byte at a time", ServerBehaviour::Step(Box::new(Step::text("some words").drip(1)))),
        (
            "bytes that are not UTF-8 in a text",
            ServerBehaviour::Each(|kind| Step::raw(200, EVENTS, whole_answer(kind, b"a\xffb"))),
        ),
    ]
}

/// A server that sends the endless line to every client.
async fn serve_endless_line(mebibytes: usize) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let task = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut asked = [0; 16 << 10];
            let _ = socket.read(&mut asked).await;
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
            let _ = socket.write_all(head).await;
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..mebibytes {
                if socket.write_all(&piece).await.is_err() {
                    break;
                }
            }
        }
    });
    (url, task)
}

/// The outcome as text: the kind, whether it is retried, and the message. Ports are replaced, because
/// they differ each time.
fn describe(outcome: Result<ModelReply, ModelFault>) -> [String; 3] {
    match outcome {
        Ok(reply) => {
            let text: String = reply
                .content
                .iter()
                .map(|block| match block {
                    ReplyBlock::Text(text) => text.as_str(),
                    _ => "?",
                })
                .collect();
            ["(none)".into(), "no".into(), format!("the answer: “{text}”")]
        }
        Err(fault) => {
            let again = match (fault.kind.is_retryable(), fault.retry_after_ms) {
                (false, _) => "no".into(),
                (true, None) => "yes".into(),
                (true, Some(ms)) => format!("yes, after {} s", ms / 1_000),
            };
            [format!("`{}`", fault.kind.name()), again, fault.message]
        }
    }
}

#[tokio::test]
async fn failure_table_matches_document_for_every_api() {
    let shut = Gate::new();
    let mut table = vec![
        "| what happens | kind | tried again | what is read |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    let mut servers = Vec::new();
    for kind in ALL {
        let server = ModelServer::start().await;
        let limited = Provider { first_byte_timeout: Some(IDLE_TIMEOUT), ..provider(kind, &server) };
        let models = models_with(limited, |settings| settings.retry.idle_timeout = IDLE_TIMEOUT);
        servers.push((kind, server, models));
    }
    for (name, does) in rows(&shut) {
        let mut seen: [BTreeSet<String>; 3] = Default::default();
        for (kind, server, models) in &servers {
            let outcome = match &does {
                ServerBehaviour::Step(step) => {
                    server.push((**step).clone());
                    call(models, &hello()).await.1
                }
                ServerBehaviour::Each(step) => {
                    server.push(step(*kind));
                    call(models, &hello()).await.1
                }
                ServerBehaviour::EndlessLine(mebibytes) => {
                    let (url, task) = serve_endless_line(*mebibytes).await;
                    let endless = Provider { base_url: Some(url), ..provider(*kind, server) };
                    let outcome = call(&models_with(endless, |_| {}), &hello()).await.1;
                    task.abort();
                    outcome
                }
            };
            for (all, one) in seen.iter_mut().zip(describe(outcome)) {
                all.insert(one);
            }
        }
        let [kinds, again, read] = seen;
        assert_eq!((kinds.len(), again.len()), (1, 1), "{name}: the APIs differ: {kinds:?} {again:?}");
        let join =
            |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(" / ").replace('|', "\\|");
        table.push(format!("| {name} | {} | {} | {} |", join(kinds), join(again), join(read)));
    }
    for (_, server, _) in &servers {
        server.assert_no_breach();
    }
    printed::check("models.md", "failures of an answer", &table);
}
