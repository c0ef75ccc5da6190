//! Tests that requests over a limit get an error and do not affect other clients.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::Limits;
use super::support::*;

fn kind(reply: &Value) -> &str {
    reply["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("{reply}"))
}

#[tokio::test]
async fn line_over_limit_is_refused_and_skipped() {
    let fixture = ServerFixture::with(Limits { max_message_bytes: 10_000, ..Limits::default() });
    let mut client = fixture.connect().await;
    for size in [10_001, 300_000, 3_000_000] {
        client.send("x".repeat(size)).await;
        let reply = client.next().await;
        assert_eq!((kind(&reply), &reply["id"]), ("invalid_request", &Value::Null));
        assert!(reply["error"]["message"].as_str().unwrap().contains("10000"), "{reply}");
        client.send("\n").await;
        assert_eq!(client.call("echo", json!([size])).await["result"], json!([size]));
    }
    let fits = json!(["x".repeat(9_000)]);
    assert_eq!(client.call("echo", fits.clone()).await["result"], fits);
}

#[tokio::test]
async fn batch_size_and_nesting_are_limited() {
    let limits = Limits { max_batch: 3, max_depth: 10, ..Limits::default() };
    let fixture = ServerFixture::with(limits);
    let mut client = fixture.connect().await;
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#;
    client.send(format!("[{one},{one},{one},{one}]\n")).await;
    let reply = client.next().await;
    assert!(reply.is_object() && reply["id"].is_null());
    assert_eq!(kind(&reply), "invalid_request");

    let mut deep = json!([]);
    for _ in 0..10 {
        deep = json!([deep]);
    }
    assert_eq!(kind(&client.call("echo", deep.clone()).await), "invalid_request");
    assert_eq!(client.call("echo", deep[0].clone()).await["result"], deep[0]);
}

#[tokio::test]
async fn reply_over_limit_becomes_error() {
    let fixture = ServerFixture::with(Limits { max_response_bytes: 1000, ..Limits::default() });
    let mut client = fixture.connect().await;
    let reply = client.call("big", json!([2000])).await;
    assert_eq!((kind(&reply), &reply["id"]), ("internal", &json!(1)));
    assert!(reply["error"]["message"].as_str().unwrap().contains("1000"));
    let one = r#"{"jsonrpc":"2.0","id":1,"method":"big","params":[600]}"#;
    client.send(format!("[{one},{one}]\n")).await;
    let reply = client.next().await;
    assert_eq!(reply[0]["result"].as_str().unwrap().len(), 600);
    assert_eq!(kind(&reply[1]), "internal");
}

#[tokio::test]
async fn calls_over_in_flight_limit_wait_and_are_answered() {
    let fixture = ServerFixture::with(Limits { max_in_flight: 4, ..Limits::default() });
    let (mut client, mut other) = (fixture.connect().await, fixture.connect().await);
    for id in 0..20 {
        client.begin(id, "wait", json!([])).await;
    }
    until("four to begin", || fixture.record.started_calls.load(Ordering::SeqCst) == 4).await;
    assert_eq!(other.call("echo", json!([])).await["id"], 1);
    assert_eq!(fixture.record.started_calls.load(Ordering::SeqCst), 4);
    fixture.record.gate.0.add_permits(20);
    let mut ids = vec![];
    for _ in 0..20 {
        ids.push(client.next().await["id"].as_u64().unwrap());
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn batch_over_in_flight_limit_is_refused_partly() {
    let fixture = ServerFixture::with(Limits { max_in_flight: 2, ..Limits::default() });
    let calls: Vec<_> =
        (0..4).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "later", "params": [id]})).collect();
    let replies = fixture.lines(Value::from(calls).to_string()).await;
    assert_eq!(replies[0][1]["result"], json!([1]));
    for sent_back in &replies[0].as_array().unwrap()[2..] {
        assert_eq!(sent_back["error"]["code"], -32001);
        let data = json!({"kind": "overloaded", "retryable": true, "retry_after_ms": 250});
        assert_eq!(sent_back["error"]["data"], data);
    }
}

