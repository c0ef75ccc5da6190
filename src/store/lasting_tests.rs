//! Tests of reading durable events, and of transactions with rows of many sessions.

use std::sync::Arc;

use futures_util::future::join_all;

use super::tests::{append, new_session};
use super::*;
use types::ids::Seq;
use types::time::Timestamp;

fn row(seq: Seq, kind: &'static str, length: usize) -> Row {
    Row { seq, at: Timestamp(1), kind, delta_of: None, body: Arc::from("x".repeat(length)) }
}

async fn read_lasting(store: &Store, key: SessionKey, limit: u32, bytes: usize) -> Vec<Seq> {
    let settled = store.settled_turns(key, &["turn.phase", "notice"], &["session.status"]).await.unwrap();
    let mut seqs = Vec::new();
    loop {
        let after = seqs.last().copied().unwrap_or(0);
        let page = store.lasting_events_after(key, after, &settled, limit, bytes).await.unwrap();
        seqs.extend(page.rows.iter().map(|row| row.seq));
        if page.is_last {
            return seqs;
        }
    }
}

#[tokio::test]
async fn transient_events_are_skipped_until_last_completed_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (store, owner) = Store::open(&folder.path().join("a.db")).await.unwrap();
    let key = store.create(new_session(1, None)).await.unwrap();
    let kinds = [
        "session.status",
        "turn.phase",
        "message.completed",
        "session.status",
        "turn.phase",
        "turn.completed",
        "session.status",
        "turn.phase",
        "notice",
    ];
    // The first row is a notice as well.
    let before_any = read_lasting(&store, key, 10, 1_000).await;
    assert_eq!(before_any, [1], "without a completed turn all is read");
    let rows = kinds.iter().zip(2..).map(|(kind, seq)| row(seq, kind, 100)).collect();
    store.append(append(key, rows)).await.unwrap();
    for (limit, bytes) in [(100, 10_000), (2, 10_000), (100, 150), (3, 1)] {
        assert_eq!(read_lasting(&store, key, limit, bytes).await, [4, 5, 7, 8, 9, 10], "{limit} {bytes}");
    }
    owner.close().await;
}

#[tokio::test]
async fn concurrent_session_writes_lose_no_row() {
    const SESSION_COUNT: u128 = 90;
    let folder = tempfile::tempdir().unwrap();
    let (store, owner) = Store::open(&folder.path().join("a.db")).await.unwrap();
    let mut keys = Vec::new();
    for number in 0..SESSION_COUNT {
        keys.push(store.create(new_session(number, None)).await.unwrap());
    }
    for round in 0..5 {
        // All these appends wait for the writer together. Some have several rows.
        let writes = keys.iter().enumerate().map(|(nth, key)| {
            let from = 2 + round * 3;
            let rows = (from..from + 1 + (nth as u64 % 3)).map(|seq| row(seq, "notice", 50)).collect();
            store.append(append(*key, rows))
        });
        assert!(join_all(writes).await.into_iter().all(|written| written.is_ok()));
    }
    // An append of an existing row fails alone and does not affect the others in its group.
    let writes = keys.iter().enumerate().map(|(nth, key)| {
        let seq = if nth == 7 { 2 } else { 100 };
        store.append(append(*key, vec![row(seq, "notice", 51)]))
    });
    let written = join_all(writes).await;
    assert!(written.iter().enumerate().all(|(nth, written)| written.is_ok() == (nth != 7)));
    for (nth, key) in keys.iter().enumerate() {
        let page = store.events_after(*key, 0, 100, usize::MAX).await.unwrap();
        let expected = 1 + 5 * (1 + nth % 3) + usize::from(nth != 7);
        assert_eq!(page.rows.len(), expected, "of session {nth}");
    }
    owner.close().await;
}
