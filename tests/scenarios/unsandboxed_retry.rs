//! If the sandbox blocks a command, the daemon offers to repeat it without the sandbox. The retry has
//! its own permission request, needs its own grant, and runs at most once.

use serde_json::{Value, json};

use super::agentctl::ctl;
use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::Step;

const TOOLS_ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]";

/// A daemon with a working sandbox. Returns `None` and prints a note if the machine has none.
async fn daemon(config: &str) -> Option<TestDaemon> {
    let daemon = TestDaemon::builder().config(config).start().await;
    let told = daemon.client("eve").await.sandbox().await["landlock"].clone();
    if told != "works" {
        base::skip_test!("landlock does not work here: {told}");
        return None;
    }
    Some(daemon)
}

/// Counts its runs inside the workspace, then writes outside of it.
fn reaching(daemon: &TestDaemon) -> String {
    format!("echo ran >> runs; echo x > {}", daemon.path("outside").display())
}

fn runs(daemon: &TestDaemon) -> usize {
    daemon.read("runs").lines().count()
}

/// A session in which the model calls this command.
async fn wants(daemon: &TestDaemon, more: Value, command: &str) -> (Session, Log) {
    let session = daemon.client("alice").await.create_with(daemon, more).await;
    let seen = session.follow().await;
    submit(daemon, &session, command).await;
    (session, seen)
}

async fn submit(daemon: &TestDaemon, session: &Session, command: &str) {
    daemon.models.push(Step::calls([bash(command)]));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
}

fn last_tool_result(daemon: &TestDaemon) -> String {
    let last = daemon.models.requests().pop().expect("a request");
    last.tool_results().pop().expect("a result").1
}

#[tokio::test]
async fn approved_unsandboxed_retry_runs_and_is_reported() {
    let Some(daemon) = daemon(TOOLS_ALLOWED).await else { return };
    let command = reaching(&daemon);
    let (session, mut seen) = wants(&daemon, json!({}), &command).await;
    let asked = seen.wait_for("permission.requested").await;
    let outside = json!({"level": 1, "network": true, "unsandboxed": true});
    assert_eq!((&asked["kind"], &asked["sandbox"]), (&json!("sandbox"), &outside), "{asked}");
    assert_eq!(asked["blocked"], json!({"by": "files", "what": daemon.path("outside")}));
    assert_eq!(asked["suggestions"], json!([format!("Unsandboxed({command})")]));
    assert_eq!(asked["input"]["command"], command.as_str());
    assert!(asked["reason"].as_str().expect("a text").contains("has run once"), "{asked}");
    assert!(asked["deadline_ms"].is_null());
    let first = seen.events_of("tool.blocked").pop().expect("a blocked run");
    assert_eq!((&first["status"], &first["detail"]["exit_code"]), (&json!("failed"), &json!(1)));
    assert!(first["output"].as_str().expect("a text").contains("Permission denied"), "{first}");
    assert_eq!((runs(&daemon), daemon.path("outside").exists()), (1, false));
    assert_eq!(session.pending().await[0]["kind"], "sandbox");
    let item = session.items().await.into_iter().find(|item| item["kind"] == "tool_call").expect("a call");
    assert_eq!(item["call"]["status"], "awaiting_permission");
    let listed = ctl(&daemon, &["approvals"]).await.out;
    assert!(listed.contains("OUTSIDE THE SANDBOX: Bash echo ran"), "{listed}");

    for wrong in [
        json!({"decision": "allow", "scope": "project"}),
        json!({"decision": "allow", "scope": "session", "grant": "Bash"}),
        json!({"decision": "allow", "updated_input": {"command": "true"}}),
    ] {
        assert_eq!(session.answer_refused(&asked, wrong.clone()).await.code, -32602, "{wrong}");
    }
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert_eq!((runs(&daemon), daemon.path("outside").exists()), (2, true));
    let started = seen.events_of("tool.started");
    let attempts: Vec<_> = started.iter().map(|event| (&event["attempt"], &event["sandbox"])).collect();
    assert_eq!(attempts[1], (&json!(2), &outside));
    assert!(attempts[0].0.is_null() && attempts[0].1["unsandboxed"].is_null(), "{attempts:?}");
    let done = seen.events_of("tool.completed").pop().expect("a result");
    assert_eq!((&done["status"], &done["detail"]["sandbox"]), (&json!("completed"), &outside));
    assert!(last_tool_result(&daemon).contains("let it run a second time"), "{}", last_tool_result(&daemon));
    let log = daemon.client("bob").await.call("permission.audit", json!({})).await;
    let rows = log["entries"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["kind"] == "permission").expect("its row");
    assert_eq!(row["sandbox"], "outside the sandbox, level 1, network on", "{row}");
}

