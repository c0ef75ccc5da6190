//! Each row of the method table that changes something returns its first reply for a repeated key.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::daemon::TestDaemon;
use crate::support::mcp_server::McpScript;
use crate::support::model_server::Step;
use crate::support::wait::{POLL_INTERVAL, with_deadline};
use agentd::api::methods::METHODS;

/// Methods whose second call would differ, with the scenario that repeats them after a restart, in a running turn, or
/// with several clients.
const SHOWN_ELSEWHERE: &[(&str, &str)] = &[
    ("session.create", "idempotency::create_with_key_creates_one_session"),
    ("session.submit", "idempotency::same_key_returns_same_turn_after_restart"),
    ("session.approve", "idempotency::repeated_answer_with_key_returns_first_reply"),
    ("permission.respond", "idempotency::repeated_answer_with_key_returns_first_reply"),
    ("session.answer", "answer"),
    ("session.feedback", "feedback"),
    ("session.abort", "idempotency::repeated_abort_returns_first_reply_and_spares_later_turns"),
    ("session.compact", "compaction"),
    ("session.rewind", "rewind"),
    ("session.import", "export"),
    ("session.queue.move", "queue"),
    ("session.queue.remove", "queue"),
    ("session.queue.update", "queue"),
    ("job.create", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("job.update", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("job.cancel", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("job.retry", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("job.pause", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("job.resume", "jobs::each_change_of_a_job_repeats_its_reply_for_one_key"),
    ("schedule.create", "schedules::schedule_is_changed_triggered_and_deleted_once_per_key"),
    ("schedule.update", "schedules::schedule_is_changed_triggered_and_deleted_once_per_key"),
    ("schedule.delete", "schedules::schedule_is_changed_triggered_and_deleted_once_per_key"),
    ("schedule.trigger", "schedules::schedule_is_changed_triggered_and_deleted_once_per_key"),
    ("worktree.merge", "worktrees::session_works_in_its_worktree_and_its_branch_is_merged"),
    ("worktree.remove", "worktrees::session_works_in_its_worktree_and_its_branch_is_merged"),
    ("mcp.add", "mcp_servers"),
    ("mcp.remove", "mcp_servers"),
    ("daemon.reload", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("daemon.backup", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("permission.add_rule", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("permission.remove_rule", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("workspace.trust", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("workspace.untrust", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("session.update", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
    ("session.kill", "idempotency::every_mutating_method_repeats_its_reply_for_one_key"),
];

/// Methods that change something and take no key: stopping a daemon twice stops it once.
const WITHOUT_KEY: &[&str] = &["daemon.shutdown"];

async fn repeats(client: &Client, method: &str, params: Value, other: Value) {
    let keyed = |mut params: Value| {
        params["idempotency_key"] = json!("k");
        params
    };
    let first = client.call(method, keyed(params.clone())).await;
    assert_eq!(client.call(method, keyed(params)).await, first, "{method}");
    let refusal = client.refused(method, keyed(other)).await;
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32010, "conflict"), "{method}: {refusal:?}");
}

#[tokio::test]
async fn every_row_of_method_table_repeats_its_reply_for_one_key() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let server = McpScript::new(&daemon, "fake");
    daemon.models.set_fallback(|_| Step::text("It is a parser."));
    daemon.write("src/parser.rs", "pub struct Parser;\n");
    let workspace = json!(daemon.workspace());
    let in_workspace = |more: Value| {
        let mut params = json!({ "workspace": workspace });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let in_session = |more: Value| {
        let mut params = json!({ "session_id": session.id });
        for (name, value) in more.as_object().expect("an object") {
            params[name] = value.clone();
        }
        params
    };
    let entity = |name: &str| in_workspace(json!({"name": name, "type": "concept", "description": "d"}));
    let relation = |weight: f64| {
        in_workspace(json!({"source": "A", "target": "B", "description": "d", "weight": weight}))
    };
    let document = |id: &str| in_workspace(json!({"documents": [{"id": id, "text": "Some text."}]}));
    let memory = |text: &str| json!({"cwd": workspace, "name": "style", "text": text});
    let (index, paths) = (in_workspace(json!({})), in_workspace(json!({"paths": ["src"]})));
    repeats(&alice, "knowledge.index", index, paths).await;
    idle(&alice, &workspace).await;
    alice.call("knowledge.entity.create", entity("B")).await;
    alice.call("knowledge.entity.create", entity("C")).await;

    let rows = [
        ("knowledge.entity.create", entity("A"), entity("X")),
        ("knowledge.entity.update", entity("A"), entity("B")),
        ("knowledge.relation.create", relation(1.0), relation(2.0)),
        ("knowledge.relation.update", relation(3.0), relation(2.0)),
        (
            "knowledge.relation.delete",
            in_workspace(json!({"source": "A", "target": "B"})),
            in_workspace(json!({"source": "A", "target": "C"})),
        ),
        (
            "knowledge.entity.merge",
            in_workspace(json!({"sources": ["C"], "target": "B"})),
            in_workspace(json!({"sources": ["A"], "target": "B"})),
        ),
        ("knowledge.entity.delete", in_workspace(json!({"name": "A"})), in_workspace(json!({"name": "B"}))),
        ("knowledge.insert", document("note-1"), document("note-2")),
        (
            "knowledge.query",
            in_workspace(json!({"query": "parser", "stream": true})),
            in_workspace(json!({"query": "lexer", "stream": true})),
        ),
        ("mcp.test", json!({"config": server.entry()}), json!({"name": "none"})),
        ("memory.set", memory("Tabs."), memory("Blanks.")),
        (
            "memory.remove",
            json!({"cwd": workspace, "name": "style"}),
            json!({"cwd": workspace, "name": "other"}),
        ),
        ("session.queue.clear", in_session(json!({})), Value::Null),
        ("session.archive", in_session(json!({"archived": true})), in_session(json!({"archived": false}))),
        ("session.fork", in_session(json!({"title": "a"})), in_session(json!({"title": "b"}))),
    ];
    let mut shown: BTreeSet<&str> = SHOWN_ELSEWHERE.iter().map(|(method, _)| *method).collect();
    for (method, params, other) in rows {
        shown.insert(method);
        match other {
            Value::Null => {
                let mut keyed = params;
                keyed["idempotency_key"] = json!("k");
                let first = alice.call(method, keyed.clone()).await;
                assert_eq!(alice.call(method, keyed).await, first, "{method}");
            }
            other => repeats(&alice, method, params, other).await,
        }
    }
    let job = alice.call("knowledge.index", in_workspace(json!({}))).await["job_id"].clone();
    let cancel = |id: &Value| in_workspace(json!({"job_id": id}));
    repeats(&alice, "knowledge.cancel", cancel(&job), cancel(&json!("another"))).await;
    idle(&alice, &workspace).await;
    let id = |id: &str| in_workspace(json!({ "id": id }));
    repeats(&alice, "knowledge.documents.delete", id("note-1"), id("note-2")).await;
    let kinds = |kind: &str| in_workspace(json!({"kinds": [kind]}));
    repeats(&alice, "knowledge.cache.clear", kinds("query"), kinds("keywords")).await;
    repeats(&alice, "knowledge.delete", in_workspace(json!({})), json!({"workspace": daemon.path("")})).await;
    let other = alice.create(&daemon).await;
    repeats(&alice, "session.delete", json!({"session_id": other.id}), json!({"session_id": session.id}))
        .await;
    shown.extend([
        "knowledge.index",
        "knowledge.cancel",
        "knowledge.documents.delete",
        "knowledge.cache.clear",
        "knowledge.delete",
        "session.delete",
    ]);

    let changes = METHODS.iter().filter(|method| method.traits.mutates);
    for method in changes.filter(|method| !WITHOUT_KEY.contains(&method.name)) {
        assert!(method.takes_idempotency_key(), "{} takes no key", method.name);
        assert!(shown.contains(method.name), "no scenario repeats {}", method.name);
    }
}

/// Waits until the index of the workspace has no running job.
async fn idle(client: &Client, workspace: &Value) {
    let is_idle = async {
        loop {
            let status = client.call("knowledge.status", json!({ "workspace": workspace })).await;
            if status["state"] != "indexing" {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    with_deadline("an idle index", String::new, is_idle).await;
}
