//! Idempotency keys: a client that does not know whether its request arrived repeats it with the same
//! key.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn same_key_returns_same_turn_after_restart() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    let submit = json!({"input": "hello", "idempotency_key": "k1"});
    let first = session.submit_with(submit.clone()).await;
    seen.turn_ends("success").await;
    assert_eq!(session.submit_with(submit.clone()).await, first);
    let other = session.refused("submit", json!({"input": "goodbye", "idempotency_key": "k1"})).await;
    assert_eq!((other.code, other.kind.as_str()), (-32010, "conflict"));

    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    let session = alice.join(&session);
    assert_eq!(session.submit_with(submit.clone()).await, first);
    assert_eq!(
        session.refused("submit", json!({"input": "goodbye", "idempotency_key": "k1"})).await.code,
        -32010
    );
    assert_eq!(daemon.models.requests().len(), 1);
    assert_eq!(session.items().await.len(), 2);

    // Keys of another session are independent.
    daemon.models.push(Step::text("Hello."));
    let second = alice.create(&daemon).await;
    assert_ne!(second.submit_with(submit).await["turn_id"], first["turn_id"]);
}

#[tokio::test]
async fn concurrent_submits_with_one_key_create_one_turn() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let bob = daemon.client("bob").await;
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Hello."));
    let submit = json!({"input": "hello", "idempotency_key": "k1"});
    let a = session.send("submit", submit.clone()).await;
    let at_bobs = bob.join(&session);
    let b = at_bobs.send("submit", submit).await;
    assert_eq!(alice.reply(a).await, bob.reply(b).await);
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("turn.started").len(), 1);
}

#[tokio::test]
async fn create_with_chosen_session_id_is_idempotent() {
    let mut daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let own = json!({"cwd": daemon.workspace(), "session_id": "ses_0190f2a4-0000-7000-8000-000000000001"});
    let first = alice.call("session.create", own.clone()).await;
    assert_eq!(first["session"]["session_id"], own["session_id"]);
    assert_eq!(alice.call("session.create", own.clone()).await["session"]["session_id"], own["session_id"]);
    let mut other = own.clone();
    other["title"] = json!("another one");
    assert_eq!(alice.refused("session.create", other.clone()).await.code, -32010);

    daemon.crash_and_restart().await;
    let alice = daemon.client("alice").await;
    assert_eq!(alice.call("session.create", own).await["session"]["session_id"], other["session_id"]);
    assert_eq!(alice.refused("session.create", other).await.code, -32010);
    let list = alice.call("session.list", json!({})).await;
    assert_eq!(list["sessions"].as_array().expect("a list").len(), 1);
}

#[tokio::test]
async fn create_with_key_creates_one_session() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let keyed = json!({"cwd": daemon.workspace(), "idempotency_key": "k1"});
    let first = alice.call("session.create", keyed.clone()).await;
    let again = alice.call("session.create", keyed.clone()).await;
    assert_eq!(first["session"]["session_id"], again["session"]["session_id"]);
    let mut other = keyed;
    other["title"] = json!("another one");
    assert_eq!(alice.refused("session.create", other).await.code, -32010);
}

#[tokio::test]
async fn concurrent_creates_with_one_key_return_same_session() {
    let daemon = TestDaemon::start().await;
    let own_id = "ses_0190f2a4-0000-7000-8000-000000000002";
    for sameness in [json!({"idempotency_key": "k1"}), json!({"session_id": own_id})] {
        let mut params = sameness.clone();
        params["cwd"] = json!(daemon.workspace());
        let mut sent = Vec::new();
        for n in 0..10 {
            let client = daemon.client(&format!("client {n}")).await;
            sent.push((client.send("session.create", params.clone()).await, client));
        }
        let mut made = Vec::new();
        for (id, client) in sent {
            let reply = client.reply(id).await.unwrap_or_else(|refusal| panic!("{sameness}: {refusal:?}"));
            made.push(reply["session"]["session_id"].clone());
        }
        assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
    }
}

#[tokio::test]
async fn repeated_answer_with_key_returns_first_reply() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch x")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    let answer = json!({"decision": "allow", "idempotency_key": "k1"});
    let first = session.answer(&asked, answer.clone()).await;
    assert_eq!(session.answer(&asked, answer).await, first);
    assert_eq!(session.answer_refused(&asked, json!({"decision": "allow"})).await.code, -32014);
    let other = session.answer_refused(&asked, json!({"decision": "deny", "idempotency_key": "k1"})).await;
    assert_eq!(other.code, -32010);
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn acknowledged_submit_survives_immediate_kill() {
    let mut daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    for round in 0..3 {
        let alice = daemon.client("alice").await;
        let session = alice.create(&daemon).await;
        let turn = session.submit(&format!("round {round}")).await;
        daemon.crash_and_restart().await;
        let session = daemon.client("alice").await.join(&session);
        let mut seen = session.follow().await;
        assert_eq!(seen.wait_for("turn.completed").await["turn_id"], json!(turn));
        assert_eq!(session.items().await[0]["text"], format!("round {round}"));
    }
    daemon.models.assert_no_breach();
}

