//! `session.rewind`: the conversation ends with an earlier item; files get their content of that moment.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::export::{exported, imported};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const TOOLS_ALLOWED: &str = "[permissions]\nallow = [\"Bash\", \"Edit\", \"Delete\"]\n[tools]\nedit_requires_read = false\nmax_checkpoint_size = \"1KiB\"";

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("Write", json!({"file_path": path, "content": content}))
}

/// Runs one turn with these calls, one per step.
async fn run(daemon: &TestDaemon, session: &Session, input: &str, calls: Vec<(&'static str, Value)>) {
    for call in calls {
        daemon.models.push(Step::calls([call]));
    }
    daemon.models.push(Step::text(&format!("done {input}")).usage(100, 10));
    session.submit(input).await;
    session.call("wait", json!({})).await;
    daemon.models.assert_no_breach();
}

/// The item with this text.
async fn item(session: &Session, text: &str) -> Value {
    let items = session.items().await;
    let found = items.iter().find(|item| item["text"] == text);
    found.unwrap_or_else(|| panic!("no item {text}: {items:?}"))["item_id"].clone()
}

fn actions(reply: &Value) -> Vec<(String, String)> {
    let name = |file: &Value| {
        let path = file["path"].as_str().expect("a path");
        path.rsplit('/').next().expect("a name").to_owned()
    };
    let action = |file: &Value| file["action"].as_str().expect("an action").to_owned();
    reply["files"].as_array().expect("files").iter().map(|file| (name(file), action(file))).collect()
}

/// Two turns: the first writes `a.txt` and `new.txt`, the second changes and removes files.
async fn two_turns(daemon: &TestDaemon) -> Session {
    daemon.write("a.txt", "original\n");
    daemon.write("gone.txt", "kept\n");
    let session = daemon.client("alice").await.create(daemon).await;
    run(daemon, &session, "one", vec![write("a.txt", "first\n")]).await;
    let patch = "*** Begin Patch\n*** Delete File: gone.txt\n*** Update File: a.txt\n@@\n-first\n+second\n*** End Patch\n";
    run(daemon, &session, "two", vec![("ApplyPatch", json!({"patch": patch})), write("new.txt", "new\n")])
        .await;
    assert_eq!((daemon.read("a.txt").as_str(), daemon.read("new.txt").as_str()), ("second\n", "new\n"));
    session
}

#[tokio::test]
async fn rewind_restores_files_and_conversation_also_after_restart() {
    let mut daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = two_turns(&daemon).await;
    let mut seen = session.follow().await;
    let at = item(&session, "done one").await;
    let params = json!({"item_id": at, "files": true});
    let mut dry = params.clone();
    dry["dry_run"] = json!(true);
    let before = session.events().await.len();
    let expected = [("a.txt", "restored"), ("gone.txt", "restored"), ("new.txt", "deleted")];
    let expected: Vec<_> = expected.map(|(name, action)| (name.to_owned(), action.to_owned())).to_vec();
    let reply = session.call("rewind", dry).await;
    assert_eq!((actions(&reply), session.events().await.len()), (expected.clone(), before));
    assert_eq!(daemon.read("a.txt"), "second\n");

    let mut keyed = params.clone();
    keyed["idempotency_key"] = json!("k");
    let reply = session.call("rewind", keyed.clone()).await;
    assert_eq!((actions(&reply), &reply["conflicts"]), (expected, &json!([])));
    assert_eq!(daemon.read("a.txt"), "first\n");
    assert_eq!(daemon.read("gone.txt"), "kept\n");
    assert!(!daemon.workspace().join("new.txt").exists());
    let rewound = seen.wait_for("session.rewound").await;
    assert_eq!((&rewound["item_id"], &rewound["removed_items"]), (&at, &reply["removed_items"]));
    let items = session.items().await;
    assert_eq!(items.last().expect("items")["item_id"], at);
    let found = session.client.call("session.list", json!({"search": "two"})).await;
    assert_eq!(found["sessions"], json!([]), "removed text is not found");
    let audit = session.client.call("permission.audit", json!({})).await.to_string();
    assert!(audit.contains("\"kind\":\"rewind\""), "{audit}");

    daemon.kill().await;
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    assert_eq!(session.call("rewind", keyed).await, reply, "the same key gives the same reply");
    run(&daemon, &session, "three", vec![write("a.txt", "third\n")]).await;
    let request = daemon.models.requests().pop().expect("a request");
    let messages = serde_json::to_string(request.messages()).expect("json");
    assert!(messages.contains("done one") && !messages.contains("done two"), "{messages}");
    // A user can still rewind to the session's first turn.
    let first = item(&session, "one").await;
    let reply = session.call("rewind", json!({"item_id": first, "files": true})).await;
    assert_eq!(reply["conflicts"], json!([]));
    assert_eq!(daemon.read("a.txt"), "original\n");
    assert_eq!(session.items().await.len(), 1);
}

#[tokio::test]
async fn file_changed_by_others_is_conflict_and_nothing_changes() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = two_turns(&daemon).await;
    daemon.write("new.txt", "edited by hand\n");
    let at = item(&session, "done one").await;
    let before = (session.events().await.len(), session.items().await.len());
    let reply = session.call("rewind", json!({"item_id": at, "files": true})).await;
    assert_eq!((&reply["files"], &reply["removed_items"]), (&json!([]), &json!([])));
    let conflict = &reply["conflicts"][0];
    assert!(conflict["path"].as_str().expect("a path").ends_with("new.txt"), "{conflict}");
    assert!(conflict["reason"].as_str().expect("a reason").contains("changed since"), "{conflict}");
    assert_eq!(daemon.read("a.txt"), "second\n");
    assert_eq!((session.events().await.len(), session.items().await.len()), before);

    // A link in place of a file would lead out of the workspace.
    let secret = daemon.path("outside.txt");
    std::fs::write(&secret, "new\n").expect("written");
    std::fs::remove_file(daemon.workspace().join("new.txt")).expect("removed");
    std::os::unix::fs::symlink(&secret, daemon.workspace().join("new.txt")).expect("linked");
    let reply = session.call("rewind", json!({"item_id": at, "files": true})).await;
    assert_eq!(reply["conflicts"].as_array().expect("conflicts").len(), 1, "{reply}");
    assert!(secret.exists());

    // Without the files, only the conversation is rewound.
    let reply = session.call("rewind", json!({"item_id": at})).await;
    assert_eq!((&reply["files"], &reply["conflicts"]), (&json!([]), &json!([])));
    assert_eq!(daemon.read("a.txt"), "second\n");
    assert_eq!(session.items().await.last().expect("items")["item_id"], at);
}