#[tokio::test]
async fn denied_unsandboxed_retry_keeps_first_result() {
    let Some(daemon) = daemon(TOOLS_ALLOWED).await else { return };
    let (session, mut seen) = wants(&daemon, json!({}), &reaching(&daemon)).await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny", "feedback": "use ./out"})).await;
    seen.turn_ends("success").await;
    assert_eq!((runs(&daemon), daemon.path("outside").exists()), (1, false));
    let done = seen.events_of("tool.completed").pop().expect("a result");
    assert_eq!((&done["status"], &done["code"]), (&json!("failed"), &json!("exit_code")));
    assert_eq!(done["detail"]["unsandboxed"], "denied_with_feedback");
    let told = last_tool_result(&daemon);
    for part in ["Permission denied", "outside the sandbox, and does not want it", "use ./out", "It ran once"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }

    // With an abort the result is the same, and the session continues.
    submit(&daemon, &session, &reaching(&daemon)).await;
    let asked = seen.wait_for("permission.requested").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    assert_eq!(
        (session.answer_refused(&asked, json!({"decision": "allow"})).await.code, runs(&daemon)),
        (-32014, 2)
    );
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    assert!(told_in(&daemon).contains("the turn was stopped before that"), "{}", told_in(&daemon));
    daemon.models.assert_no_breach();
}

/// All tool results of the last model request.
fn told_in(daemon: &TestDaemon) -> String {
    let last = daemon.models.requests().pop().expect("a request");
    last.messages().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn unsandboxed_grant_covers_one_command_of_session() {
    let config = format!("{TOOLS_ALLOWED}\nallow_bypass = true\nallow_bypass_as_root = true");
    let Some(daemon) = daemon(&config).await else { return };
    let command = reaching(&daemon);
    let (session, mut seen) = wants(&daemon, json!({"mode": "accept_edits"}), &command).await;
    let asked = seen.wait_for("permission.requested").await;
    session.call("update", json!({"mode": "bypass"})).await;
    let rule = |rule: &str, kind: &str| json!({"rule": rule, "kind": kind, "scope": "session", "session_id": session.id});
    session.client.call("permission.add_rule", rule("Bash(echo:*)", "allow")).await;
    assert_eq!(session.pending().await[0]["request_id"], asked["request_id"], "the same request is pending");
    session.client.call("permission.add_rule", rule("Bash(echo ran:*)", "deny")).await;
    let why = session.answer_refused(&asked, json!({"decision": "allow"})).await;
    assert!(why.message.contains("not permitted any more"), "{why:?}");
    session.client.call("permission.remove_rule", rule("Bash(echo ran:*)", "deny")).await;
    session.answer(&asked, json!({"decision": "allow", "scope": "session"})).await;
    seen.turn_ends("success").await;
    assert_eq!(runs(&daemon), 2);

    // The same command now runs unsandboxed at once. Another command needs a new request, in every
    // mode.
    submit(&daemon, &session, &command).await;
    seen.turn_ends("success").await;
    assert_eq!((runs(&daemon), seen.events_of("tool.blocked").len()), (3, 1));
    let started = seen.events_of("tool.started").pop().expect("a start");
    let by = started["allowed_by"].as_str().expect("a text");
    assert!(
        started["sandbox"]["unsandboxed"] == true && by == format!("Bash, Unsandboxed({command})"),
        "{started}"
    );
    submit(&daemon, &session, &format!("{command} ")).await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    seen.turn_ends("success").await;

    // After the grant is removed, the command needs a request again.
    let grant = format!("Unsandboxed({command})");
    session.client.call("permission.remove_rule", rule(&grant, "allow")).await;
    submit(&daemon, &session, &command).await;
    let asked = seen.wait_for("permission.requested").await;
    assert_eq!(asked["kind"], "sandbox");
    // A grant that is added by name settles the pending request.
    session.client.call("permission.add_rule", rule(&grant, "allow")).await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("permission.resolved").pop().expect("settled")["by"], "rule");
    let elsewhere = json!({"rule": grant, "kind": "allow", "scope": "user"});
    let why = session.client.refused("permission.add_rule", elsewhere).await;
    assert!(why.code == -32602 && why.message.contains("session only"), "{why:?}");
}

