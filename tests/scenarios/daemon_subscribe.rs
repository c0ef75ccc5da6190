//! `daemon.subscribe` reports the changes of all sessions. Also tests the fields of listed sessions and
//! `agentctl ps --watch`.

use serde_json::{Value, json};

use super::agentctl::{command, ctl};
use super::bash;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};
use crate::support::wait::with_deadline;

async fn follow(client: &Client) -> Log {
    let subscription = client.call("daemon.subscribe", json!({})).await;
    Log::new(client.clone(), subscription.as_str().expect("an id").to_owned())
}

async fn wait_for(log: &mut Log, kind: &str, id: &str, what: impl Fn(&Value) -> bool) -> Value {
    let is_wanted = |event: &Value| {
        event["kind"] == kind && event["session"]["session_id"] == id && what(&event["session"])
    };
    log.find(&format!("{kind} of {id}"), is_wanted).await
}

#[tokio::test]
async fn session_changes_of_other_clients_are_reported() {
    let daemon = TestDaemon::start().await;
    let watcher = daemon.client("watcher").await;
    let mut changes = follow(&watcher).await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"title": "mine"})).await;
    let created = wait_for(&mut changes, "session.created", &session.id, |it| it["title"] == "mine").await;
    assert_eq!(created["session"]["number"], 1);

    daemon.models.push(Step::calls([bash("touch it")]));
    session.submit("go").await;
    let waits = |it: &Value| it["state"] == "requires_action" && it["activity"] == "Bash touch it";
    wait_for(&mut changes, "session.updated", &session.id, waits).await;
    session.call("abort", json!({})).await;
    let stopped = |it: &Value| it["state"] == "idle" && it["last_turn"]["subtype"] == "aborted";
    let idle = wait_for(&mut changes, "session.updated", &session.id, stopped).await;
    assert_eq!(idle["session"]["activity"], Value::Null);

    session.call("kill", json!({})).await;
    let ended = wait_for(&mut changes, "session.ended", &session.id, |_| true).await;
    assert_eq!((&ended["session"]["state"], &ended["deleted"]), (&json!("ended"), &Value::Null));
    session.call("delete", json!({})).await;
    let deleted = changes.find("the deletion", |event| event["deleted"] == true).await;
    assert_eq!(deleted["session"]["session_id"], session.id);
}

/// The `kind` and the `reason` of all events that follow, until the daemon closes the connection.
async fn rest(daemon: &TestDaemon, mut changes: Log) -> Vec<(String, Value)> {
    let rest = async {
        let mut all = Vec::new();
        while let Some(event) = changes.next_or_end().await {
            all.push((event["kind"].as_str().expect("a kind").to_owned(), event["reason"].clone()));
        }
        all
    };
    with_deadline("the end of the subscription", || daemon.log(), rest).await
}

#[tokio::test]
async fn planned_stop_is_announced_with_reason_to_those_that_follow_the_daemon() {
    for (stop, reason) in [
        (Some(json!({})), "stop"),
        (Some(json!({"mode": "now", "restart": true})), "restart"),
        (None, "signal"),
    ] {
        let mut daemon = TestDaemon::start().await;
        let watcher = daemon.client("watcher").await;
        let mut followed = Vec::new();
        for about in [json!(["daemon"]), json!(["session", "job"]), json!([])] {
            let id = watcher.call("daemon.subscribe", json!({ "about": about })).await;
            followed.push(Log::new(watcher.clone(), id.as_str().expect("an id").to_owned()));
        }
        let [only_daemon, mut without_daemon, mut everything] =
            <[Log; 3]>::try_from(followed).ok().expect("three");
        let session = daemon.client("alice").await.create(&daemon).await;
        for changes in [&mut without_daemon, &mut everything] {
            wait_for(changes, "session.created", &session.id, |_| true).await;
        }
        match stop {
            Some(params) => drop(watcher.call("daemon.shutdown", params).await),
            None => daemon.signal(nix::sys::signal::Signal::SIGTERM),
        }
        let announced = ("daemon.restarting".to_owned(), json!(reason));
        assert_eq!(rest(&daemon, only_daemon).await, std::slice::from_ref(&announced));
        assert!(!rest(&daemon, without_daemon).await.contains(&announced), "{reason}");
        let all = rest(&daemon, everything).await;
        assert_eq!(all.iter().filter(|event| **event == announced).count(), 1, "{all:?}");
        assert!(daemon.wait_exit().await.success());
    }
    let daemon = TestDaemon::start().await;
    let refusal =
        daemon.client("watcher").await.refused("daemon.subscribe", json!({"about": ["moon"]})).await;
    assert_eq!(refusal.kind, "invalid_params");
}

