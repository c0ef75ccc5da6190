//! Reminders: the newest message tells the model once about each change outside the conversation.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Request, Step};

/// The newest message of a request.
fn newest_message(request: &Request) -> String {
    request.messages().last().expect("a message")["content"].to_string()
}

async fn turn(daemon: &TestDaemon, session: &Session, seen: &mut Log, text: &str) -> Request {
    daemon.models.push(Step::text("Done."));
    session.submit(text).await;
    seen.turn_ends("success").await;
    daemon.models.requests().pop().expect("one")
}

/// Asserts that each request begins with the messages of the previous one. Only the last of these may have grown.
fn assert_prefixes(requests: &[Request]) {
    let blocks = |request: &Request| -> Vec<Value> {
        let all = request
            .messages()
            .iter()
            .flat_map(|message| message["content"].as_array().expect("blocks").clone());
        all.map(|mut block| {
            block.as_object_mut().map(|block| block.remove("cache_control"));
            block
        })
        .collect()
    };
    for pair in requests.windows(2) {
        let (old, new) = (blocks(&pair[0]), blocks(&pair[1]));
        assert_eq!(old[..], new[..old.len()]);
    }
}

#[tokio::test]
async fn changed_files_are_reported_once_in_the_newest_message() {
    let daemon = TestDaemon::start().await;
    daemon.write("a.txt", "alpha\n");
    daemon.write("AGENTS.md", "Be brief.\n");
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("Read", json!({"file_path": daemon.workspace().join("a.txt")}))]));
    let first = turn(&daemon, &session, &mut seen, "read it").await;
    assert!(
        first.messages()[0]["content"].to_string().contains("A new conversation begins"),
        "{}",
        first.body
    );
    assert!(!newest_message(&turn(&daemon, &session, &mut seen, "unchanged").await).contains("<reminder>"));

    daemon.write("a.txt", "beta beta\n");
    let told = newest_message(&turn(&daemon, &session, &mut seen, "and now").await);
    assert!(told.contains("changed on disk") && told.contains("a.txt"), "{told}");
    assert_eq!(seen.events_of("reminder.added").last().expect("one")["kind"], "files_changed");
    assert!(
        !newest_message(&turn(&daemon, &session, &mut seen, "told already").await).contains("<reminder>")
    );
    std::fs::remove_file(daemon.workspace().join("a.txt")).expect("removed");
    let told = newest_message(&turn(&daemon, &session, &mut seen, "gone").await);
    assert!(told.contains("do not exist any more"), "{told}");

    daemon.write("AGENTS.md", "Be verbose.\n");
    let request = turn(&daemon, &session, &mut seen, "instructions").await;
    assert!(
        newest_message(&request).contains("project instructions changed"),
        "{}",
        newest_message(&request)
    );
    assert!(request.body["system"].to_string().contains("Be brief."), "the system prompt stays");
    assert!(
        !newest_message(&turn(&daemon, &session, &mut seen, "told already").await).contains("<reminder>")
    );
    assert_prefixes(&daemon.models.requests());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn plan_mode_and_ambiguous_edit_are_reminded() {
    let daemon = TestDaemon::start().await;
    daemon.write("a.txt", "one\none\n");
    let file = daemon.workspace().join("a.txt");
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "accept_edits"})).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([("Read", json!({"file_path": file}))]));
    let edit = json!({"file_path": file, "old_string": "one", "new_string": "two"});
    daemon.models.push(Step::calls([("Edit", edit)]));
    let request = turn(&daemon, &session, &mut seen, "edit it").await;
    let told = newest_message(&request);
    assert!(told.contains("occurs several times") && told.contains("tool_result"), "{told}");
    session.call("update", json!({"mode": "plan"})).await;
    let told = newest_message(&turn(&daemon, &session, &mut seen, "plan it").await);
    assert!(told.contains("Plan mode is on"), "{told}");
    assert_prefixes(&daemon.models.requests());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn prompt_keeps_start_date_and_new_day_is_reminded() {
    const DAY_MS: i64 = 86_400_000;
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    assert!(daemon.stop().await.success());
    // The session began yesterday.
    let database = rusqlite::Connection::open(daemon.path("data/agentd/agentd.db")).expect("opened");
    let body: String =
        database.query_row("SELECT body FROM event WHERE seq = 1", [], |row| row.get(0)).expect("a row");
    let mut event: Value = serde_json::from_str(&body).expect("an event");
    let at_ms = event["at_ms"].as_i64().expect("a time") - DAY_MS;
    event["at_ms"] = json!(at_ms);
    database.execute("UPDATE event SET body = ?1 WHERE seq = 1", [event.to_string()]).expect("changed");
    drop(database);
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow().await;
    let first = turn(&daemon, &session, &mut seen, "hello").await;
    let today = newest_message(&first);
    assert!(today.contains("today is"), "{today}");
    let system = first.body["system"].to_string();
    let start = system.split("Date at the start of the session: ").nth(1).expect("a date")[..10].to_owned();
    assert!(!today.contains(&start), "{start}: {today}");
    session.call("update", json!({"model": "scripted/other"})).await;
    let second = turn(&daemon, &session, &mut seen, "again").await;
    assert!(second.body["system"].to_string().contains(&start), "also after another model");
    assert!(!newest_message(&second).contains("today is"), "it is told once");
    daemon.models.assert_no_breach();
}
