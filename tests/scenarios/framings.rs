//! The same methods in other framings: WebSocket, `Content-Length` blocks, plain HTTP.

use serde_json::{Value, json};
use soketto::handshake::{Client as Handshake, ServerResponse};
use tokio_util::compat::TokioAsyncReadCompatExt as _;

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

/// A session in the middle of "one two", and the gate that holds it.
async fn a_running_turn(daemon: &TestDaemon) -> (Session, Gate) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("count").await;
    seen.text_of(1).await;
    (session, gate)
}

fn subscribe(session: &Session) -> String {
    let params = json!({"session_id": session.id});
    json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe", "params": params}).to_string()
}

/// The text of all messages until the turn ends. The first message is the reply, the rest are events.
fn text_of(messages: &[Value]) -> String {
    let subscription = messages[0]["result"].as_str().expect("the reply comes first");
    let mut text = String::new();
    for message in &messages[1..] {
        assert_eq!(message["params"]["subscription"], json!(subscription));
        let event = &message["params"]["result"];
        if event["type"] == "message.text_delta" {
            text.push_str(event["text"].as_str().expect("a text"));
        }
    }
    text
}

fn is_last(message: &Value) -> bool {
    message["params"]["result"]["type"] == "turn.completed"
}

#[tokio::test]
async fn websocket_client_follows_a_session() {
    let daemon = TestDaemon::start().await;
    let (session, gate) = a_running_turn(&daemon).await;
    let stream = daemon.raw().await.into_stream().compat();
    let mut handshake = Handshake::new(stream, "localhost", "/");
    let answered =
        with_deadline("the handshake", || daemon.log(), handshake.handshake()).await.expect("a handshake");
    assert!(matches!(answered, ServerResponse::Accepted { .. }), "{answered:?}");
    let (mut sender, mut receiver) = handshake.into_builder().finish();
    sender.send_text(subscribe(&session)).await.expect("sent");
    sender.flush().await.expect("sent");
    let mut messages: Vec<Value> = Vec::new();
    gate.open();
    while !messages.last().is_some_and(is_last) {
        let mut bytes = Vec::new();
        let receive = receiver.receive_data(&mut bytes);
        with_deadline("a message", || daemon.log(), receive).await.expect("the socket is open");
        messages.push(serde_json::from_slice(&bytes).expect("JSON"));
    }
    assert_eq!(text_of(&messages), "one two");
}

#[tokio::test]
async fn content_length_client_follows_a_session() {
    let daemon = TestDaemon::start().await;
    let (session, gate) = a_running_turn(&daemon).await;
    gate.open();
    let body = subscribe(&session);
    let mut raw = daemon.raw().await;
    raw.send(format!("Content-Length: {}\r\n\r\n{body}", body.len())).await;
    let mut messages: Vec<Value> = Vec::new();
    while !messages.last().is_some_and(is_last) {
        let head = raw.next_text().await.expect("a header");
        let length =
            head.trim().strip_prefix("Content-Length: ").expect("a length").parse().expect("a number");
        assert_eq!(raw.next_text().await.expect("a line").trim(), "");
        messages.push(serde_json::from_slice(&raw.read_bytes(length).await).expect("JSON"));
    }
    assert_eq!(text_of(&messages), "one two");
}

#[tokio::test]
async fn http_serves_single_requests_and_health_but_no_page() {
    let daemon = TestDaemon::start().await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"daemon.status"}"#;
    let post = |headers: &str| {
        format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    for (request, status, part) in [
        ("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "200", "ok"),
        ("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "200", "ok"),
        (post(""), "200", "\"pid\""),
        (post("Origin: https://example.org\r\n"), "403", ""),
    ] {
        let mut raw = daemon.raw().await;
        raw.send(&request).await;
        let answer = String::from_utf8(raw.read_rest().await).expect("text");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(part),
            "{request} → {answer}"
        );
    }
}

#[tokio::test]
async fn cancelled_call_is_answered_and_takes_effect() {
    let config = "[permissions]\nallow = [\"Bash\"]";
    let daemon = TestDaemon::builder().config(config).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    // A command that ends some time after the request to stop.
    let stubborn = "trap '' TERM; touch ready; while true; do sleep 0.05; done";
    daemon.models.push(Step::calls([("Bash", json!({"command": stubborn}))]));
    session.submit("go").await;
    crate::support::wait::poll_until("the command", String::new, || {
        daemon.workspace().join("ready").exists().then_some(())
    })
    .await;
    let mut raw = daemon.raw().await;
    raw.line(
        json!({"jsonrpc": "2.0", "id": "a", "method": "session.abort", "params": {"session_id": session.id}}),
    )
    .await;
    raw.line(json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a"}})).await;
    let reply = raw.next().await.expect("a reply");
    let refusal = crate::support::client::Refusal::from_error(&reply["error"]);
    assert_eq!((&reply["id"], refusal.code, refusal.kind.as_str()), (&json!("a"), -32800, "cancelled"));
    seen.turn_ends("aborted").await;
    let reply = raw.send_and_receive(json!({"jsonrpc": "2.0", "id": 2, "method": "daemon.status"})).await;
    assert!(reply["result"].is_object(), "the cancelled call has no other reply: {reply}");
}
