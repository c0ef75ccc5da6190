//! The todo list of a session: the model writes it, clients show it, it survives a crash, and reminders mention it.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

fn write(todos: Value) -> (&'static str, Value) {
    ("TodoWrite", json!({ "todos": todos }))
}

fn two_todos() -> Value {
    json!([
        {"content": "Read the code", "status": "completed"},
        {"content": "Write the test", "status": "in_progress", "active_form": "Writing the test"},
    ])
}

/// Lets the model write a list in a turn of its own.
async fn write_list(daemon: &TestDaemon, session: &Session, seen: &mut Log, todos: Value) {
    daemon.models.push(Step::calls([write(todos)]));
    daemon.models.push(Step::text("Noted."));
    session.submit("plan it").await;
    seen.turn_ends("success").await;
}

async fn list_todos(session: &Session) -> Value {
    session.call("get", json!({})).await["session"]["todos"].clone()
}

#[tokio::test]
async fn todo_list_is_written_without_request_and_survives_crash_and_fork() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "plan"})).await;
    let mut seen = session.follow().await;
    write_list(&daemon, &session, &mut seen, two_todos()).await;
    assert!(seen.events_of("permission.requested").is_empty(), "no permission is needed, also in plan mode");
    assert_eq!(seen.events_of("todo.updated")[0]["todos"], two_todos());
    assert_eq!(list_todos(&session).await, two_todos());
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::calls([("TodoRead", json!({}))]));
    daemon.models.push(Step::text("Read."));
    session.submit("what is left?").await;
    seen.turn_ends("success").await;
    let output = seen.events_of("tool.completed")[0]["output"].clone();
    assert_eq!(output, "[x] Read the code\n[>] Write the test");
    let id = session.call("fork", json!({})).await["session"]["session_id"].clone();
    let fork = daemon.client("carol").await;
    let copied = fork.call("session.get", json!({"session_id": id})).await["session"]["todos"].clone();
    assert_eq!(copied, two_todos());
    // `/todos` shows the list without a model call, and `/clear` removes it.
    let shown = session.call("submit", json!({"input": "/todos"})).await;
    assert_eq!(shown["text"], "[x] Read the code\n[>] Write the test");
    session.call("submit", json!({"input": "/clear"})).await;
    assert_eq!(list_todos(&session).await, Value::Null);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn rewind_restores_todo_list_of_that_moment() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    write_list(&daemon, &session, &mut seen, two_todos()).await;
    let items = session.call("items", json!({})).await["items"].clone();
    let last = items.as_array().and_then(|items| items.last()).expect("an item")["item_id"].clone();
    write_list(&daemon, &session, &mut seen, json!([])).await;
    assert_eq!(list_todos(&session).await, Value::Null);
    session.call("rewind", json!({"item_id": last})).await;
    assert_eq!(list_todos(&session).await, two_todos());
    daemon.models.push(Step::calls([("TodoRead", json!({}))]));
    daemon.models.push(Step::text("Read."));
    session.submit("read it").await;
    seen.turn_ends("success").await;
    let read = seen.events_of("tool.completed");
    assert!(read.last().expect("a result")["output"].to_string().contains("Write the test"));
}

#[tokio::test]
async fn wrong_todo_list_is_refused_with_its_place() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    write_list(&daemon, &session, &mut seen, json!([{"content": "x", "status": "half"}])).await;
    let failed = &seen.events_of("tool.completed")[0];
    assert_eq!((&failed["status"], &failed["code"]), (&json!("failed"), &json!("invalid_input")));
    assert!(failed["output"].to_string().contains("todos[0].status"), "{failed}");
    assert!(seen.events_of("todo.updated").is_empty());
}

/// The kinds of the reminders about the todo list so far.
fn reminders(seen: &Log) -> Vec<Value> {
    let added = seen.events_of("reminder.added");
    let kinds = added.iter().map(|event| event["kind"].clone());
    kinds.filter(|kind| kind.to_string().contains("todo")).collect()
}

#[tokio::test]
async fn model_is_reminded_of_empty_and_stale_list_after_ten_steps() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    for number in 0..10 {
        daemon.models.push(Step::calls([bash(&format!("true {number}"))]));
    }
    daemon.models.push(Step::calls([write(two_todos())]));
    for number in 0..10 {
        daemon.models.push(Step::calls([bash(&format!("true {number}"))]));
    }
    daemon.models.push(Step::text("Done."));
    session.submit("work").await;
    seen.turn_ends("success").await;
    assert_eq!(reminders(&seen), ["todo_empty", "todo_stale"]);
    let sent = daemon.models.requests();
    assert!(!sent[9].body.to_string().contains("Your todo list is empty"));
    assert!(sent[10].body.to_string().contains("Your todo list is empty"));
    assert!(sent.last().expect("one").body.to_string().contains("[>] Write the test"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn session_without_todo_tool_gets_no_reminder() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    let options = json!({"tools": {"deny": ["TodoWrite"]}});
    let session = daemon.client("alice").await.create_with(&daemon, options).await;
    let mut seen = session.follow().await;
    for number in 0..11 {
        daemon.models.push(Step::calls([bash(&format!("true {number}"))]));
    }
    daemon.models.push(Step::text("Done."));
    session.submit("work").await;
    seen.turn_ends("success").await;
    assert_eq!(reminders(&seen), Vec::<Value>::new());
}

#[tokio::test]
async fn todo_list_written_as_text_is_taken() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    write_list(&daemon, &session, &mut seen, two_todos().to_string().into()).await;
    assert_eq!(list_todos(&session).await.as_array().map(Vec::len), Some(2));
    // A wrong value is reported with its field and what is wanted.
    write_list(&daemon, &session, &mut seen, json!(7)).await;
    let sent = daemon.models.requests().pop().expect("a request").body["messages"].to_string();
    assert!(sent.contains("at `todos`: expected a list"), "{sent}");
    assert!(!sent.contains("struct "), "{sent}");
}
