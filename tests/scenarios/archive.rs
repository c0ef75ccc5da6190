//! `session.archive`: an archived session is kept, hidden, and takes no input.

use serde_json::json;

use super::agentctl::ctl;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn archived_session_refuses_input_until_it_is_restored() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let turn = session.submit("go").await;
    seen.text_of(1).await;
    let busy = session.refused("archive", json!({"archived": true})).await;
    assert_eq!((busy.kind.as_str(), &busy.data["turn_id"]), ("busy", &json!(turn)));
    gate.open();
    seen.turn_ends("success").await;
    let reply = session.call("archive", json!({"archived": true, "idempotency_key": "k"})).await;
    assert_eq!(reply["session"]["state"], "archived");
    assert_eq!(seen.wait_for("session.archived").await["archived"], json!(true));

    daemon.kill().await;
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    let refusal = session.refused("submit", json!({"input": "more"})).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["state"]), ("conflict", &json!("archived")));
    assert!(refusal.message.contains("archive --undo"), "{}", refusal.message);
    session.call("archive", json!({"archived": false})).await;
    daemon.models.push(Step::text("more"));
    session.submit("more").await;
    assert_eq!(session.call("wait", json!({})).await["result"]["text"], "more");
}

#[tokio::test]
async fn agentctl_ps_hides_archived_sessions_without_all() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"title": "old work"})).await;
    ctl(&daemon, &["archive", &session.id]).await.stdout();
    let listed = async |args: &[&str]| ctl(&daemon, args).await.stdout().contains("old work");
    assert!(!listed(&["ps"]).await);
    assert!(listed(&["ps", "-a"]).await);
    ctl(&daemon, &["archive", "--undo", "old work"]).await.stdout();
    assert!(listed(&["ps"]).await);
}
