//! The files of indexes in use are watched, if the settings say so.

use serde_json::json;

use super::{index, query, start, start_with, status, status_where};
use crate::support::daemon::TestDaemon;

#[tokio::test]
async fn watched_index_follows_new_changed_and_removed_files() {
    let daemon = start_with(TestDaemon::builder().config("[knowledge]\nwatch = true\n")).await;
    let alice = daemon.client("alice").await;
    assert_eq!(status(&alice, &daemon).await["watched"], false, "there is no index");
    index(&alice, &daemon, json!({})).await;
    status_where(&alice, &daemon, "the watch", |now| now["watched"] == true).await;
    let has =
        |count: u64| move |now: &serde_json::Value| now["documents"] == count && now["state"] == "ready";

    daemon.write("src/deep/er/new.rs", "pub fn xylophone() {}\n");
    status_where(&alice, &daemon, "the new file", has(4)).await;
    // The folder did not exist when the watch began.
    daemon.write("src/deep/er/second.rs", "pub fn zither() {}\n");
    status_where(&alice, &daemon, "the second file", has(5)).await;
    let find = json!({"mode": "naive", "query": "zither", "only_need_context": true});
    assert_eq!(query(&alice, &daemon, find).await["status"], "success");
    std::fs::remove_dir_all(daemon.workspace().join("src/deep")).expect("removed");
    status_where(&alice, &daemon, "the removal", has(3)).await;
    assert_eq!(daemon.models.requests().len(), 0, "no model is asked");

    // Ignored files start no job.
    let before = status(&alice, &daemon).await;
    daemon.write(".gitignore", "*.log\n");
    daemon.write("noise.log", "x\n");
    daemon.write("src/last.rs", "pub fn last() {}\n");
    let after = status_where(&alice, &daemon, "the last file", has(4)).await;
    assert!(after["generation"].as_u64() > before["generation"].as_u64());
    let noise = json!({"workspace": daemon.workspace(), "id": "noise.log"});
    assert_eq!(alice.refused("knowledge.documents.get", noise).await.kind, "not_found");
}

#[tokio::test]
async fn index_without_watch_ignores_file_changes() {
    let daemon = start().await;
    let alice = daemon.client("alice").await;
    index(&alice, &daemon, json!({})).await;
    daemon.write("src/new.rs", "pub fn xylophone() {}\n");
    let now = status(&alice, &daemon).await;
    assert_eq!((&now["watched"], &now["documents"]), (&json!(false), &json!(3)));
}
