//! Tests of the client against a scripted daemon.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use api::params::NoParams;

use crate::connection::client::*;
use crate::fake_daemon::{FakeDaemon, SESSION, text_delta};

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

fn session() -> SessionId {
    SESSION.parse().expect("an id")
}

#[tokio::test]
async fn client_calls_return_replies_faults_or_disconnect() {
    let mut fake = FakeDaemon::start(|_, method, params| match method {
        "echo" | "daemon.status" => Ok(params.clone()),
        _ => Err(json!({"code": -32002, "message": "no such thing", "data": {"kind": "not_found"}})),
    });
    let client = Client::connect(&fake.socket, "tester").await.expect("connected");
    assert_eq!(client.hello().version, "9.9.9");
    let many = (0..50).map(|n| {
        let client = client.clone();
        async move { (n, client.call_named("echo", &json!({"n": n})).await.expect("a reply")["n"].clone()) }
    });
    for (n, echoed) in futures_util::future::join_all(many).await {
        assert_eq!(echoed, json!(n));
    }
    match client.call_named("nothing", &json!({})).await {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind(), "not_found"),
        other => panic!("expected a fault, got {other:?}"),
    }
    match client.call::<methods::daemon::Status>(&NoParams {}).await {
        Err(CallError::Unreadable(text)) => {
            assert!(text.contains("missing field `version`") && text.ends_with("update agentctl"), "{text}");
        }
        other => panic!("expected a complaint, got {other:?}"),
    }
    fake.restart(|_, _, _| Ok(Value::Null)).await;
    let ended = timeout(WAIT_TIMEOUT, client.call_named("echo", &json!({}))).await.expect("in time");
    assert!(matches!(ended, Err(CallError::Closed)), "{ended:?}");
    assert!(client.is_closed());
}

#[tokio::test]
async fn refused_hello_is_reported_to_user() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s");
    let listener = tokio::net::UnixListener::bind(&path).expect("bound");
    let refusing = async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32016, "message": "only 7",
                             "data": {"kind": "unsupported_version"}}});
        stream.write_all(format!("{refusal}\n").as_bytes()).await.expect("written");
        stream
    };
    let (outcome, _stream) = tokio::join!(Client::connect(&path, "tester"), refusing);
    assert!(matches!(outcome, Err(CallError::Fault(fault)) if fault.kind() == "unsupported_version"));
}

#[tokio::test]
async fn subscription_starts_after_cursor_and_follows() {
    let fake = FakeDaemon::start(|_, _, _| Ok(Value::Null));
    fake.journal.push([text_delta("a"), text_delta("b"), json!({"type": "moon.rose"})]);
    let client = Client::connect(&fake.socket, "tester").await.expect("connected");
    let mut events = client.subscribe(session(), 1).await.expect("subscribed");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let event = timeout(WAIT_TIMEOUT, events.next()).await.expect("in time").expect("an event");
        seen.push((event.seq, event.kind, event.event.is_some()));
    }
    fake.journal.push([text_delta("c")]);
    let event = timeout(WAIT_TIMEOUT, events.next()).await.expect("in time").expect("an event");
    seen.push((event.seq, event.kind, event.event.is_some()));
    assert_eq!(
        seen,
        [
            (2, "message.text_delta".to_string(), true),
            (3, "moon.rose".to_string(), false),
            (4, "message.text_delta".to_string(), true),
        ]
    );
    assert_eq!(events.last_seq(), 4);
}

#[tokio::test]
async fn slow_event_reader_does_not_block_replies() {
    let fake = FakeDaemon::start(|_, _, params| Ok(params.clone()));
    let long = Arc::new("x".repeat(60_000));
    fake.journal.push((0..200).map(|_| text_delta(&long)));
    let client = Client::connect(&fake.socket, "tester").await.expect("connected");
    let mut events = client.subscribe(session(), 0).await.expect("subscribed");
    // Twelve megabytes of events wait for a subscriber that does not read. Calls still complete.
    for n in 0..20 {
        let reply: Value = timeout(WAIT_TIMEOUT, client.call_named("echo", &json!({"n": n})))
            .await
            .expect("in time")
            .expect("a reply");
        assert_eq!(reply["n"], n);
    }
    for seq in 1..=200 {
        assert_eq!(timeout(WAIT_TIMEOUT, events.next()).await.expect("in time").expect("an event").seq, seq);
    }
}
