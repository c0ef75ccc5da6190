//! Unused sessions are unloaded. A client that comes back finds everything unchanged.

use std::time::Duration;

use serde_json::{Value, json};

use super::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;
use crate::support::wait::{POLL_INTERVAL, with_deadline};

/// Waits until this many sessions are loaded.
pub(super) async fn loaded(client: &Client, wanted: u64) {
    let look = async {
        while client.call("daemon.status", json!({})).await["loaded_sessions"] != wanted {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(&format!("{wanted} sessions in memory"), String::new, look).await;
}

/// Waits for a state without attaching.
async fn is_in_state(session: &Session, state: &str) {
    let look = async {
        while session.view().await["state"] != state {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline(&format!("the state {state}"), String::new, look).await;
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

#[tokio::test]
async fn idle_session_is_unloaded_and_reloads_unchanged() {
    let daemon = TestDaemon::builder().config("[limits]\nidle_unload = \"20ms\"").start().await;
    let alice = daemon.client("alice").await;
    let bob = daemon.client("bob").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello to you."));
    session.submit("hello there").await;
    seen.turn_ends("success").await;
    loaded(&bob, 1).await;
    let last = seen.last_seq();
    seen.unsubscribe().await;
    drop(seen);
    let session = bob.join(&session);
    // Reading a session's data does not count as use.
    loaded(&bob, 0).await;
    let (view, events, items) = (session.view().await, session.events().await, session.items().await);
    assert_eq!((count(&events, "session.attached"), count(&events, "session.detached")), (1, 1));
    assert_eq!((&view["clients"], &view["state"]), (&json!(0), &json!("idle")));
    loaded(&bob, 0).await;

    let mut seen = session.follow_after(last).await;
    loaded(&bob, 1).await;
    seen.wait_for("session.attached").await;
    assert_eq!(session.items().await, items);
    assert_eq!(session.view().await["clients"], 1);
    assert_eq!(session.events().await[..events.len()], events);
    daemon.models.push(Step::text("Still here."));
    session.submit("are you there?").await;
    seen.turn_ends("success").await;
    let request = daemon.models.requests()[1].body.to_string();
    assert!(request.contains("hello there") && request.contains("Hello to you."), "{request}");
    let journal = session.events().await;
    assert!(journal.is_sorted_by(|a, b| a["seq"].as_u64() < b["seq"].as_u64()));
    assert_eq!(count(&journal, "turn.resumed"), 0, "loading does not resume a turn");
    daemon.models.assert_no_breach();
}

/// Hits the moment of unloading again and again: with submits, and with clients that attach and detach.
#[tokio::test]
async fn request_during_unload_is_served_normally() {
    // Each load reads the whole journal, which grows with each round.
    const ROUNDS: usize = 80;
    let daemon = TestDaemon::builder().config("[limits]\nidle_unload = \"1ms\"").start().await;
    daemon.models.set_fallback(|_| Step::text("ok"));
    let session = daemon.client("alice").await.create(&daemon).await;
    let at_bobs = daemon.client("bob").await.join(&session);
    for round in 0..ROUNDS {
        // The wait is not for synchronisation; it varies the moment in each round.
        tokio::time::sleep(Duration::from_micros((round as u64 * 397) % 4_000)).await;
        if round % 3 == 0 {
            let (_, seen) = tokio::join!(session.submit("go"), at_bobs.follow());
            seen.unsubscribe().await;
        } else {
            session.submit("go").await;
        }
        is_in_state(&session, "idle").await;
    }
    let journal = session.events().await;
    assert!(journal.is_sorted_by(|a, b| a["seq"].as_u64() < b["seq"].as_u64()));
    assert_eq!(count(&journal, "turn.started"), ROUNDS);
    assert_eq!(count(&journal, "turn.completed"), ROUNDS);
    assert_eq!(count(&journal, "turn.resumed"), 0);
    loaded(&at_bobs.client, 0).await;
    let view = session.view().await;
    assert_eq!(view["clients"], 0);
    assert_eq!(count(&journal, "session.attached"), ROUNDS.div_ceil(3));
    assert_eq!(count(&session.events().await, "session.detached"), ROUNDS.div_ceil(3));
    let left = daemon.log().matches("leaves memory").count();
    assert!(left > ROUNDS / 4, "only {left} unloads are too few for this test");
}

#[tokio::test]
async fn session_with_pending_request_is_not_unloaded() {
    let daemon = TestDaemon::builder().config("[limits]\nidle_unload = \"1ms\"").start().await;
    daemon.models.push(Step::calls([bash("echo once >> log.txt")]));
    daemon.models.push(Step::text("Done."));
    let alice = daemon.client("alice").await;
    let other = alice.create(&daemon).await;
    let session = alice.create(&daemon).await;
    session.submit("log it").await;
    is_in_state(&session, "requires_action").await;
    // The other session was unloaded; this one was not.
    loaded(&alice, 1).await;
    assert_eq!(other.view().await["state"], "idle");
    session.allow(&session.pending().await[0]).await;
    is_in_state(&session, "idle").await;
    assert_eq!(daemon.read("log.txt"), "once\n");
    assert_eq!(count(&session.events().await, "turn.resumed"), 0);
    loaded(&alice, 0).await;
}

#[tokio::test]
async fn idle_sessions_over_limit_are_unloaded() {
    let daemon = TestDaemon::builder().config("[limits]\nloaded_sessions = 3").start().await;
    let alice = daemon.client("alice").await;
    let mut used = Vec::new();
    for _ in 0..5 {
        let session = alice.create(&daemon).await;
        used.push((session.follow().await, session));
    }
    for _ in 0..5 {
        alice.create(&daemon).await;
    }
    // Followed sessions stay loaded, and one was just created.
    loaded(&alice, 6).await;
    for (seen, session) in &mut used {
        daemon.models.push(Step::text("ok"));
        session.submit("go").await;
        seen.turn_ends("success").await;
    }
    for (seen, session) in &used {
        seen.unsubscribe().await;
        let look = async {
            while session.view().await["clients"] != 0 {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        with_deadline("everybody to have left", String::new, look).await;
    }
    let late = alice.create(&daemon).await;
    loaded(&alice, 3).await;
    assert_eq!(alice.call("daemon.status", json!({})).await["sessions"], 11);
    assert_eq!(late.view().await["state"], "idle");
}

#[tokio::test]
async fn ended_sessions_are_deleted_after_retention_time() {
    let daemon = TestDaemon::builder().config("[limits]\ndelete_ended_after = \"1ms\"").start().await;
    let client = daemon.client("alice").await;
    let (kept, ended) = (client.create(&daemon).await, client.create(&daemon).await);
    ended.call("kill", json!({})).await;
    let look = async {
        while let Ok(view) = client.try_call("session.get", json!({"session_id": ended.id})).await {
            assert_eq!(view["session"]["state"], "ended");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("the end of a session's time", String::new, look).await;
    let left = client.call("session.list", json!({})).await;
    let ids: Vec<&Value> =
        left["sessions"].as_array().unwrap().iter().map(|view| &view["session_id"]).collect();
    assert_eq!(ids, [&kept.view().await["session_id"]]);
}

#[tokio::test]
async fn journal_over_quota_refuses_new_input() {
    // The check runs as often as the one for ended sessions.
    let limits = "[limits]\ndelete_ended_after = \"100ms\"\njournal_size = \"4MiB\"";
    let daemon = TestDaemon::builder().config(limits).start().await;
    let client = daemon.client("alice").await;
    let (large, small) = (client.create(&daemon).await, client.create(&daemon).await);
    let mut seen = large.follow().await;
    daemon.models.push(Step::text("That is a lot."));
    large.submit(&"all work and no play ".repeat(300_000)).await;
    seen.turn_ends("success").await;
    let held = async {
        while client.call("daemon.status", json!({})).await["journal_bytes"].as_u64() < Some(4 << 20) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("a look at the journal", String::new, held).await;
    let refusal = small.refused("submit", json!({"input": "and I?"})).await;
    assert_eq!(refusal.kind, "storage_read_only", "{refusal:?}");
    assert!(refusal.message.contains("journal_size"), "{refusal:?}");
    assert_eq!(small.items().await.len(), 0, "no refused input was stored");

    large.call("kill", json!({})).await;
    daemon.models.push(Step::text("You too."));
    let taken = async {
        while client
            .try_call("session.submit", json!({"session_id": small.id, "input": "and I?"}))
            .await
            .is_err()
        {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("room", String::new, taken).await;
}
