//! A database of an older version is migrated: clients see one name for each field, and its sessions continue.

use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use agentd::types::permission::digest;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

/// The folder in the fixture's paths. The test replaces it with its own.
const FOLDER: &str = "/tmp/agentd-FOLDER";
/// The command with a grant of the first session.
const GRANTED: &str = "echo ran >> runs; echo x > ../outside";

/// A daemon with a copy of `tests/fixtures/journal-2026-11.db`, and its two sessions.
async fn upgraded() -> (TestDaemon, Session, Session) {
    let mut daemon = TestDaemon::builder().build().await;
    daemon.write("notes/first.txt", "1\n2\n");
    std::fs::create_dir(daemon.path("data")).expect("created");
    std::fs::DirBuilder::new().mode(0o700).create(daemon.path("data/agentd")).expect("created");
    let database = daemon.path("data/agentd/agentd.db");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journal-2026-11.db");
    std::fs::write(&database, std::fs::read(fixture).expect("the fixture")).expect("copied");
    let folder = daemon.workspace().parent().expect("a parent").display().to_string();
    let mut db = SqliteConnectOptions::new().filename(&database).connect().await.expect("it opens");
    for statement in
        ["update event set body = replace(body, ?, ?)", "update session set cwd = replace(cwd, ?, ?)"]
    {
        sqlx::query(statement).bind(FOLDER).bind(&folder).execute(&mut db).await.expect("replaced");
    }
    // The digest of a request contains the folder.
    let requests: Vec<(i64, i64, String)> =
        sqlx::query_as("select session, seq, body from event where kind = 'permission.requested'")
            .fetch_all(&mut db)
            .await
            .expect("read");
    for (session, seq, body) in requests {
        let mut request: Value = serde_json::from_str(&body).expect("json");
        let text = |name: &str| request[name].as_str().expect("a text");
        let id = text("session_id").parse().expect("an id");
        request["digest"] = json!(digest(id, text("cwd"), text("tool"), &request["input"]));
        let update = sqlx::query("update event set body = ? where session = ? and seq = ?");
        update.bind(request.to_string()).bind(session).bind(seq).execute(&mut db).await.expect("replaced");
    }
    db.close().await.expect("closed");
    daemon.launch().await;
    let client = daemon.client("alice").await;
    let listed = client.call("session.list", json!({})).await["sessions"].clone();
    let session = |title: &str| {
        let session = listed.as_array().expect("a list").iter().find(|session| session["title"] == title);
        let id = session.unwrap_or_else(|| panic!("{title}: {listed}"))["session_id"].as_str();
        Session { client: client.clone(), id: id.expect("an id").into() }
    };
    let (one, other) = (session("Mend the test"), session("Two requests wait"));
    (daemon, one, other)
}

/// Adds the names of all fields of a value. Arguments of a call are the model's own names.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                if name != "input" {
                    names(value, found);
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| names(entry, found)),
        _ => {}
    }
}

#[tokio::test]
async fn old_events_have_the_current_names_on_the_wire() {
    let (_daemon, one, other) = upgraded().await;
    let mut events = one.events().await;
    assert!(events.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()));
    let mut log = one.follow().await;
    log.wait_for("history.repaired").await;
    let streamed = log.events_of("permission.requested");
    let read: Vec<&Value> = events.iter().filter(|event| event["type"] == "permission.requested").collect();
    assert_eq!(streamed.iter().collect::<Vec<_>>(), read, "a subscription and a page show the same");

    events.extend(other.events().await);
    let mut found = BTreeSet::new();
    events.iter().for_each(|event| names(event, &mut found));
    for (old, new) in [
        ("cut", "truncated_fields"),
        ("at", "pointer"),
        ("told", "background_read"),
        ("only_looks", "read_only_command"),
        ("ruled", "matched_aliases"),
        ("care", "sensitivity"),
        ("most", "max_usage"),
        ("kept", "kept_messages"),
        ("outside", "unsandboxed"),
        ("terms", "model_snapshot"),
    ] {
        assert_eq!((found.contains(old), found.contains(new)), (false, true), "{old} → {new}");
    }
    let kinds: BTreeSet<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert!(kinds.contains("session.prompt_built") && !kinds.contains("session.context"), "{kinds:?}");
    let settled: Vec<&Value> = events.iter().map(|event| &event["by"]).collect();
    assert!(settled.contains(&&json!("no_approver")) && !settled.contains(&&json!("nobody")));
    let grant = events.iter().find_map(|event| event["grant"].as_str());
    assert_eq!(grant, Some(&*format!("Unsandboxed({GRANTED})")));
    let all = json!(events).to_string();
    assert!(!all.contains("Outside("), "no rule text has the old name");

    // Truncated values are still found in their blobs.
    let requested =
        |event: &&Value| event["type"] == "tool.requested" && event["truncated_fields"].is_array();
    let requested = events.iter().find(requested).expect("a truncated call");
    let field = &requested["truncated_fields"][0];
    assert_eq!(field["pointer"], "/input/content");
    let blob = one.call("blob", json!({"blob_id": field["blob_id"]})).await;
    assert_eq!(blob["content"].as_str().map(str::len), field["bytes"].as_u64().map(|bytes| bytes as usize));
    assert!(!one.items().await.is_empty());
}

#[tokio::test]
async fn old_pending_request_can_be_answered() {
    let (daemon, _, session) = upgraded().await;
    assert_eq!(session.view().await["state"], "requires_action");
    let pending = session.pending().await;
    assert_eq!(pending.len(), 2, "{pending:?}");
    assert_eq!(pending[0]["read_only_command"], true, "{}", pending[0]);
    daemon.models.push(Step::text("Both done."));
    let mut seen = session.follow().await;
    for request in &pending {
        session.allow(request).await;
    }
    assert_eq!(seen.turn_ends("success").await["text"], "Both done.");
    let results: Vec<Value> = seen.events_of("tool.completed");
    assert_eq!(daemon.read("late.txt"), "late\n", "{results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn old_grant_still_lets_its_command_run_unsandboxed() {
    let (daemon, session, _) = upgraded().await;
    let rules = session.client.call("permission.rules", json!({"session_id": session.id})).await;
    assert!(rules.to_string().contains(&format!("Unsandboxed({GRANTED})")), "{rules}");
    if session.client.sandbox().await["landlock"] != "works" {
        base::skip_test!("landlock does not work here");
        return;
    }
    let mut seen = session.follow_after(session.view().await["last_seq"].as_u64().expect("a seq")).await;
    daemon.models.push(Step::calls([("Bash", json!({"command": GRANTED}))]));
    daemon.models.push(Step::text("Done."));
    session.submit("again").await;
    session.allow(&seen.wait_for("permission.requested").await).await;
    seen.turn_ends("success").await;
    let started = &seen.events_of("tool.started")[0];
    assert_eq!((&started["sandbox"]["unsandboxed"], daemon.path("outside").exists()), (&json!(true), true));
    daemon.models.assert_no_breach();
}