#[tokio::test]
async fn file_larger_than_limit_is_recorded_as_not_kept() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    daemon.write("big.txt", &"x".repeat(2_000));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    run(&daemon, &session, "one", vec![write("big.txt", "small\n")]).await;
    let kept = seen.wait_for("file.checkpointed").await;
    assert_eq!((&kept["files"][0]["exists"], kept["files"][0].get("content")), (&json!(true), None));
    let at = item(&session, "one").await;
    let reply = session.call("rewind", json!({"item_id": at, "files": true})).await;
    let reason = reply["conflicts"][0]["reason"].as_str().expect("a reason").to_owned();
    assert!(reason.contains("too large"), "{reason}");
    assert_eq!(daemon.read("big.txt"), "small\n");
}

#[tokio::test]
async fn rewind_to_missing_item_or_during_turn_is_refused() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let missing = json!({"item_id": "item_0190f2a4-0000-7000-8000-000000000000"});
    let refusal = session.refused("rewind", missing).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("not_found", &json!("item_id")));
    run(&daemon, &session, "one", Vec::new()).await;
    let at = item(&session, "one").await;
    daemon.models.push(Step::calls([("Bash", json!({"command": "touch x"}))]));
    session.submit("two").await;
    session.call("wait", json!({})).await;
    let refusal = session.refused("rewind", json!({"item_id": at})).await;
    assert_eq!(refusal.kind, "busy");
}

#[tokio::test]
async fn agentctl_rewind_prints_files_and_explains_conflicts() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = two_turns(&daemon).await;
    let at = item(&session, "done one").await;
    let at = at.as_str().expect("an id");
    let dry = ctl(&daemon, &["rewind", &session.id, at, "--files", "--dry-run"]).await;
    assert!(dry.err.contains("nothing was changed"), "{dry:?}");
    daemon.write("a.txt", "by hand\n");
    let failed = ctl(&daemon, &["rewind", &session.id, at, "--files"]).await;
    assert!(failed.code != 0 && failed.err.contains("a.txt"), "{failed:?}");
    daemon.write("a.txt", "second\n");
    let out = ctl(&daemon, &["rewind", &session.id, at, "--files"]).await.stdout();
    assert!(out.contains("restored") && out.contains("deleted"), "{out}");
    assert_eq!(daemon.read("a.txt"), "first\n");
}

#[tokio::test]
async fn rewind_changes_no_file_of_an_import_and_none_outside_workspace() {
    let daemon = TestDaemon::builder().config(TOOLS_ALLOWED).start().await;
    let session = two_turns(&daemon).await;
    let outside = daemon.path("outside.txt");
    std::fs::write(&outside, "new\n").expect("written");
    let new = daemon.workspace().join("new.txt");
    let (new, outside_text) = (new.to_str().expect("text"), outside.to_str().expect("text"));
    let data = exported(&session, "jsonl").await;
    assert!(data.contains(new));
    for (data, why) in
        [(data.clone(), "imported"), (data.replace(new, outside_text), "outside the session's")]
    {
        let copy = imported(&session.client, &data).await;
        let params = json!({"item_id": item(&copy, "done one").await, "files": true});
        let reply = copy.call("rewind", params).await;
        let conflicts = reply["conflicts"].as_array().expect("conflicts");
        assert_eq!((conflicts.len(), &reply["removed_items"]), (3, &json!([])), "{reply}");
        assert!(conflicts.iter().any(|it| it["reason"].as_str().expect("text").contains(why)), "{reply}");
        assert_eq!((daemon.read("a.txt").as_str(), daemon.read("new.txt").as_str()), ("second\n", "new\n"));
        assert_eq!(std::fs::read_to_string(&outside).expect("kept"), "new\n");
    }

    // The rewound file lies in a folder that no longer belongs to the workspace.
    let more = daemon.path("more");
    std::fs::create_dir(&more).expect("created");
    session.call("update", json!({"additional_dirs": [more]})).await;
    let file = more.join("f.txt");
    run(&daemon, &session, "three", vec![write(file.to_str().expect("text"), "f\n")]).await;
    session.call("update", json!({"additional_dirs": []})).await;
    let params = json!({"item_id": item(&session, "done two").await, "files": true});
    let reply = session.call("rewind", params).await;
    let reason = reply["conflicts"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("outside the session's workspace") && file.exists(), "{reply}");
}