#[tokio::test]
async fn large_calls_wait_for_in_flight_bytes() {
    let fixture = ServerFixture::with(Limits { max_in_flight_bytes: 64 << 10, ..Limits::default() });
    let mut client = fixture.connect().await;
    let heavy = json!(["x".repeat(50_000)]);
    client.begin(1, "wait", heavy.clone()).await;
    client.begin(2, "wait", heavy.clone()).await;
    until("one to begin", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    fixture.record.gate.0.add_permits(1);
    assert_eq!(client.next().await["id"], 1);
    // The message is larger than the total limit, so it passes alone.
    fixture.record.gate.0.add_permits(2);
    assert_eq!(client.next().await["id"], 2);
    client.begin(3, "wait", json!(["x".repeat(500_000)])).await;
    assert_eq!(client.next().await["id"], 3);
}

#[tokio::test]
async fn connection_over_limit_is_refused_with_error() {
    let fixture = ServerFixture::with(Limits { max_connections: 2, ..Limits::default() });
    let (mut one, mut two) = (fixture.connect().await, fixture.connect().await);
    one.call("echo", json!([])).await;
    two.call("echo", json!([])).await;
    assert_eq!(fixture.serving.connections(), 2);
    let mut three = fixture.connect().await;
    let reply = three.next().await;
    assert_eq!((reply["error"]["code"].as_i64(), kind(&reply)), (Some(-32001), "overloaded"));
    assert_eq!(three.next().await, Value::Null);
    assert_eq!(one.call("echo", json!([])).await["id"], 1);
    drop(two);
    until("a place", || fixture.serving.connections() == 1).await;
    with_deadline("a place", async {
        while fixture.connect().await.call("echo", json!([])).await["id"] != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn silent_and_slow_connections_time_out() {
    let fixture = ServerFixture::with(Limits {
        first_byte_timeout: Duration::from_millis(300),
        half_frame_timeout: Duration::from_millis(300),
        ..Limits::default()
    });
    let mut silent = fixture.connect().await;
    assert_eq!(silent.next().await, Value::Null);

    let mut half = fixture.connect().await;
    half.send(r#"{"jsonrpc":"2.0","#).await;
    assert_eq!(kind(&half.next().await), "parse_error");
    assert_eq!(half.next().await, Value::Null);

    let mut head = fixture.raw().await;
    head.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut answer = String::new();
    with_deadline("the answer", head.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");

    let mut word = fixture.raw().await;
    word.write_all(b"G").await.unwrap();
    assert_eq!(with_deadline("the end", word.read(&mut [0])).await.unwrap(), 0);

    // Silence between messages is not an error.
    let mut client = fixture.connect().await;
    client.call("echo", json!([])).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(client.call("echo", json!([])).await["id"], 1);
}

#[tokio::test]
async fn client_not_reading_replies_blocks_only_itself() {
    let fixture = ServerFixture::with(Limits { outbox_bytes: 64 << 10, ..Limits::default() });
    let (read, write) = fixture.raw().await.into_split();
    let greedy = tokio::spawn(async move {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"big","params":[10000]}"#.to_owned() + "\n";
        let mut sent = 0usize;
        loop {
            match tokio::time::timeout(Duration::from_millis(300), write.writable()).await {
                Ok(_) => sent += write.try_write(call.as_bytes()).unwrap_or(0),
                Err(_) => return (sent, write),
            }
        }
    });
    let mut other = fixture.connect().await;
    for _ in 0..100 {
        assert_eq!(other.call("later", json!([1])).await["result"], json!([1]));
    }
    // Back-pressure stopped the client long before its data could fill the memory.
    let (sent, write) = with_deadline("the greedy one to be stopped", greedy).await.unwrap();
    assert!(sent < 2_000_000, "{sent} bytes were taken in");
    drop((read, write));
    until("it to be gone", || fixture.serving.connections() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_short_connections_stay_within_limit() {
    let fixture = ServerFixture::with(Limits { max_connections: 50, ..Limits::default() });
    let mut sockets = vec![];
    for _ in 0..400 {
        sockets.push(fixture.raw().await);
    }
    until("the limit", || fixture.serving.connections() <= 50).await;
    drop(sockets);
    until("all to be gone", || fixture.serving.connections() == 0).await;
    assert_eq!(fixture.connect().await.call("echo", json!([])).await["id"], 1);
}

/// Runs this test again in a child process with few descriptors, because the limit applies to the whole
/// process.
#[tokio::test]
async fn accept_waits_and_recovers_without_descriptors() {
    const TEST_NAME: &str = "tests::limits::accept_waits_and_recovers_without_descriptors";
    const CHILD_VARIABLE: &str = "AGENTD_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD_VARIABLE).is_none() {
        let mut again = tokio::process::Command::new("sh");
        again.args(["-c", "ulimit -n 64 && exec \"$0\" --exact \"$1\" --test-threads=1"]);
        again
            .arg(std::env::current_exe().unwrap())
            .arg(TEST_NAME)
            .env(CHILD_VARIABLE, "1")
            .kill_on_drop(true);
        let output = with_deadline("the other process", again.output()).await.unwrap();
        let stdout_text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout_text.contains("1 passed"), "{stdout_text}");
        return;
    }
    let fixture = ServerFixture::new();
    let mut first = fixture.connect().await;
    first.call("echo", json!([])).await;
    let mut crowd = vec![];
    let shortage = loop {
        assert!(crowd.len() < 100, "the limit is not in force");
        // A blocking connect of the standard library: it takes a descriptor at once.
        match std::os::unix::net::UnixStream::connect(&fixture.path) {
            Ok(socket) => crowd.push(socket),
            Err(e) => break e,
        }
    };
    assert_eq!(shortage.raw_os_error(), Some(nix::libc::EMFILE));
    // Accepted connections are served while no new ones are accepted.
    for _ in 0..20 {
        assert_eq!(first.call("later", json!([1])).await["result"], json!([1]));
    }
    drop(crowd);
    with_deadline("recovery", async {
        while fixture.serving.connections() != 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Some of the connections are still being accepted. The daemon then finds that they are closed, and until then it
    // may close a new one.
    let request = format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "echo", "params": []}));
    with_deadline("an answer", async {
        loop {
            let mut client = fixture.connect().await;
            let is_sent = client.write.write_all(request.as_bytes()).await.is_ok();
            if is_sent && matches!(client.read.next().await, Ok(Some(_))) {
                break;
            }
        }
    })
    .await;
}
