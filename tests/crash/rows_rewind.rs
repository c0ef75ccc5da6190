//! C25: a file checkpoint, and a rewind with its files.

use serde_json::{Value, json};

use super::matrix_ways;
use super::scenario::CrashScenario;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

const EDIT_ALLOWED: &str = "[permissions]\nallow = [\"Edit\"]\n[tools]\nedit_requires_read = false";

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": path, "content": content}))
}

async fn c25_stored(way: CrashMode) {
    let mut scenario =
        CrashScenario::begin(TestDaemon::builder().config(EDIT_ALLOWED), "C25.stored", way).await;
    scenario.daemon.write("a.txt", "before\n");
    let tolerant = scenario.session().await;
    scenario.daemon.models.push(Step::calls([write("a.txt", "after\n")]));
    tolerant.submit("write", "key").await;
    let journals = scenario.wait_crashed().await;
    assert_eq!(scenario.daemon.read("a.txt"), "before\n", "the content is stored before the file changes");
    let kept = journals[&tolerant.session].values().find(|event| event["type"] == "file.checkpointed");
    assert_eq!(kept.expect("a checkpoint")["files"][0]["content"]["bytes"], 7);
    scenario.daemon.models.push(Step::text("I look again."));
    scenario.restart().await;
    scenario.reopen_session(&tolerant).await.1.turn_ends("success").await;
    scenario.finish_and_check().await;
}

/// The daemon dies during a rewind of two files. After the restart, the repeated request completes the rewind.
async fn dies_in_rewind(point: &str, way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder().config(EDIT_ALLOWED), point, way).await;
    scenario.daemon.write("a.txt", "before a\n");
    let tolerant = scenario.session().await;
    for call in [write("a.txt", "after\n"), write("b.txt", "after\n")] {
        scenario.daemon.models.push(Step::calls([call]));
    }
    scenario.daemon.models.push(Step::text("Written."));
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    tolerant.submit("write", "key").await;
    log.turn_ends("success").await;
    let first = session.items().await[0]["item_id"].clone();
    let params = json!({"session_id": session.id, "item_id": first, "files": true});
    assert!(session.client.call_or_none("session.rewind", params.clone()).await.is_none(), "the daemon dies");
    let journals = scenario.wait_crashed().await;
    let is_rewound = |event: &Value| event["type"] == "session.rewound";
    assert!(!journals[&session.id].values().any(is_rewound), "the conversation is rewound last");
    scenario.restart().await;
    let (session, _) = scenario.reopen_session(&tolerant).await;
    let reply = session.client.call("session.rewind", params).await;
    assert_eq!((&reply["conflicts"], reply["files"].as_array().map(Vec::len)), (&json!([]), Some(2)));
    assert_eq!(scenario.daemon.read("a.txt"), "before a\n");
    let left: Vec<_> = std::fs::read_dir(scenario.daemon.workspace()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 1, "b.txt is removed, and no temporary file is left: {left:?}");
    assert_eq!(session.items().await.len(), 1);
    scenario.finish_and_check().await;
}

async fn c25_partly(way: CrashMode) {
    dies_in_rewind("C25.partly", way).await;
}

async fn c25_restored(way: CrashMode) {
    dies_in_rewind("C25.restored", way).await;
}

matrix_ways! {
    checkpoint_is_stored_before_file_changes => c25_stored,
    partly_rewound_files_are_completed_by_repeated_rewind => c25_partly,
    rewound_files_without_event_are_unchanged_by_repeated_rewind => c25_restored,
}
