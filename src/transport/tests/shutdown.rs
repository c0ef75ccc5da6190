//! Stopping in good order.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::UnixStream;

use super::support::*;

#[tokio::test]
async fn what_began_is_answered_then_everybody_is_let_go() {
    let house = ServerFixture::new();
    let (mut waiting, mut idle) = (house.connect().await, house.connect().await);
    let mut subscribed = house.connect().await;
    idle.call("echo", json!([])).await;
    subscribed.begin(1, "flood", json!([10])).await;
    waiting.begin(7, "wait", json!([])).await;
    until("the call", || house.record.begun.load(Ordering::SeqCst) == 1).await;
    until("the flood", || house.record.sent.load(Ordering::SeqCst) > 0).await;

    house.stop.cancel();
    let path = house.path.clone();
    let finished = tokio::spawn(house.serving.finished(SOON));
    assert_eq!(idle.next().await, Value::Null);
    while subscribed.next().await != Value::Null {}
    until("the pump to end", || house.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!finished.is_finished());
    house.record.gate.0.add_permits(1);
    assert_eq!(waiting.next().await["id"], 7);
    assert_eq!(waiting.next().await, Value::Null);
    assert!(soon("the end", finished).await.unwrap());
    assert!(!path.exists());
}

#[tokio::test]
async fn the_deadline_cuts_off_what_does_not_end() {
    let house = ServerFixture::new();
    let mut client = house.connect().await;
    client.begin(1, "wait", json!([])).await;
    until("the call", || house.record.begun.load(Ordering::SeqCst) == 1).await;
    // One who never reads.
    let mut stuck = house.connect().await;
    stuck.begin(1, "flood", json!([1000])).await;
    until("the flood", || house.record.sent.load(Ordering::SeqCst) > 0).await;
    house.stop.cancel();
    let path = house.path.clone();
    assert!(!soon("the end", house.serving.finished(Duration::from_millis(100))).await);
    assert_eq!(client.next().await, Value::Null);
    until("the pump to end", || house.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn no_longer_accepting_is_not_yet_stopping() {
    let house = ServerFixture::new();
    let mut client = house.connect().await;
    client.call("echo", json!([])).await;
    house.serving.stop_accepting();
    soon("refusal", async {
        while UnixStream::connect(&house.path).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(client.call("later", json!([2])).await["result"], json!([2]));
    assert!(client.call("count", json!([1])).await["result"].is_string());
}

#[tokio::test]
async fn dropping_it_ends_everything() {
    let house = ServerFixture::new();
    let mut client = house.connect().await;
    client.begin(1, "flood", json!([10])).await;
    until("the flood", || house.record.sent.load(Ordering::SeqCst) > 0).await;
    drop(house.serving);
    while client.next().await != Value::Null {}
    until("the pump to end", || house.record.pumps.load(Ordering::SeqCst) == 0).await;
    assert!(!house.path.exists());
}
