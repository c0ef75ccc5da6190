//! Tests of stopping in an orderly way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::support::*;

#[tokio::test]
async fn shutdown_answers_running_calls_then_closes_connections() {
    let fixture = ServerFixture::new();
    let (mut waiting, mut idle) = (fixture.connect().await, fixture.connect().await);
    let mut subscribed = fixture.connect().await;
    idle.call("echo", json!([])).await;
    subscribed.begin(1, "flood", json!([10])).await;
    waiting.begin(7, "wait", json!([])).await;
    until("the call", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    until("the flood", || fixture.record.sent.load(Ordering::SeqCst) > 0).await;

    fixture.stop.cancel();
    let path = fixture.path.clone();
    let finished = tokio::spawn(fixture.serving.wait_finished(WAIT_TIMEOUT));
    assert_eq!(idle.next().await, Value::Null);
    while subscribed.next().await != Value::Null {}
    until("the pump to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!finished.is_finished());
    fixture.record.gate.0.add_permits(1);
    assert_eq!(waiting.next().await["id"], 7);
    assert_eq!(waiting.next().await, Value::Null);
    assert!(with_deadline("the end", finished).await.unwrap());
    assert!(!path.exists());
}

#[tokio::test]
async fn shutdown_deadline_closes_unfinished_connections() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    client.begin(1, "wait", json!([])).await;
    until("the call", || fixture.record.started_calls.load(Ordering::SeqCst) == 1).await;
    // This client never reads.
    let mut stuck = fixture.connect().await;
    stuck.begin(1, "flood", json!([1000])).await;
    until("the flood", || fixture.record.sent.load(Ordering::SeqCst) > 0).await;
    fixture.stop.cancel();
    let path = fixture.path.clone();
    assert!(!with_deadline("the end", fixture.serving.wait_finished(Duration::from_millis(100))).await);
    assert_eq!(client.next().await, Value::Null);
    until("the pump to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn stop_accepting_keeps_existing_connections() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    client.call("echo", json!([])).await;
    fixture.serving.stop_accepting();
    with_deadline("refusal", async {
        while UnixStream::connect(&fixture.path).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.call("later", json!([2])).await["result"], json!([2]));
    assert!(client.call("count", json!([1])).await["result"].is_string());
}

#[tokio::test]
async fn dropped_server_closes_all_connections() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    client.begin(1, "flood", json!([10])).await;
    until("the flood", || fixture.record.sent.load(Ordering::SeqCst) > 0).await;
    drop(fixture.serving);
    while client.next().await != Value::Null {}
    until("the pump to end", || fixture.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!fixture.path.exists());
}
