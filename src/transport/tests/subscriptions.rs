//! Subscriptions: order, back-pressure, and their end.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::super::Limits;
use super::support::*;

#[tokio::test]
async fn subscription_sends_reply_before_ordered_events() {
    let fixture = ServerFixture::new();
    for _ in 0..20 {
        let mut client = fixture.connect().await;
        let id = client.call("count", json!([500])).await["result"].clone();
        assert!(id.as_str().unwrap().starts_with("sub_"), "{id}");
        for n in 0..500 {
            let expected =
                json!({"jsonrpc": "2.0", "method": "event", "params": {"subscription": id, "result": n}});
            assert_eq!(client.next().await, expected);
        }
    }
}

#[tokio::test]
async fn batch_reply_precedes_subscription_events() {
    let fixture = ServerFixture::new();
    let calls: Vec<_> =
        (0..3).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "count", "params": [2]})).collect();
    let lines = fixture.lines(Value::from(calls).to_string()).await;
    assert_eq!(lines[0].as_array().unwrap().len(), 3);
    assert_eq!(lines.len(), 7);
}

#[tokio::test]
async fn failed_or_unanswered_call_starts_no_subscription() {
    let fixture = ServerFixture::with(Limits { max_subscriptions: 1, ..Limits::default() });
    let mut client = fixture.connect().await;
    // A failed call also releases its slot for a subscription.
    for _ in 0..3 {
        assert_eq!(client.call("count_then_fail", json!([])).await["error"]["message"], "on second thoughts");
    }
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"count\",\"params\":[5]}\n").await;
    assert_eq!(client.call("echo", json!(["nothing came before"])).await["id"], 1);
    assert_eq!(fixture.record.pumps.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn subscription_limit_counts_active_subscriptions_only() {
    let fixture = ServerFixture::with(Limits { max_subscriptions: 2, ..Limits::default() });
    let mut client = fixture.connect().await;
    // A subscription whose first notification never fits sends nothing; none is read here.
    let first = client.call("count", json!([0])).await["result"].clone();
    assert!(first.is_string());
    until("the empty one to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert_eq!(client.call("unsubscribe", json!([first])).await["result"], false);
    assert_eq!(client.call("unsubscribe", json!(["sub_none"])).await["result"], false);

    let mut ids = vec![];
    for _ in 0..2 {
        client.begin(2, "flood", json!([1000])).await;
        ids.push(reply(&mut client, 2).await["result"].clone());
    }
    client.begin(3, "flood", json!([1000])).await;
    let refused = reply(&mut client, 3).await;
    assert_eq!(refused["error"]["data"]["kind"], "overloaded");
    assert!(refused["error"]["message"].as_str().unwrap().contains('2'));
    for id in ids {
        client.begin(4, "unsubscribe", json!([id])).await;
        assert_eq!(reply(&mut client, 4).await["result"], true);
    }
    until("the pumps to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    client.begin(5, "count", json!([1])).await;
    assert!(reply(&mut client, 5).await["result"].is_string());
}

/// Skips notifications and returns the reply.
async fn reply(client: &mut Client, id: u32) -> Value {
    loop {
        let line = client.next().await;
        if line["id"] == id {
            return line;
        }
    }
}

#[tokio::test]
async fn panicking_subscription_releases_its_permit() {
    let fixture = ServerFixture::with(Limits { max_subscriptions: 1, ..Limits::default() });
    let mut client = fixture.connect().await;
    for _ in 0..3 {
        assert!(client.call("panicking_pump", json!([])).await["result"].is_string());
        with_deadline("its place", async {
            while client.call("count", json!([0])).await["result"].is_null() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        until("the place again", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_reader_blocks_only_its_subscription() {
    let fixture = ServerFixture::with(Limits { outbox_bytes: 64 << 10, ..Limits::default() });
    let mut stuck = fixture.connect().await;
    stuck.begin(1, "flood", json!([1000])).await;
    let sent = || fixture.record.sent.load(Ordering::SeqCst);
    until("the flood", || sent() > 0).await;
    // The flood stops once the socket's own buffer, the outbox and the batch that is being written are full.
    let mut before = 0;
    with_deadline("the flood to stop", async {
        while sent() != before {
            before = sent();
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
    assert!(before < 2000, "{before} notifications of 1000 bytes were taken");

    let mut other = fixture.connect().await;
    for n in 0..200 {
        assert_eq!(other.call("later", json!([n])).await["result"], json!([n]));
    }
    let mut counted = fixture.connect().await;
    counted.call("count", json!([1000])).await;
    for n in 0..1000 {
        assert_eq!(counted.next().await["params"]["result"], n);
    }

    // On the same connection, replies are still queued after the waiting data. Once the client reads, the
    // flood continues.
    stuck.begin(7, "echo", json!(["late"])).await;
    assert_eq!(reply(&mut stuck, 7).await["result"], json!(["late"]));
    until("it to go on", || sent() > before).await;
    drop(stuck);
    until("its pump to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn half_closed_client_still_receives_everything() {
    let fixture = ServerFixture::new();
    // The daemon sends all replies, also late ones. Then it closes the connection, because nothing more can
    // follow.
    fixture.record.gate.0.add_permits(1);
    let lines = fixture.lines("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wait\"}").await;
    assert_eq!(lines.len(), 1);
    // The client receives all events of a subscription that ends by itself.
    let lines =
        fixture.lines("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"count\",\"params\":[2000]}\n").await;
    assert_eq!(lines.len(), 2001);
    // A subscription that does not end continues until the peer has really disconnected.
    let mut client = fixture.connect().await;
    client.begin(1, "flood", json!([10])).await;
    client.write.shutdown().await.unwrap();
    for _ in 0..1000 {
        assert!(client.next().await.is_object());
    }
    drop(client);
    until("the pump to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    until("it to be gone", || fixture.serving.connections() == 0).await;
}

#[tokio::test]
async fn disconnect_of_silent_peer_is_detected() {
    let fixture = ServerFixture::with(Limits { max_in_flight: 1, ..Limits::default() });
    // The client has stopped sending, and waits.
    let mut client = fixture.connect().await;
    client.begin(1, "until_closed", json!([])).await;
    client.write.shutdown().await.unwrap();
    until("the call", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    drop(client);
    until("the call to end", || fixture.record.ended.load(Ordering::SeqCst) == 1).await;
    // The reader waits, because only one call may run.
    let mut client = fixture.connect().await;
    for id in 0..3 {
        client.begin(id, "until_closed", json!([])).await;
    }
    until("the call", || fixture.record.started_calls.load(Ordering::SeqCst) == 2).await;
    drop(client);
    until("the call to end", || fixture.record.ended.load(Ordering::SeqCst) == 2).await;
    until("it to be gone", || fixture.serving.connections() == 0).await;
    // The reader waits, because a batch waits for free slots.
    let fixture = ServerFixture::with(Limits { max_in_flight: 3, ..Limits::default() });
    let mut client = fixture.connect().await;
    client.begin(0, "until_closed", json!([])).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"until_closed"}"#;
    client.send(format!("[{call},{call},{call}]\n")).await;
    until("the call", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    drop(client);
    until("the call to end", || fixture.record.ended.load(Ordering::SeqCst) == 1).await;
    until("it to be gone", || fixture.serving.connections() == 0).await;
    assert_eq!(fixture.record.started_calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn started_call_completes_after_peer_disconnects() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    client.begin(1, "wait", json!([])).await;
    until("it to begin", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    drop(client);
    until("the peer to be gone", || fixture.serving.connections() == 0).await;
    assert_eq!(fixture.record.ended.load(Ordering::SeqCst), 0);
    fixture.record.gate.0.add_permits(1);
    until("it to end", || fixture.record.ended.load(Ordering::SeqCst) == 1).await;
}
