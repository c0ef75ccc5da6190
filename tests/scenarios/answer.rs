//! Questions that a restart asks: the id stays the same over further restarts, the answer counts once,
//! and the turn continues or ends as the user chooses.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

const BASH_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// A daemon that was killed while a command ran, and was started again.
async fn daemon_with_a_lost_command() -> (TestDaemon, Session, Log, Value) {
    let mut daemon = TestDaemon::builder().config(BASH_ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let lost = "echo begun >> log.txt; echo begun; sleep 1000";
    daemon.models.push(Step::calls([bash(lost), bash("echo second >> log.txt")]));
    session.submit("go").await;
    let said = seen.wait_for("tool.progress").await;
    poll_until(
        "the command to begin",
        || daemon.log(),
        || (daemon.read("log.txt") == "begun\n").then_some(()),
    )
    .await;

    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    let asked = seen.wait_for("question.requested").await;
    assert_eq!(asked["call_id"], said["call_id"]);
    (daemon, session, seen, asked)
}

async fn answer(session: &Session, asked: &Value, choice: &str) -> Value {
    let params = json!({"request_id": asked["request_id"], "choice": choice});
    session.client.call("session.answer", params).await
}

#[tokio::test]
async fn lost_command_raises_question_and_informs_model() {
    let (mut daemon, session, _, asked) = daemon_with_a_lost_command().await;
    assert_eq!(asked["kind"], "unknown_outcome");
    assert_eq!(asked["options"], json!(["continue", "abort"]));
    assert_eq!((&asked["tool"], &asked["output"]), (&json!("Bash"), &json!("begun\n")));
    assert!(asked["input"]["command"].as_str().is_some_and(|command| command.contains("sleep 1000")));
    assert!(asked["request_id"].as_str().is_some_and(|id| id.starts_with("ask_")));
    let view = session.view().await;
    assert_eq!((&view["state"], &view["requires"]), (&json!("requires_action"), &json!("unknown_outcome")));
    let status = |items: Vec<Value>| {
        let calls = items.into_iter().filter(|item| item["call"]["call_id"] == asked["call_id"]);
        calls.map(|item| item["call"]["status"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(status(session.items().await), ["unknown"]);

    // After any number of restarts it is the same question, and every client that attaches receives it.
    daemon.crash_and_restart().await;
    let session = daemon.client("carol").await.join(&session);
    let mut seen = session.follow().await;
    assert_eq!(seen.wait_for("question.requested").await, asked);
    let wrong = json!({"request_id": asked["request_id"], "choice": "perhaps"});
    let refused = session.client.refused("session.answer", wrong).await;
    assert_eq!((refused.code, &refused.data["options"]), (-32602, &json!(["continue", "abort"])));
    let unknown = json!({"request_id": "ask_0190f2a4-0000-7000-8000-000000000001", "choice": "continue"});
    assert_eq!(session.client.refused("session.answer", unknown).await.code, -32002);
    let words = json!({"request_id": asked["request_id"], "choice": "continue", "text": "hm"});
    assert_eq!(session.client.refused("session.answer", words).await.kind, "unsupported");

    daemon.models.push(Step::text("I look first."));
    let keyed = json!({"request_id": asked["request_id"], "choice": "continue", "idempotency_key": "k"});
    let reply = session.client.call("session.answer", keyed.clone()).await;
    assert_eq!(reply["session_id"], session.id.as_str());
    let resolved = seen.wait_for("question.resolved").await;
    assert_eq!((&resolved["seq"], &resolved["choice"]), (&reply["seq"], &json!("continue")));
    assert_eq!((&resolved["by"], &resolved["origin"]["client"]), (&json!("answer"), &json!("carol")));
    let lost = seen.wait_for_call("tool.completed", &asked["call_id"]).await;
    assert_eq!((&lost["status"], &lost["code"]), (&json!("unknown"), &json!("unknown_outcome")));
    seen.turn_ends("success").await;
    assert_eq!(
        daemon.read("log.txt"),
        "begun\nsecond\n",
        "the lost command does not run again, the next one runs once"
    );
    let results = daemon.models.requests()[1].tool_results();
    assert_eq!(results.len(), 2);
    assert!(results[0].1.contains("outcome is unknown") && results[0].1.contains("begun"), "{results:?}");

    // A repeated answer is accepted, but changes nothing.
    assert_eq!(session.client.call("session.answer", keyed).await, reply);
    daemon.crash_and_restart().await;
    let session = daemon.client("dave").await.join(&session);
    let late = json!({"request_id": asked["request_id"], "choice": "abort"});
    let refused = session.client.refused("session.answer", late).await;
    assert_eq!((refused.code, &refused.data["answered_by"]["client"]), (-32014, &json!("carol")));
    assert_eq!(refused.data["choice"], "continue");
    assert_eq!(session.events().await.iter().filter(|e| e["type"] == "question.requested").count(), 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_choice_ends_turn_and_informs_model_in_next() {
    let (mut daemon, session, mut seen, asked) = daemon_with_a_lost_command().await;
    answer(&session, &asked, "abort").await;
    seen.turn_ends("aborted").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    assert_eq!(session.view().await["state"], "idle", "an aborted turn does not resume");
    daemon.models.push(Step::text("I see."));
    let mut seen = session.follow_after(seen.last_seq()).await;
    session.submit("what happened?").await;
    seen.turn_ends("success").await;
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("outcome is unknown"), "{results:?}");
    assert!(results[1].1.contains("was not run"), "{results:?}");
    assert_eq!(daemon.read("log.txt"), "begun\n");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn session_abort_withdraws_pending_question() {
    let (daemon, session, mut seen, asked) = daemon_with_a_lost_command().await;
    session.call("abort", json!({})).await;
    let resolved = seen.wait_for("question.resolved").await;
    assert_eq!((&resolved["request_id"], &resolved["by"]), (&asked["request_id"], &json!("abort")));
    seen.turn_ends("aborted").await;
    let late = json!({"request_id": asked["request_id"], "choice": "continue"});
    assert_eq!(session.client.refused("session.answer", late).await.code, -32014);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn new_input_answers_pending_question_and_reaches_model() {
    let (daemon, session, mut seen, _) = daemon_with_a_lost_command().await;
    daemon.models.push(Step::text("Understood."));
    let reply = session.submit_with(json!({"input": "never mind the log"})).await;
    assert_eq!(reply["state"], "steered");
    let resolved = seen.wait_for("question.resolved").await;
    assert_eq!((&resolved["choice"], &resolved["by"]), (&json!("continue"), &json!("submit")));
    seen.turn_ends("success").await;
    let request = daemon.models.requests()[1].body.to_string();
    assert!(request.contains("never mind the log") && request.contains("outcome is unknown"), "{request}");
    daemon.models.assert_no_breach();
}

/// A background session with this policy; its daemon died while a command ran.
async fn unattended_with_a_lost_command(on_timeout: &str) -> (TestDaemon, Session, Log, Value) {
    let config = format!("{BASH_ALLOWED}\n[permissions.unattended]\non_timeout = \"{on_timeout}\"\n");
    let mut daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = session.follow().await;
    let lost = bash("echo begun >> log.txt; echo begun; sleep 1000");
    daemon.models.push(Step::calls([lost, bash("echo after >> later.txt")]));
    daemon.models.push(Step::text("I look first."));
    session.submit("go").await;
    let said = seen.wait_for("tool.progress").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let seen = session.follow().await;
    (daemon, session, seen, said)
}

#[tokio::test]
async fn unattended_lost_command_informs_model_and_continues_turn() {
    for policy in ["deny", "allow_read_only"] {
        let (daemon, _session, mut seen, said) = unattended_with_a_lost_command(policy).await;
        let lost = seen.wait_for_call("tool.completed", &said["call_id"]).await;
        assert_eq!(lost["status"], "unknown", "{policy}");
        seen.turn_ends("success").await;
        assert!(seen.events_of("question.requested").is_empty(), "{policy}");
        let request = daemon.models.requests()[1].body.to_string();
        assert!(request.contains("outcome is unknown"), "{policy}: {request}");
        assert_eq!((daemon.read("log.txt"), daemon.read("later.txt")), ("begun\n".into(), "after\n".into()));
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn unattended_pause_policy_keeps_question_pending() {
    let (daemon, session, mut seen, said) = unattended_with_a_lost_command("pause").await;
    let asked = seen.wait_for("question.requested").await;
    assert_eq!((&asked["kind"], &asked["call_id"]), (&json!("unknown_outcome"), &said["call_id"]));
    seen.state_is("paused").await;
    let view = session.view().await;
    assert_eq!((&view["state"], &view["requires"]), (&json!("paused"), &json!("unknown_outcome")));
    answer(&session, &asked, "continue").await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "begun\n", "never run again");
}

#[tokio::test]
async fn unattended_fail_policy_ends_turn_with_reason() {
    let (daemon, session, mut seen, said) = unattended_with_a_lost_command("fail").await;
    let lost = seen.wait_for_call("tool.completed", &said["call_id"]).await;
    assert_eq!(lost["status"], "unknown");
    let result = seen.turn_ends("error_during_execution").await;
    assert_eq!(result["errors"][0]["kind"], "unknown_outcome");
    seen.state_is("idle").await;

    session.submit("what happened?").await;
    seen.turn_ends("success").await;
    let request = daemon.models.requests()[1].body.to_string();
    assert!(request.contains("outcome is unknown"), "the model is told: {request}");
    assert_eq!(daemon.read("log.txt"), "begun\n");
    daemon.models.assert_no_breach();
}
