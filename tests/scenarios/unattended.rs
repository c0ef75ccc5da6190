//! Unattended sessions: deadlines that survive restarts, the outcome of expired requests, limits, and a
//! command that notifies someone.

use std::path::Path;

use serde_json::{Value, json};

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

/// A daemon with this `[permissions.unattended]` and a background session whose model calls this
/// command.
async fn expect_request(config: &str, command: &str) -> (TestDaemon, Session, Log) {
    let daemon = TestDaemon::builder().config(&format!("[permissions.unattended]\n{config}")).start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let seen = session.follow().await;
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    (daemon, session, seen)
}

fn last_tool_result(daemon: &TestDaemon) -> String {
    let last = daemon.models.requests().pop().expect("a request");
    last.tool_results().pop().expect("a result").1
}

#[tokio::test]
async fn expired_request_is_denied_and_reported_to_model() {
    let (daemon, session, mut seen) = expect_request("deadline = \"300ms\"", "touch never").await;
    let asked = seen.wait_for("permission.requested").await;
    let wait = asked["deadline_ms"].as_i64().expect("a deadline") - asked["at_ms"].as_i64().expect("a time");
    assert_eq!((wait, &asked["on_timeout"]), (300, &json!("deny")));
    let expired = seen.wait_for("permission.expired").await;
    assert_eq!((&expired["request_id"], &expired["on_timeout"]), (&asked["request_id"], &json!("deny")));
    assert!(expired["at_ms"].as_i64() >= asked["deadline_ms"].as_i64(), "not before the deadline");
    assert_eq!(seen.wait_for("permission.resolved").await["by"], "timeout");
    seen.turn_ends("success").await;
    let words = last_tool_result(&daemon);
    assert!(words.contains("no user answered in time") && !words.contains("denied"), "{words}");
    assert!(!daemon.workspace().join("never").exists());
    let late = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert!(late.code == -32014 && late.message.contains("want of an answer"), "{late:?}");
}

#[tokio::test]
async fn attended_request_has_no_deadline() {
    let daemon = TestDaemon::builder().config("[permissions.unattended]\ndeadline = \"1ms\"").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch it")]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["deadline_ms"].is_null(), "{asked}");
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.expired").is_empty());
}

#[tokio::test]
async fn unattended_request_without_deadline_is_denied_immediately() {
    let (daemon, _session, mut seen) = expect_request("deadline = \"0s\"", "touch never").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());
    let ended = seen.events_of("tool.completed").pop().expect("a result");
    assert_eq!((&ended["status"], &ended["code"]), (&json!("denied"), &json!("unattended")));
    assert!(last_tool_result(&daemon).contains("no user can be asked"), "{}", last_tool_result(&daemon));
}

#[tokio::test]
async fn paused_request_stays_pending_and_answer_continues_turn() {
    let (daemon, session, mut seen) =
        expect_request("deadline = \"50ms\"\non_timeout = \"pause\"", "touch late").await;
    let asked = seen.wait_for("permission.requested").await;
    seen.wait_for("permission.expired").await;
    seen.state_is("paused").await;
    let view = session.view().await;
    assert_eq!((&view["state"], &view["requires"]), (&json!("paused"), &json!("permission")));
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(daemon.workspace().join("late").exists());
}

