//! Events while a command runs, and what the user and the model receive of it.

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

/// A daemon where commands need no permission, and its session.
async fn free_daemon() -> (TestDaemon, Session, Log) {
    let daemon =
        TestDaemon::builder().config("[permissions]\nallow = [\"Bash\", \"Edit\", \"Write\"]").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let seen = session.follow().await;
    (daemon, session, seen)
}

/// Runs one command and returns its `tool.completed` event.
async fn run(daemon: &TestDaemon, session: &Session, seen: &mut Log, input: Value) -> Value {
    daemon.models.push(Step::calls([("Bash", input)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let completed = seen.wait_for("tool.completed").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    completed
}

#[tokio::test]
async fn command_output_is_streamed_while_running() {
    let (daemon, session, mut seen) = free_daemon().await;
    let command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second >&2";
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let first = seen.wait_for("tool.progress").await;
    assert_eq!((&first["stream"], &first["text"]), (&json!("stdout"), &json!("first\n")));
    assert_eq!(first["step"], 1, "{first}");
    // A client that attaches now receives the output as well.
    let mut late = daemon.client("bob").await.join(&session).follow().await;
    assert_eq!(late.wait_for("tool.progress").await, first);
    daemon.write("go", "");
    let second = seen.wait_for("tool.progress").await;
    assert_eq!((&second["stream"], &second["text"]), (&json!("stdout"), &json!("second\n")));
    let completed = seen.wait_for("tool.completed").await;
    assert_eq!(completed["detail"]["exit_code"], 0);
    let output = completed["output"].as_str().expect("text");
    assert!(output.contains("first") && output.contains("second"), "{output}");
    seen.turn_ends("success").await;
    assert!(session.events().await.iter().all(|event| event["type"] != "tool.progress"), "it is pruned");
}

#[tokio::test]
async fn command_output_flood_is_excerpted_for_model() {
    let (daemon, session, mut seen) = free_daemon().await;
    let flood = "echo begin; head -c 30000000 /dev/zero | tr '\\0' 'x'; echo; echo end";
    let completed = run(&daemon, &session, &mut seen, json!({"command": flood})).await;
    assert_eq!(completed["status"], "completed");
    let output = completed["output"].as_str().expect("text");
    assert!(output.len() < 200_000, "{} bytes", output.len());
    assert!(output.contains("begin") && output.contains("end"), "both ends are kept");
}

#[tokio::test]
async fn failing_command_is_reported_with_exit_code() {
    let (daemon, session, mut seen) = free_daemon().await;
    let completed = run(&daemon, &session, &mut seen, json!({"command": "echo oops >&2; exit 3"})).await;
    assert_eq!((&completed["status"], &completed["detail"]["exit_code"]), (&json!("failed"), &json!(3)));
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[0].1.contains("oops") && results[0].1.contains('3'), "{results:?}");
}

#[tokio::test]
async fn command_over_timeout_is_killed_with_its_children() {
    let (daemon, session, mut seen) = free_daemon().await;
    let input = json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout_ms": 300});
    let completed = run(&daemon, &session, &mut seen, input).await;
    assert_eq!((&completed["status"], &completed["code"]), (&json!("failed"), &json!("timed_out")));
    assert_eq!(daemon.tool_processes(), []);
    assert!(completed["output"].as_str().expect("text").contains("begun"));
}

#[tokio::test]
async fn processes_left_by_command_are_killed_with_it() {
    let (daemon, session, mut seen) = free_daemon().await;
    let completed = run(&daemon, &session, &mut seen, json!({"command": "sleep 1000 & echo started"})).await;
    assert_eq!(completed["status"], "completed");
    assert_eq!(daemon.tool_processes(), []);
}

#[tokio::test]
async fn command_has_no_terminal_input_or_api_key() {
    let canary = "sk-canary-0123456789abcdef";
    let daemon = TestDaemon::builder()
        .provider("api_key_env = \"CANARY_KEY\"")
        .environment("CANARY_KEY", canary)
        .config("[permissions]\nallow = [\"Bash\"]")
        .start()
        .await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let input = json!({"command": "cat; tty; env; ls -l /proc/self/fd"});
    let completed = run(&daemon, &session, &mut seen, input).await;
    let output = completed["output"].as_str().expect("text");
    assert!(output.contains("not a tty") && output.contains("AGENTD_CALL="), "{output}");
    assert!(!output.contains(canary) && !output.contains("CANARY_KEY"), "{output}");
    assert!(!output.contains("agentd.db") && !output.contains("agentd.lock"), "{output}");
}

#[tokio::test]
async fn non_utf8_output_keeps_model_request_valid() {
    let (daemon, session, mut seen) = free_daemon().await;
    let input = json!({"command": "printf 'a\\377\\000\\033[31mb'"});
    let completed = run(&daemon, &session, &mut seen, input).await;
    let output = completed["output"].as_str().expect("text");
    assert!(output.contains('a') && output.contains('b'), "{output:?}");
}

#[tokio::test]
async fn externally_changed_file_is_not_overwritten() {
    let (daemon, session, mut seen) = free_daemon().await;
    daemon.write("a.txt", "one\ntwo\n");
    let file = daemon.workspace().join("a.txt");
    daemon.models.push(Step::calls([("Read", json!({"file_path": file}))]));
    daemon.models.push(Step::text("I know it."));
    session.submit("read it").await;
    seen.turn_ends("success").await;

    daemon.write("a.txt", "one\ntwo and a half\n");
    let edit = json!({"file_path": file, "old_string": "one", "new_string": "1"});
    daemon.models.push(Step::calls([("Edit", edit.clone())]));
    daemon.models.push(Step::calls([("Read", json!({"file_path": file}))]));
    daemon.models.push(Step::calls([("Edit", edit)]));
    daemon.models.push(Step::text("Done."));
    session.submit("change it").await;
    let refused = seen.wait_for("tool.completed").await;
    assert_eq!((&refused["status"], &refused["code"]), (&json!("failed"), &json!("file_changed")));
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("a.txt"), "1\ntwo and a half\n");
    let changed = &seen.events_of("file.changed")[0];
    assert!(changed["diff"].as_str().expect("a diff").contains("-one\n+1"), "{changed}");
    daemon.models.assert_no_breach();
}
