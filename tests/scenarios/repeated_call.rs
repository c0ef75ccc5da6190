//! A model that makes the same call again and again with the same result: it is reminded, then the user is asked. The
//! turn of an unattended session ends.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Request, Step};

/// Bash is allowed, and the model is stopped at the third identical call.
const LIMIT_3: &str = "[permissions]\nallow = [\"Bash\"]\n[session]\nrepeat_limit = 3";

async fn start(daemon: &TestDaemon, more: Value) -> (Session, Log) {
    let session = daemon.client("alice").await.create_with(daemon, more).await;
    let seen = session.follow().await;
    (session, seen)
}

async fn choose(session: &Session, asked: &Value, choice: &str) {
    let params = json!({"request_id": asked["request_id"], "choice": choice});
    session.client.call("session.answer", params).await;
}

fn is_reminded(request: &Request, count: u32) -> bool {
    request.body["messages"].to_string().contains(&format!("{count} times in a row"))
}

#[tokio::test]
async fn eighth_identical_call_asks_after_reminder_at_third() {
    let mut daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    daemon.models.set_fallback(|_| Step::calls([bash("echo same")]));
    let (session, mut seen) = start(&daemon, json!({})).await;
    session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    assert_eq!((&asked["kind"], &asked["options"]), (&json!("repeated_call"), &json!(["continue", "abort"])));
    assert_eq!((&asked["tool"], &asked["input"]["command"]), (&json!("Bash"), &json!("echo same")));
    let done = seen.events_of("tool.completed");
    assert_eq!((done.len(), &done[7]["call_id"]), (8, &asked["call_id"]));
    let requests = daemon.models.requests();
    assert_eq!(requests.len(), 8, "the model is not called before the answer");
    assert!(!is_reminded(&requests[2], 3) && is_reminded(&requests[3], 3));
    let reminders = seen.events_of("reminder.added");
    assert_eq!(reminders.iter().filter(|it| it["kind"] == "repeated_call").count(), 1);
    let view = session.view().await;
    assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("question")));
    let calls = session.items().await;
    let call = calls.iter().find(|item| item["call"]["call_id"] == asked["call_id"]).expect("the call");
    assert_eq!((&call["status"], &call["call"]["status"]), (&json!("completed"), &json!("completed")));

    // A restart keeps the question, and the user may let the model go on.
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("question.requested").await, asked);
    choose(&session, &asked, "continue").await;
    assert_eq!(seen.wait_for("question.resolved").await["choice"], "continue");
    let again = seen.wait_for("question.requested").await;
    assert_eq!((&again["kind"], daemon.models.requests().len()), (&json!("repeated_call"), 16));
    choose(&session, &again, "abort").await;
    let result = seen.turn_ends("aborted").await;
    assert_eq!(result["tool_calls"], 16);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn unattended_turn_ends_at_repeated_call() {
    let daemon = TestDaemon::builder().config(LIMIT_3).start().await;
    daemon.models.set_fallback(|_| Step::calls([bash("echo same"), bash("echo same")]));
    let (session, mut seen) = start(&daemon, json!({"background": true})).await;
    session.submit("go").await;
    let result = seen.turn_ends("error_repeated_call").await;
    assert_eq!((&result["errors"][0]["kind"], &result["tool_calls"]), (&json!("repeated_call"), &json!(4)));
    assert_eq!(daemon.models.requests().len(), 2, "calls of one message count as well");
    assert!(seen.events_of("question.requested").is_empty());
    assert_eq!(session.view().await["state"], "idle");
}

#[tokio::test]
async fn input_during_question_continues_turn_with_it() {
    let daemon = TestDaemon::builder().config(LIMIT_3).start().await;
    daemon.models.set_fallback(|_| Step::calls([bash("echo same")]));
    let (session, mut seen) = start(&daemon, json!({})).await;
    let turn = session.submit("go").await;
    let asked = seen.wait_for("question.requested").await;
    daemon.models.push(Step::text("Done."));
    let reply = session.submit_with(json!({"input": "look elsewhere"})).await;
    assert_eq!((&reply["state"], reply["turn_id"].as_str()), (&json!("steered"), Some(turn.as_str())));
    let resolved = seen.wait_for("question.resolved").await;
    assert_eq!((&resolved["request_id"], &resolved["by"]), (&asked["request_id"], &json!("submit")));
    assert_eq!((&resolved["kind"], &resolved["call_id"]), (&json!("repeated_call"), &asked["call_id"]));
    seen.turn_ends("success").await;
    let last = daemon.models.requests().pop().expect("a request");
    assert!(last.messages().last().expect("a message").to_string().contains("look elsewhere"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn calls_that_differ_or_wait_are_not_repetitions() {
    let daemon = TestDaemon::builder().config(LIMIT_3).start().await;
    let (session, mut seen) = start(&daemon, json!({})).await;
    // Another result, other arguments, another call in between, and waiting for a command.
    for _ in 0..4 {
        daemon.models.push(Step::calls([bash("echo x >> log.txt; wc -l log.txt")]));
    }
    for n in 0..4 {
        daemon.models.push(Step::calls([bash(&format!("echo {n}"))]));
    }
    for _ in 0..3 {
        daemon.models.push(Step::calls([bash("echo a"), bash("echo a"), bash("echo b")]));
    }
    daemon.models.push(Step::calls([("Bash", json!({"command": "sleep 1000", "run_in_background": true}))]));
    for _ in 0..5 {
        daemon.models.push(Step::calls([("BashOutput", json!({"bash_id": "bash_1"}))]));
    }
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let result = seen.turn_ends("success").await;
    assert_eq!(result["tool_calls"], 4 + 4 + 9 + 1 + 5);
    assert!(seen.events_of("question.requested").is_empty());
    let reminders = seen.events_of("reminder.added");
    assert!(reminders.iter().all(|it| it["kind"] != "repeated_call"), "{reminders:?}");
}

#[tokio::test]
async fn limit_of_zero_never_reminds_or_asks() {
    let config = "[permissions]\nallow = [\"Bash\"]\n[session]\nrepeat_limit = 0";
    let daemon = TestDaemon::builder().config(config).start().await;
    for _ in 0..10 {
        daemon.models.push(Step::calls([bash("echo same")]));
    }
    daemon.models.push(Step::text("Done."));
    let (session, mut seen) = start(&daemon, json!({})).await;
    session.submit("go").await;
    seen.turn_ends("success").await;
    assert!(daemon.models.requests().iter().all(|request| !is_reminded(request, 3)));
    assert!(seen.events_of("question.requested").is_empty());
}

#[tokio::test]
async fn agentctl_without_user_ends_with_code_of_limits() {
    let daemon = TestDaemon::builder().config(LIMIT_3).start().await;
    daemon.models.set_fallback(|_| Step::calls([bash("echo same")]));
    let said = ctl(&daemon, &["run", "go"]).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("repeats the same call"), "{said:?}");
    assert_eq!(daemon.models.requests().len(), 3);
}