#[tokio::test]
async fn fail_policy_ends_turn_at_deadline() {
    let (_daemon, _session, mut seen) =
        expect_request("deadline = \"50ms\"\non_timeout = \"fail\"", "touch never").await;
    let result = seen.turn_ends("permission_denied").await;
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn allow_read_only_policy_excludes_sensitive_paths() {
    let config = "[permissions.unattended]\ndeadline = \"50ms\"\non_timeout = \"allow_read_only\"\n[permissions]\nsafe_commands = false";
    let daemon = TestDaemon::builder().config(config).start().await;
    let outside = daemon.path("outside.txt");
    std::fs::write(&outside, "far away").expect("written");
    daemon.write(".env", "KEY=1");
    daemon.write("looked-at", "1\n2\n3\n");
    let session = daemon.client("alice").await.create_with(&daemon, json!({"background": true})).await;
    let mut seen = session.follow().await;
    let read = |path: &Path| ("Read", json!({"file_path": path}));
    let calls = [
        read(&outside),
        read(&daemon.workspace().join(".env")),
        bash("touch never"),
        bash("cat .env"),
        bash("wc -l looked-at | cut -d' ' -f1"),
    ];
    daemon.models.push(Step::calls(calls));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let last = daemon.models.requests().pop().expect("a request");
    let results: Vec<String> = last.tool_results().into_iter().map(|(_, text)| text).collect();
    assert!(results[0].contains("far away"), "{results:?}");
    assert!(results[1..4].iter().all(|text| text.contains("no user answered")), "{results:?}");
    assert_eq!(results[4].trim(), "3", "a read-only command: {results:?}");
    assert_eq!(seen.events_of("permission.expired").len(), 5);
}

#[tokio::test]
async fn request_deadline_is_unchanged_by_restart() {
    let (mut daemon, session, mut seen) = expect_request("deadline = \"1500ms\"", "touch never").await;
    let asked = seen.wait_for("permission.requested").await;
    daemon.kill().await;
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    let expired = seen.wait_for("permission.expired").await;
    assert!(expired["at_ms"].as_i64() >= asked["deadline_ms"].as_i64(), "not before the deadline");
    seen.turn_ends("success").await;
    let asked_again = seen.events_of("permission.requested");
    assert_eq!(asked_again, [asked], "one request, with the same deadline");
}

#[tokio::test]
async fn unattended_session_always_has_default_budgets() {
    let daemon = TestDaemon::builder().config("[permissions.unattended]\nmodel_calls = 2").start().await;
    let alice = daemon.client("alice").await;
    daemon.models.set_fallback(|_| Step::calls([("LS", json!({"path": "."}))]));
    for budgets in [Value::Null, json!({"output_tokens": 1000}), json!({"model_calls": 3})] {
        let calls = if budgets["model_calls"] == 3 { 3 } else { 2 };
        let session = alice.create_with(&daemon, json!({"background": true, "budgets": budgets})).await;
        let mut seen = session.follow().await;
        session.submit("go").await;
        let started = seen.wait_for("turn.started").await;
        for limit in ["output_tokens", "wall_time_ms", "model_calls"] {
            assert!(started["budgets"][limit].is_u64(), "{started}");
        }
        assert_eq!(seen.turn_ends("error_max_turns").await["model_calls"], calls);
    }
}

#[tokio::test]
async fn session_budget_ends_turn_until_raised() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"budgets": {"session_model_calls": 2}})).await;
    let mut seen = session.follow().await;
    daemon.models.set_fallback(|_| Step::text("Hello."));
    for subtype in ["success", "success", "error_max_turns"] {
        session.submit("go").await;
        let result = seen.turn_ends(subtype).await;
        assert!(subtype == "success" || result["errors"][0]["message"].as_str().unwrap().contains("session"));
    }
    session.call("update", json!({"budgets": {"session_model_calls": 3}})).await;
    session.submit("go").await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn notify_command_receives_pending_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = folder.path().join("said");
    let config =
        format!("notify_command = [\"sh\", \"-c\", \"cat > {0}.new && mv {0}.new {0}\"]", said.display());
    let (daemon, session, mut seen) = expect_request(&config, "touch it").await;
    let asked = seen.wait_for("permission.requested").await;
    let text =
        poll_until("the command to be told", || daemon.log(), || std::fs::read_to_string(&said).ok()).await;
    let notification: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(notification["type"], "permission.requested");
    for name in ["request_id", "session_id", "tool", "input", "deadline_ms"] {
        assert_eq!(notification[name], asked[name], "{name}");
    }
    assert_eq!(notification["cwd"], json!(daemon.workspace()));
    session.allow(&asked).await;
    seen.turn_ends("success").await;

    // A command that hangs blocks nothing, and an attended session sends no notification.
    std::fs::remove_file(&said).expect("removed");
    let attended = daemon.client("alice").await.create(&daemon).await;
    let mut seen = attended.follow().await;
    daemon.models.push(Step::calls([bash("touch it")]));
    daemon.models.push(Step::text("Done."));
    attended.submit("go").await;
    let asked = seen.wait_for("permission.requested").await;
    attended.allow(&asked).await;
    seen.turn_ends("success").await;
    assert!(!said.exists(), "no notification is sent for an attended session");
}

/// A server that stores posted bodies. It answers with these statuses in order, then with the last one
/// for ever.
fn inbox(statuses: &'static [u16]) -> (String, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (posts, posted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (at, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next()?.trim().parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).expect("a body");
            let is_right =
                head.starts_with("post /hook/geheim ") && head.contains("content-type: application/json");
            let status = statuses[at.min(statuses.len() - 1)];
            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            // The daemon may have closed the connection.
            let _ = stream.write_all(answer.as_bytes());
            if posts.send(format!("{status} {is_right} {}", String::from_utf8_lossy(&body))).is_err() {
                return;
            }
        }
    });
    (format!("http://{address}/hook/geheim"), posted)
}

#[tokio::test]
async fn notify_url_receives_pending_request_with_retry() {
    let (url, posted) = inbox(&[503, 204]);
    let (_daemon, session, mut seen) = expect_request(&format!("notify_url = \"{url}\""), "touch it").await;
    let asked = seen.wait_for("permission.requested").await;
    // A temporary failure is retried.
    let (first, second) = tokio::task::spawn_blocking(move || {
        let next = || posted.recv_timeout(std::time::Duration::from_secs(20)).expect("a post");
        (next(), next())
    })
    .await
    .expect("two posts");
    let text = second.strip_prefix("204 true ").expect("a post of JSON").to_owned();
    assert_eq!(first, format!("503 true {text}"));
    let notification: Value = serde_json::from_str(&text).expect("JSON");
    for name in ["type", "request_id", "session_id", "tool", "input", "deadline_ms", "kind"] {
        assert_eq!(notification[name], asked[name], "{name}");
    }
    session.allow(&asked).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn failing_notify_url_blocks_nothing_and_logs_no_secret() {
    let (url, posted) = inbox(&[403]);
    let (daemon, session, mut seen) = expect_request(&format!("notify_url = \"{url}\""), "touch it").await;
    let asked = seen.wait_for("permission.requested").await;
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    let said = || daemon.log().contains("it answered 403").then_some(());
    poll_until("the log to tell", || daemon.log(), said).await;
    assert_eq!(posted.try_iter().count(), 1, "a refused post is not retried");
    assert!(!daemon.log().contains("geheim"), "{}", daemon.log());

    let daemon =
        TestDaemon::builder().config("[permissions.unattended]\nnotify_url = \"geheim\"").build().await;
    let output = daemon.run_until_exit().await;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains("notify_url") && !said.contains("geheim"), "{said}");
}
