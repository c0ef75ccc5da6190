//! `session.queue`: list, edit, move, remove and clear queued inputs; abort a queued turn.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// A session with a running turn and the given queued inputs. Returns the ids of their turns.
async fn queue_inputs(daemon: &TestDaemon, inputs: &[&str]) -> (Session, Log, Gate, Vec<Value>) {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("first").await;
    seen.text_of(1).await;
    let mut turns = Vec::new();
    for input in inputs {
        turns.push(session.submit_with(json!({"input": input})).await["turn_id"].clone());
    }
    (session, seen, gate, turns)
}

async fn texts(session: &Session) -> Vec<String> {
    let reply = session.call("queue.list", json!({})).await;
    let text = |turn: &Value| turn["input"][0]["text"].as_str().expect("a text").to_owned();
    reply["queue"].as_array().expect("a list").iter().map(text).collect()
}

#[tokio::test]
async fn edited_queue_runs_in_new_order_also_after_restart() {
    let mut daemon = TestDaemon::start().await;
    let (session, mut seen, _gate, turns) = queue_inputs(&daemon, &["a", "b", "c", "d"]).await;
    let list = session.call("queue.list", json!({})).await;
    assert_eq!(list["queue"][0]["turn_id"], turns[0]);
    assert_eq!(list["queue"][0]["front"], json!(false));
    assert!(list["queue"][0]["queued_at_ms"].as_i64().expect("a time") > 0);
    let moved = json!({"turn_id": turns[3], "before": turns[0], "idempotency_key": "m"});
    session.call("queue.move", moved.clone()).await;
    session.call("queue.update", json!({"turn_id": turns[1], "input": "rather b"})).await;
    session.call("queue.remove", json!({"turn_id": turns[2]})).await;
    session.call("queue.move", json!({"turn_id": turns[0]})).await;
    // The repeated call changes nothing more.
    session.call("queue.move", moved).await;
    assert_eq!(texts(&session).await, ["d", "rather b", "a"]);
    assert_eq!(seen.wait_for("turn.queue_moved").await["before"], turns[0]);
    assert_eq!(seen.wait_for("turn.queue_updated").await["turn_id"], turns[1]);
    let gone = seen.wait_for("turn.dequeued").await;
    assert_eq!((&gone["turn_id"], &gone["reason"]), (&turns[2], &json!("removed")));

    for text in ["first again", "now d", "now b", "now a"] {
        daemon.models.push(Step::text(text));
    }
    daemon.kill().await;
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    let mut started = Vec::new();
    while started.len() < 4 {
        started.push(seen.wait_for("turn.started").await["turn_id"].clone());
    }
    assert_eq!(started[1..], [turns[3].clone(), turns[1].clone(), turns[0].clone()]);
    session.call("wait", json!({})).await;
    let last = daemon.models.requests().pop().expect("a request");
    let said = serde_json::to_string(last.messages()).expect("json");
    assert!(said.contains("rather b") && !said.contains("\"c\""), "{said}");
}

#[tokio::test]
async fn queued_turn_is_aborted_and_running_turn_goes_on() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turns) = queue_inputs(&daemon, &["a", "b"]).await;
    let reply = session.call("abort", json!({"turn_id": turns[0]})).await;
    assert_eq!(reply["stopped"], json!([turns[0]]));
    let gone = seen.wait_for("turn.dequeued").await;
    assert_eq!((&gone["turn_id"], &gone["reason"]), (&turns[0], &json!("aborted")));
    let cleared = session.call("queue.clear", json!({})).await;
    assert_eq!(cleared["queue"], json!([]));
    assert_eq!(seen.wait_for("turn.dequeued").await["reason"], "cleared");
    gate.open();
    seen.turn_ends("success").await;
    assert_eq!(session.view().await["state"], "idle");
    assert_eq!(daemon.models.requests().len(), 1, "nothing of the queue ran");
}

