//! Sessions that nobody uses leave memory. Whoever comes back finds everything as it was (S15).

use std::time::Duration;

use serde_json::{Value, json};

use super::bash;
use crate::support::client::{Client, Session};
use crate::support::daemon::House;
use crate::support::model_server::Step;
use crate::support::wait::{LOOK_AGAIN, within};

/// Waits until so many sessions are in memory.
async fn loaded(client: &Client, wanted: u64) {
    let look = async {
        while client.call("daemon.status", json!({})).await["loaded_sessions"] != wanted {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    within(&format!("{wanted} sessions in memory"), String::new, look).await;
}

/// Waits for a state without attaching.
async fn is_in_state(session: &Session, state: &str) {
    let look = async {
        while session.view().await["state"] != state {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    within(&format!("the state {state}"), String::new, look).await;
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

/// The moment at which a session leaves is hit again and again: by submits, and by clients that
/// come and go.
#[tokio::test]
async fn whoever_comes_at_the_moment_of_leaving_notices_nothing() {
    const ROUNDS: usize = 200;
    let house = House::plan().config("[limits]\nidle_unload = \"1ms\"").start().await;
    house.models.otherwise(|_| Step::text("ok"));
    let session = house.client("alice").await.create(&house).await;
    let at_bobs = house.client("bob").await.join(&session);
    for round in 0..ROUNDS {
        // Not to be right, but to come at another moment each time.
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
    let left = house.log().matches("leaves memory").count();
    assert!(left > ROUNDS / 4, "it left only {left} times: that was no test");
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_stays_and_its_tool_runs_once() {
    let house = House::plan().config("[limits]\nidle_unload = \"1ms\"").start().await;
    house.models.push(Step::calls([bash("echo once >> log.txt")]));
    house.models.push(Step::text("Done."));
    let alice = house.client("alice").await;
    let other = alice.create(&house).await;
    let session = alice.create(&house).await;
    session.submit("log it").await;
    is_in_state(&session, "requires_action").await;
    // The other one has left; this one has not.
    loaded(&alice, 1).await;
    assert_eq!(other.view().await["state"], "idle");
    session.allow(&session.pending().await[0]).await;
    is_in_state(&session, "idle").await;
    assert_eq!(house.read("log.txt"), "once\n");
    assert_eq!(count(&session.events().await, "turn.resumed"), 0);
    loaded(&alice, 0).await;
}
