//! Tests that the same methods work through every framing.

use bytes::BytesMut;
use serde_json::{Value, json};
use soketto::handshake::{Client as Handshake, ServerResponse};
use soketto::{Incoming, Receiver, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

use super::super::Limits;
use super::support::*;

fn call(id: u32, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

fn block(body: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Bodies of a stream of blocks.
fn bodies(bytes: &str) -> Vec<Value> {
    let mut buffer = BytesMut::from(bytes.as_bytes());
    let mut blocks = super::super::framing::content_length::BlockDecoder::new(1 << 20);
    let mut found = vec![];
    while let Some(super::super::framing::Frame::Message(body)) = blocks.next(&mut buffer).unwrap() {
        found.push(serde_json::from_slice(&body).unwrap());
    }
    assert!(buffer.is_empty(), "left over: {buffer:?}");
    found
}

#[tokio::test]
async fn content_length_requests_are_answered_in_blocks() {
    let fixture = ServerFixture::with(Limits { max_message_bytes: 200, ..Limits::default() });
    let text = [
        block(&call(1, "echo", json!(["ü"]))),
        block("nonsense"),
        block(&call(9, "echo", json!(["x".repeat(300)]))),
        block(&call(2, "later", json!([2]))),
    ];
    let mut replies = bodies(&fixture.exchange(text.concat().as_bytes()).await);
    assert_eq!(replies.remove(0)["result"], json!(["ü"]));
    assert_eq!(replies.remove(0)["error"]["data"]["kind"], "parse_error");
    assert_eq!(replies.remove(0)["error"]["data"]["kind"], "invalid_request");
    assert_eq!(replies.remove(0)["result"], json!([2]));

    let replies = bodies(&fixture.exchange(b"Content-Length: many\r\n\r\n{}").await);
    assert_eq!(replies[0]["error"]["data"]["kind"], "parse_error");
}

#[tokio::test]
async fn content_length_framing_carries_subscriptions() {
    let fixture = ServerFixture::new();
    let replies = bodies(&fixture.exchange(block(&call(1, "count", json!([3]))).as_bytes()).await);
    assert_eq!(replies.len(), 4);
    for (n, event) in replies[1..].iter().enumerate() {
        assert_eq!(event["params"], json!({"subscription": replies[0]["result"], "result": n}));
    }
}

type Socket = Compat<UnixStream>;

async fn upgrade(fixture: &ServerFixture) -> (Sender<Socket>, Receiver<Socket>) {
    let mut handshake = Handshake::new(fixture.raw().await.compat(), "localhost", "/any/path");
    match with_deadline("the handshake", handshake.handshake()).await.unwrap() {
        ServerResponse::Accepted { .. } => {}
        other => panic!("{other:?}"),
    }
    handshake.into_builder().finish()
}

async fn next(receiver: &mut Receiver<Socket>) -> Value {
    let mut message = vec![];
    with_deadline("a message", receiver.receive_data(&mut message)).await.unwrap();
    serde_json::from_slice(&message).unwrap()
}

#[tokio::test]
async fn websocket_carries_calls_subscriptions_pings_and_close() {
    let fixture = ServerFixture::with(Limits { max_message_bytes: 70_000, ..Limits::default() });
    let (mut sender, mut receiver) = upgrade(&fixture).await;
    sender.send_text(call(1, "echo", json!(["text"]))).await.unwrap();
    sender.send_binary(call(2, "echo", json!(["binary"]))).await.unwrap();
    sender.flush().await.unwrap();
    assert_eq!(next(&mut receiver).await["result"], json!(["text"]));
    assert_eq!(next(&mut receiver).await["result"], json!(["binary"]));

    // The three sizes need lengths of one, two and eight bytes.
    for size in [10, 1000, 66_000] {
        sender.send_text(call(1, "echo", json!(["x".repeat(size)]))).await.unwrap();
        sender.flush().await.unwrap();
        assert_eq!(next(&mut receiver).await["result"][0].as_str().unwrap().len(), size);
    }

    sender.send_text(call(1, "echo", json!(["x".repeat(70_000)]))).await.unwrap();
    sender.send_text("nonsense").await.unwrap();
    sender.flush().await.unwrap();
    assert_eq!(next(&mut receiver).await["error"]["data"]["kind"], "invalid_request");
    assert_eq!(next(&mut receiver).await["error"]["data"]["kind"], "parse_error");

    sender.send_ping(b"hello"[..].try_into().unwrap()).await.unwrap();
    sender.flush().await.unwrap();
    match with_deadline("a pong", receiver.receive(&mut vec![])).await.unwrap() {
        Incoming::Pong(payload) => assert_eq!(payload, b"hello"),
        other => panic!("{other:?}"),
    }

    sender.send_text(call(5, "count", json!([2]))).await.unwrap();
    sender.flush().await.unwrap();
    let id = next(&mut receiver).await["result"].clone();
    for n in 0..2 {
        assert_eq!(next(&mut receiver).await["params"], json!({"subscription": id, "result": n}));
    }

    let mut raw = raw_upgrade(&fixture).await;
    raw.write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe8]).await.unwrap();
    let mut goodbye = vec![];
    with_deadline("the goodbye", raw.read_to_end(&mut goodbye)).await.unwrap();
    assert_eq!(goodbye, [0x88, 0x02, 0x03, 0xe8]);
}

async fn raw_upgrade(fixture: &ServerFixture) -> UnixStream {
    let mut socket = fixture.raw().await;
    let request = "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(with_deadline("the head", socket.read_u8()).await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    socket
}

#[tokio::test]
async fn websocket_protocol_violation_closes_connection() {
    let fixture = ServerFixture::new();
    for bytes in [&[0x81, 0x01, b'x'][..], &[0xff, 0xff], &[0x80, 0x80, 0, 0, 0, 0]] {
        let mut socket = raw_upgrade(&fixture).await;
        socket.write_all(bytes).await.unwrap();
        let mut answer = vec![];
        with_deadline("the end", socket.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, [0x88, 0x02, 0x03, 0xea]);
    }
}

#[tokio::test]
async fn plain_http_requests_get_expected_status() {
    let fixture = ServerFixture::with(Limits { max_message_bytes: 1000, ..Limits::default() });
    let post =
        |body: &str| format!("POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let check = async |request: &str, status: &str, contains: &str| {
        // The client keeps its writing side open, as HTTP clients do.
        let mut socket = fixture.raw().await;
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        with_deadline("the answer", socket.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?} gave {answer:?}");
        assert!(answer.contains(contains), "{request:?} gave {answer:?}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if let Some(length) = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
        }
    };
    check("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200", "ok").await;
    check("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", "200", "ok").await;
    check("GET /elsewhere HTTP/1.1\r\n\r\n", "404", "").await;
    check("GET /healthz HTTP/1.1\r\nOrigin: https://example.org\r\n\r\n", "403", "").await;
    check("PUT / HTTP/1.1\r\n\r\n", "405", "").await;
    check("GET rubbish\r\n\r\n", "400", "").await;
    check(&post(&call(1, "echo", json!(["here"]))), "200", r#""result":["here"]"#).await;
    check(&post(&call(1, "later", json!(["here"]))), "200", r#""result":["here"]"#).await;
    check(&post("[1]"), "200", r#"[{"jsonrpc":"2.0","id":null,"error""#).await;
    check(&post("nonsense"), "200", "parse_error").await;
    check(&post(r#"{"jsonrpc":"2.0","method":"echo"}"#), "204", "").await;
    check(&post(&"x".repeat(1001)), "413", "1000").await;
    check(&post(&call(1, "count", json!([1]))), "200", "stays open").await;
    let waits = post(&call(1, "echo", json!([]))).replace("Host: x", "Expect: 100-continue");
    let (head, body) = waits.split_once("\r\n\r\n").unwrap();
    let mut socket = fixture.raw().await;
    socket.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let mut word = [0; 25];
    with_deadline("the word to go on", socket.read_exact(&mut word)).await.unwrap();
    assert_eq!(&word, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    with_deadline("the answer", socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn http_head_sent_byte_by_byte_is_answered() {
    let fixture = ServerFixture::new();
    let mut socket = fixture.raw().await;
    for byte in b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" {
        socket.write_all(&[*byte]).await.unwrap();
    }
    let mut answer = String::new();
    with_deadline("the answer", socket.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
}

#[tokio::test]
async fn every_framing_accepts_single_byte_chunks() {
    let fixture = ServerFixture::new();
    let body = call(1, "echo", json!(["slowly"]));
    let mut line = fixture.raw().await;
    let mut blocks = fixture.raw().await;
    let mut frames = raw_upgrade(&fixture).await;
    let length = u8::try_from(body.len()).unwrap();
    assert!(length < 126);
    // A mask of zeros leaves the text unchanged.
    let frame = [&[0x81, 0x80 | length, 0, 0, 0, 0][..], body.as_bytes()].concat();
    for (socket, bytes) in [
        (&mut line, format!("{body}\n").into_bytes()),
        (&mut blocks, block(&body).into_bytes()),
        (&mut frames, frame),
    ] {
        for byte in bytes {
            socket.write_all(&[byte]).await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut answer = Vec::new();
        while !String::from_utf8_lossy(&answer).contains(r#"["slowly"]"#) {
            answer.push(with_deadline("an answer", socket.read_u8()).await.unwrap());
        }
    }
}