#[tokio::test]
async fn queue_edits_of_unknown_turns_and_empty_inputs_change_nothing() {
    let daemon = TestDaemon::start().await;
    let (session, _seen, gate, turns) = queue_inputs(&daemon, &["a", "b"]).await;
    let other = "turn_0190f2a4-0000-7000-8000-000000000000";
    let before = session.events().await.len();
    for (verb, params) in [
        ("queue.remove", json!({"turn_id": other})),
        ("queue.update", json!({"turn_id": other, "input": "x"})),
        ("queue.move", json!({"turn_id": other})),
        ("queue.move", json!({"turn_id": turns[0], "before": other})),
    ] {
        let refusal = session.refused(verb, params).await;
        assert_eq!((refusal.code, refusal.kind.as_str()), (-32002, "not_found"), "{verb}");
        assert_eq!(refusal.data["turn_id"], json!(other));
    }
    let empty = session.refused("queue.update", json!({"turn_id": turns[0], "input": " \n"})).await;
    assert_eq!((empty.code, &empty.data["path"]), (-32602, &json!("input")));
    // These are no changes, so they write no event.
    session.call("queue.move", json!({"turn_id": turns[0], "before": turns[1]})).await;
    session.call("queue.update", json!({"turn_id": turns[0], "input": "a"})).await;
    assert_eq!(session.events().await.len(), before);
    assert_eq!(texts(&session).await, ["a", "b"]);
    let page = session.call("queue.list", json!({"limit": 1})).await;
    assert_eq!(page["next_cursor"], turns[0]);
    let page = session.call("queue.list", json!({"limit": 1, "cursor": page["next_cursor"]})).await;
    assert_eq!((&page["queue"][0]["turn_id"], page.get("next_cursor")), (&turns[1], None));
    gate.open();
}

#[tokio::test]
async fn agentctl_lists_edits_and_interrupts_queue() {
    let daemon = TestDaemon::start().await;
    let (session, mut seen, gate, turns) = queue_inputs(&daemon, &["alpha", "beta"]).await;
    let listed = ctl(&daemon, &["queue", &session.id]).await;
    let text = listed.stdout();
    assert!(text.contains("alpha") && text.contains(turns[1].as_str().expect("an id")), "{text}");
    ctl(&daemon, &["queue", &session.id, "edit", "2", "gamma"]).await.stdout();
    ctl(&daemon, &["queue", &session.id, "move", "2", "--before", "1"]).await.stdout();
    assert_eq!(texts(&session).await, ["gamma", "alpha"]);
    ctl(&daemon, &["queue", &session.id, "remove", "1"]).await.stdout();
    assert_eq!(texts(&session).await, ["alpha"]);
    ctl(&daemon, &["queue", &session.id, "clear"]).await.stdout();
    let refused = ctl(&daemon, &["submit", &session.id, "no", "--reject"]).await;
    assert!(refused.code != 0, "a turn runs");
    daemon.models.push(Step::text("at once"));
    ctl(&daemon, &["submit", &session.id, "urgent", "--interrupt"]).await.stdout();
    seen.turn_ends("aborted").await;
    assert_eq!(seen.turn_ends("success").await["text"], "at once");
    gate.open();
}

#[tokio::test]
async fn updated_queued_command_loses_its_rules() {
    let daemon = TestDaemon::start().await;
    let folder = daemon.path("home/.claude/commands");
    std::fs::create_dir_all(&folder).expect("made");
    for (name, text) in [("plain", "Do $1."), ("filled", "Made: <!`touch part`>")] {
        let file = format!("---\nallowed-tools: Bash(touch:*)\n---\n{text}");
        std::fs::write(folder.join(format!("{name}.md")), file).expect("written");
    }
    let (session, mut seen, gate, turns) = queue_inputs(&daemon, &["/plain xx", "/filled"]).await;
    for turn_id in &turns {
        session.call("queue.update", json!({"turn_id": turn_id, "input": "other text"})).await;
        daemon.models.push(Step::calls([bash("touch made")]));
        daemon.models.push(Step::text("Done."));
    }
    gate.open();
    seen.turn_ends("success").await;
    for turn_id in &turns {
        let asked = seen.wait_for("permission.requested").await;
        assert_eq!((&asked["turn_id"], &asked["input"]["command"]), (turn_id, &json!("touch made")));
        session.answer(&asked, json!({"decision": "deny"})).await;
        seen.turn_ends("success").await;
    }
    assert!(!daemon.workspace().join("made").exists() && !daemon.workspace().join("part").exists());
    let items = session.items().await;
    assert!(items.iter().all(|item| item["command"].is_null()), "no message names the command: {items:?}");
}
