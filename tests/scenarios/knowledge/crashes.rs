//! Killed daemons and damaged files.

use serde_json::{Value, json};

use super::{follow, idle, index, index_files, query, start, status};
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

#[tokio::test]
async fn damaged_index_is_built_again_from_workspace() {
    let mut daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let before = alice.call("knowledge.status", json!({ "workspace": daemon.workspace() })).await;
    daemon.kill().await;
    for file in index_files(&daemon) {
        std::fs::write(&file, b"this is no database at all, it is only text and nothing else")
            .expect("damaged");
    }
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    let params = json!({ "workspace": daemon.workspace() });
    let opened = alice.call("knowledge.status", params.clone()).await;
    let job = opened["job"]["job_id"].clone();
    assert!(job.is_string(), "a job builds the index again: {opened}");
    let mut seen = follow(&alice, &daemon, json!({ "job_id": job })).await;
    seen.wait_for("done").await;
    let after = alice.call("knowledge.status", params).await;
    for field in ["documents", "chunks", "entities", "relations"] {
        assert_eq!(after[field], before[field], "{field}");
    }
}

/// Numbers of an index that do not depend on how often its jobs were interrupted.
fn sizes(status: &Value) -> Vec<Value> {
    ["state", "level", "documents", "failed_documents", "chunks", "entities", "relations"]
        .map(|field| status[field].clone())
        .to_vec()
}

/// A daemon whose model names an entity and a relation in each text; many describe the same entity.
async fn start_with_model() -> TestDaemon {
    let daemon = start().await;
    for number in 0..8 {
        daemon.write(&format!("notes/{number}.txt"), &format!("fact number {number} of Alice\n"));
    }
    daemon.models.set_fallback(|request| {
        let body = request.body.to_string();
        if body.contains("Descriptions, one per line") {
            return Step::text("Alice: all facts.").usage(10, 5);
        }
        let fact = (0..8).find(|number| body.contains(&format!("fact number {number}"))).unwrap_or(9);
        let answer = format!(
            "entity<|#|>Alice<|#|>person<|#|>Fact {fact}.\nrelation<|#|>Alice<|#|>Thing {fact}<|#|>has<|#|>Has {fact}.\n<|COMPLETE|>"
        );
        Step::text(&answer).usage(10, 5)
    });
    daemon
}

#[tokio::test]
async fn job_of_a_daemon_killed_at_any_step_goes_on_and_gives_the_same_index() {
    let params = json!({"level": "semantic", "budget": {"tokens": 10_000_000}});
    let expected = {
        let daemon = start_with_model().await;
        let alice = daemon.client("alice").await;
        assert_eq!(index(&alice, &daemon, params.clone()).await["type"], "done");
        sizes(&status(&alice, &daemon).await)
    };
    for point in [
        "KN.job",
        "KN.chunks:2",
        "KN.graph:3",
        "KN.commit:2",
        "KN.references",
        "KN.answer:2",
        "KN.extraction:2",
        "KN.summary",
    ] {
        let mut daemon = start_with_model().await;
        daemon.kill().await;
        daemon.crash_at(point, CrashMode::Kill);
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        let mut all = json!({ "workspace": daemon.workspace() });
        for (name, value) in params.as_object().expect("an object") {
            all[name] = value.clone();
        }
        alice.send("knowledge.index", all).await;
        daemon.wait_crashed().await;
        daemon.clear_crash_point();
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        // The daemon creates a new session at once, also while the job runs.
        let session = alice.create(&daemon).await;
        drop(session);
        let ended = idle(&alice, &daemon).await;
        assert_eq!(ended["job"]["state"], "done", "{point}: {ended}");
        assert_eq!(sizes(&ended), expected, "{point}");
    }
}

#[tokio::test]
async fn insert_of_a_killed_daemon_is_there_after_restart_or_can_be_repeated() {
    for point in ["KN.kept", "KN.accepted", "KN.chunks", "KN.commit"] {
        let mut daemon = start().await;
        daemon.kill().await;
        daemon.crash_at(point, CrashMode::Kill);
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        let insert = json!({"workspace": daemon.workspace(), "documents": [{"id": "note", "text": "The xylophone is blue."}]});
        alice.send("knowledge.insert", insert.clone()).await;
        daemon.wait_crashed().await;
        daemon.clear_crash_point();
        daemon.launch().await;
        let alice = daemon.client("alice").await;
        index(&alice, &daemon, json!({})).await;
        let find = json!({"mode": "naive", "query": "xylophone", "only_need_context": true});
        assert_eq!(query(&alice, &daemon, find).await["status"], "success", "{point}");
        let again = alice.call("knowledge.insert", insert).await;
        assert_eq!(again["documents"][0]["unchanged"], true, "{point}");
    }
}

#[tokio::test]
async fn inserted_documents_survive_a_damaged_index_file() {
    let mut daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    let workspace = daemon.workspace();
    let insert = json!({"workspace": workspace, "documents": [
        {"id": "note-1", "path": "notes/one.md", "text": "# One\n\nThe xylophone is blue.\n"},
        {"id": "note-2", "text": "The zither is red."},
        {"id": "note-3", "text": "The ocarina is gone."},
    ]});
    alice.call("knowledge.insert", insert).await;
    let gone = json!({"workspace": workspace, "id": "note-3"});
    assert_eq!(alice.call("knowledge.documents.delete", gone).await["status"], "success");
    daemon.kill().await;
    for file in index_files(&daemon) {
        std::fs::write(&file, b"this is no database at all, it is only text and nothing else")
            .expect("damaged");
    }
    daemon.launch().await;
    let alice = daemon.client("alice").await;
    // The first query finds the damage. The daemon then starts a job that builds the index again.
    let find = |text: &str| json!({"workspace": workspace, "mode": "mix", "query": text, "ll_keywords": [text], "only_need_context": true});
    alice.call("knowledge.query", find("xylophone")).await;
    let ended = idle(&alice, &daemon).await;
    assert_eq!((&ended["state"], &ended["documents"]), (&json!("ready"), &json!(5)), "{ended}");
    let notice = ended["notice"].as_str().unwrap_or_else(|| panic!("no notice names the loss: {ended}"));
    assert!(notice.contains("Restored: 2 inserted documents.") && notice.contains("damaged-1"), "{notice}");
    for (text, count) in [("xylophone", 1), ("zither", 1), ("ocarina", 0)] {
        let found = alice.call("knowledge.query", find(text)).await;
        let chunks = found["raw_data"]["chunks"].as_array().expect("chunks");
        let hits = chunks.iter().filter(|chunk| chunk["content"].to_string().contains(text)).count();
        assert_eq!(hits, count, "{text}: {found}");
    }
    index(&alice, &daemon, json!({})).await;
    assert_eq!(status(&alice, &daemon).await.get("notice"), None, "the next user job removes the notice");
}