#[tokio::test]
async fn unsandboxed_retry_is_not_offered_when_disabled() {
    let Some(held) = daemon(&format!("{TOOLS_ALLOWED}\n[sandbox]\noffer_unsandboxed_retry = false")).await
    else {
        return;
    };
    let command = reaching(&held);
    let (_, mut seen) = wants(&held, json!({}), &command).await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("permission.requested").is_empty());
    assert!(last_tool_result(&held).contains("probably the sandbox"), "{}", last_tool_result(&held));

    // By default, the daemon offers no retry in mode `dont_ask` and in unattended sessions.
    let config = format!(
        "{TOOLS_ALLOWED}\n[permissions.unattended]\ndeadline = \"300ms\"\n[sandbox]\nlevel = \"landlock\""
    );
    let Some(daemon) = daemon(&config).await else { return };
    let command = reaching(&daemon);
    for more in [json!({"mode": "dont_ask"}), json!({"background": true})] {
        let (_, mut seen) = wants(&daemon, more.clone(), &command).await;
        seen.turn_ends("success").await;
        assert!(seen.events_of("permission.requested").is_empty(), "{more}");
        assert_eq!(seen.events_of("tool.completed")[0]["detail"]["sandbox"]["blocked"], "files", "{more}");
    }

    // Enabled for all sessions: an unattended one waits until its deadline.
    let config = format!("{config}\noffer_unsandboxed_retry = true");
    let Some(daemon) = self::daemon(&config).await else { return };
    let (_, mut seen) = wants(&daemon, json!({"background": true}), &reaching(&daemon)).await;
    let asked = seen.wait_for("permission.requested").await;
    assert!(asked["deadline_ms"].is_i64(), "{asked}");
    assert_eq!(seen.wait_for("permission.resolved").await["by"], "timeout");
    seen.turn_ends("success").await;
    assert!(
        last_tool_result(&daemon).contains("no user answered in time. It ran once"),
        "{}",
        last_tool_result(&daemon)
    );
    assert_eq!(runs(&daemon), 1);
}

#[tokio::test]
async fn pending_unsandboxed_retry_survives_restart() {
    let Some(mut daemon) = daemon(TOOLS_ALLOWED).await else { return };
    let (session, mut seen) = wants(&daemon, json!({}), &reaching(&daemon)).await;
    let asked = seen.wait_for("permission.requested").await;
    daemon.kill().await;
    daemon.launch().await;
    let session = daemon.client("bob").await.join(&session);
    assert_eq!(session.pending().await[0]["request_id"], asked["request_id"]);
    let mut seen = session.follow().await;
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    assert_eq!((runs(&daemon), daemon.path("outside").exists()), (2, true));
    assert_eq!(seen.events_of("permission.requested").len(), 1);
    assert!(seen.events_of("question.requested").is_empty(), "no outcome is unknown");
}

#[tokio::test]
async fn temporary_files_are_deleted_with_session() {
    let Some(mut daemon) = daemon(TOOLS_ALLOWED).await else { return };
    let (session, mut seen) = wants(&daemon, json!({}), "echo x > $TMPDIR/made; pwd -P; echo $TMPDIR").await;
    seen.turn_ends("success").await;
    let output = seen.events_of("tool.completed")[0]["output"].as_str().expect("a text").to_owned();
    let folder = std::path::PathBuf::from(output.lines().nth(1).expect("a folder"));
    assert!(folder.join("made").exists(), "{output}");
    // A folder of a session that was deleted while no daemon ran.
    let orphan = folder.with_file_name("0123456789ab");
    std::fs::create_dir(&orphan).expect("made");
    daemon.stop().await;
    daemon.launch().await;
    let gone = |path: std::path::PathBuf| (!path.exists()).then_some(());
    crate::support::wait::poll_until("the orphan to go", || daemon.log(), || gone(orphan.clone())).await;
    assert!(folder.join("made").exists(), "the session keeps its folder");
    let session = daemon.client("bob").await.join(&session);
    session.call("kill", json!({})).await;
    crate::support::wait::poll_until("the session's to go", || daemon.log(), || gone(folder.clone())).await;
    std::fs::remove_dir_all(folder.parent().expect("a folder")).expect("removed");
}
