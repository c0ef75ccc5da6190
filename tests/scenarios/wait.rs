//! `session.wait`: a call that returns when the session reaches a state.

use serde_json::json;

use super::agentctl::ctl;
use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn wait_returns_result_when_turn_ends() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let idle = session.call("wait", json!({})).await;
    assert_eq!((&idle["session"]["state"], idle.get("result")), (&json!("idle"), None));
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    let other = daemon.client("bob").await;
    let waiting = other.join(&session).send("wait", json!({})).await;
    let over = session.call("wait", json!({"timeout_ms": 0})).await;
    assert_eq!((&over["timed_out"], &over["session"]["state"]), (&json!(true), &json!("running")));
    gate.open();
    let reply = other.reply(waiting).await.expect("waited");
    assert_eq!((&reply["timed_out"], &reply["session"]["state"]), (&json!(false), &json!("idle")));
    assert_eq!(
        (&reply["result"]["subtype"], &reply["result"]["text"]),
        (&json!("success"), &json!("one two"))
    );
}

#[tokio::test]
async fn wait_ends_for_permission_request_kill_and_deletion() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    daemon.models.push(Step::calls([bash("touch x")]));
    let running = session.send("wait", json!({"until": ["running"]})).await;
    session.submit("go").await;
    assert_eq!(alice.reply(running).await.expect("waited")["session"]["state"], "running");
    let asks = session.call("wait", json!({})).await;
    assert_eq!(asks["session"]["state"], "requires_action");
    assert_eq!(asks["session"]["requires"], "permission");
    let ended = session.send("wait", json!({"until": ["ended"]})).await;
    session.call("kill", json!({})).await;
    assert_eq!(alice.reply(ended).await.expect("waited")["session"]["state"], "ended");

    let session = alice.create(&daemon).await;
    let never = session.send("wait", json!({"until": ["failed"]})).await;
    session.call("delete", json!({})).await;
    assert_eq!(alice.reply(never).await.expect_err("deleted").kind, "not_found");
    let refusal = session.refused("wait", json!({"until": []})).await;
    assert_eq!(refusal.data["path"], "until");
}

#[tokio::test]
async fn wait_ends_with_clear_error_when_daemon_stops() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let never = session.send("wait", json!({"until": ["archived"]})).await;
    // The wait has begun when a later call is answered.
    session.view().await;
    alice.send("daemon.shutdown", json!({})).await;
    assert_eq!(alice.reply(never).await.expect_err("stopping").kind, "shutting_down");
    daemon.wait_exit().await;
}

#[tokio::test]
async fn agentctl_wait_prints_state_and_fails_after_timeout() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    daemon.models.push(Step::text("done it"));
    session.submit("go").await;
    let waited = ctl(&daemon, &["wait", &session.id]).await;
    let text = waited.stdout();
    assert!(text.starts_with("idle\n") && text.contains("done it"), "{text}");
    let over = ctl(&daemon, &["wait", &session.id, "--until", "running", "--timeout", "10ms"]).await;
    assert!(over.code != 0);
}