/// Calls twice with one key and expects one reply. The same key with other parameters is a conflict.
async fn repeats(client: &Client, method: &str, params: Value, other: Value) -> Value {
    let keyed = |mut params: Value| {
        params["idempotency_key"] = json!("k");
        params
    };
    let first = client.call(method, keyed(params.clone())).await;
    assert_eq!(client.call(method, keyed(params)).await, first, "{method}");
    if !other.is_null() {
        let refusal = client.refused(method, keyed(other)).await;
        assert_eq!((refusal.code, refusal.kind.as_str()), (-32010, "conflict"), "{method}: {refusal:?}");
    }
    first
}

#[tokio::test]
async fn every_mutating_method_repeats_its_reply_for_one_key() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let cwd = json!(daemon.workspace());
    daemon.write(".agentd/config.toml", "[permissions]\nallow = [\"Bash(ls:*)\"]");

    let rule = |text: &str| json!({"rule": text, "scope": "project", "workspace": cwd});
    let added = repeats(&alice, "permission.add_rule", rule("Bash(make)"), rule("Bash(make x)")).await;
    assert_eq!(added["changed"], true, "the second call would say false");
    let removed = repeats(&alice, "permission.remove_rule", rule("Bash(make)"), rule("Bash(x)")).await;
    assert_eq!(removed["changed"], true, "the second call would find no rule");
    // Two sessions may use the same key.
    for session in [&session, &alice.create(&daemon).await] {
        let rule = |text: &str| json!({"rule": text, "scope": "session", "session_id": session.id});
        repeats(&alice, "permission.add_rule", rule("Bash(make)"), rule("Bash(make x)")).await;
        repeats(&alice, "permission.remove_rule", rule("Bash(make)"), rule("Bash(x)")).await;
    }

    let folder = json!({"cwd": cwd});
    let trusted = repeats(&alice, "workspace.trust", folder.clone(), json!({"cwd": "/"})).await;
    // Trust applies to the content at that time: a repeated call does not trust later changes.
    daemon.write(".agentd/config.toml", "[permissions]\nallow = [\"Bash(rm:*)\"]");
    let mut keyed = folder.clone();
    keyed["idempotency_key"] = json!("k");
    assert_eq!(alice.call("workspace.trust", keyed).await, trusted);
    assert_eq!(alice.call("workspace.status", folder.clone()).await["trusted"], false);
    repeats(&alice, "workspace.untrust", folder, json!({"cwd": "/"})).await;

    repeats(&alice, "daemon.reload", json!({}), Value::Null).await;
    let backup = |name: &str| json!({"path": daemon.path(name)});
    repeats(&alice, "daemon.backup", backup("copy.db"), backup("other.db")).await;
    repeats(
        &alice,
        "session.update",
        json!({"session_id": session.id, "title": "a"}),
        json!({"session_id": session.id, "title": "b"}),
    )
    .await;
    repeats(&alice, "session.kill", json!({"session_id": session.id}), Value::Null).await;
}

#[tokio::test]
async fn repeated_abort_returns_first_reply_and_spares_later_turns() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    let hold = gate.clone();
    daemon.models.set_fallback(move |_| Step::text("never ending").hold_after(1, &hold));
    // The reply to an abort without effect is stored, too.
    let idle = session.call("abort", json!({"idempotency_key": "idle"})).await;
    assert_eq!(idle["stopped"], json!([]));

    let turn = session.submit("go").await;
    session.follow().await.text_of(1).await;
    assert_eq!(session.call("abort", json!({"idempotency_key": "idle"})).await, idle);
    let first = session.call("abort", json!({"idempotency_key": "k"})).await;
    assert_eq!(first["stopped"], json!([turn]));
    assert_eq!(session.call("abort", json!({"idempotency_key": "k"})).await, first);

    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let later = session.submit("again").await;
    assert_eq!(session.call("abort", json!({"idempotency_key": "k"})).await, first);
    let other = session.refused("abort", json!({"idempotency_key": "k", "turn_id": later})).await;
    assert_eq!(other.kind, "conflict");
    assert_eq!(session.view().await["state"], "running", "the later turn still runs");
    assert_eq!(session.call("abort", json!({})).await["stopped"], json!([later]));
}