#[tokio::test]
async fn failed_turn_is_listed_with_its_reason_after_restart() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::error(401, "authentication_error", "invalid key"));
    session.submit("go").await;
    seen.turn_ends("llm_error").await;
    let check = async |daemon: &TestDaemon| {
        let list = daemon.client("bob").await.call("session.list", json!({})).await;
        let turn = list["sessions"][0]["last_turn"].clone();
        assert_eq!((&turn["subtype"], &turn["kind"]), (&json!("llm_error"), &json!("unauthorized")));
        assert!(ctl(daemon, &["ps"]).await.stdout().contains("failed: key refused"));
    };
    check(&daemon).await;
    daemon.kill().await;
    daemon.launch().await;
    check(&daemon).await;
}

#[tokio::test]
async fn context_tokens_of_newest_answer_are_listed() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    assert_eq!(session.view().await["context_tokens"], Value::Null);
    daemon.models.push(Step::text("Hello."));
    session.submit("hi").await;
    seen.turn_ends("success").await;
    assert!(session.view().await["context_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
}

#[tokio::test]
async fn ps_watch_shows_change_without_polling() {
    use tokio::io::{AsyncBufReadExt as _, BufReader};
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"title": "mine"})).await;
    let mut child = command(&daemon, &["ps", "--watch"]).spawn().expect("agentctl starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut wait_for_line = async |word: &str| loop {
        let line =
            with_deadline("a line", || daemon.log(), lines.next_line()).await.expect("read").expect("a line");
        if line.contains(word) {
            return;
        }
    };
    wait_for_line("idle").await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    wait_for_line("running").await;
    gate.open();
    wait_for_line("one two").await;
    child.kill().await.expect("killed");
}

#[tokio::test]
async fn every_command_accepts_session_number() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    ctl(&daemon, &["run", "--title", "first", "hi"]).await.stdout();
    ctl(&daemon, &["run", "--title", "second", "hi"]).await.stdout();
    let shown = ctl(&daemon, &["inspect", "1", ".", "--format", "{{.Title}} {{.Number}}"]).await.stdout();
    assert_eq!(shown, "first 1\nsecond 2\n");
    assert_eq!(
        ctl(&daemon, &["ps", "--format", "{{.Number}} {{.Status}}"]).await.stdout(),
        "2 idle\n1 idle\n"
    );
    let said = ctl(&daemon, &["kill", "1"]).await;
    assert!(said.err.contains("agentctl fork 1"), "{said:?}");
    let fork = ctl(&daemon, &["fork", "1"]).await.stdout();
    assert!(fork.contains("ses_"), "{fork}");
    assert_eq!(ctl(&daemon, &["ps", "-q"]).await.stdout().lines().count(), 2);
    let said = ctl(&daemon, &["kill", "--all"]).await;
    assert!(said.code == 64 && said.err.contains("say -f"), "{said:?}");
    ctl(&daemon, &["kill", "--all", "-f"]).await.stdout();
    assert!(ctl(&daemon, &["prune"]).await.err.contains("say -f"));
    assert_eq!(ctl(&daemon, &["prune", "-f"]).await.stdout().lines().count(), 3);
    assert_eq!(ctl(&daemon, &["ps", "-a", "--json"]).await.json(), json!([]));
}
