//! C9 to C14 for a command that runs a second time without the sandbox that blocked the first run. Each
//! run has its own intent, and each happens at most once.

use serde_json::{Value, json};

use super::invariants::Journals;
use super::matrix_ways;
use super::pilot::CrashTolerantClient;
use super::story::{CrashScenario, bash};
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;

matrix_ways! {
    c09_unsandboxed_retry_request_is_pending_after_restart => c9,
    c10_uncommitted_unsandboxed_retry_answer_is_requested_again => c10,
    c12_unsandboxed_retry_about_to_start_has_unknown_outcome => c12,
    c14_blocked_run_without_committed_result_is_unknown => c14_first,
    c14_unsandboxed_retry_without_committed_result_is_unknown => c14_second,
}

/// A scenario whose daemon dies at `point`. Returns `None` and prints a note if the machine has no
/// sandbox.
async fn begin(point: &str, way: CrashMode) -> Option<CrashScenario> {
    let story =
        CrashScenario::begin(TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]"), point, way)
            .await;
    let status = story.daemon.client("eve").await.call("daemon.status", json!({})).await;
    let told = &status["sandbox"]["landlock"];
    if told != "works" {
        eprintln!("SKIPPED: landlock does not work here: {told}");
        return None;
    }
    Some(story)
}

/// Submits a command that counts its runs and is then blocked by the sandbox.
async fn submit(story: &CrashScenario) -> CrashTolerantClient {
    let command = format!("echo ran >> runs; echo x > {}", story.daemon.path("outside").display());
    story.daemon.models.push(Step::calls([bash(&command)]));
    story.daemon.models.push(Step::text("Done."));
    let pilot = story.session().await;
    pilot.submit("go", "k").await;
    pilot
}

/// Same as `submit`; the client allows the permission request, and the daemon dies at its crash point.
async fn allowed(story: &mut CrashScenario) -> CrashTolerantClient {
    let pilot = submit(story).await;
    let (_, mut log) = story.reopen_session(&pilot).await;
    let asked = log.wait_for("permission.requested").await;
    pilot.approve(&asked, json!({"decision": "allow"})).await;
    story.crashed().await;
    pilot
}

/// How often the command ran, and whether one run wrote outside the sandbox.
fn done(story: &CrashScenario) -> (usize, bool) {
    (story.daemon.read("runs").lines().count(), story.daemon.path("outside").exists())
}

/// After the restart the same permission request is pending. The client allows it, and the second run
/// is the last.
async fn still_asked(mut story: CrashScenario, pilot: CrashTolerantClient) {
    story.restart().await;
    let (session, mut log) = story.reopen_session(&pilot).await;
    let pending = session.pending().await;
    assert_eq!((pending.len(), &pending[0]["kind"]), (1, &json!("sandbox")), "{pending:?}");
    let asked = log.wait_for("permission.requested").await;
    assert_eq!(pending[0]["request_id"], asked["request_id"]);
    let pilot = story.join(&pilot).await;
    pilot.approve(&asked, json!({"decision": "allow"})).await.expect("it lives").expect("taken");
    log.turn_ends("success").await;
    assert_eq!(done(&story), (2, true));
    let journals = story.finish_and_check().await;
    assert_eq!(events_of_kind(&journals, &pilot, "tool.started").len(), 2);
    assert_eq!(events_of_kind(&journals, &pilot, "permission.requested").len(), 1);
}

fn events_of_kind(journals: &Journals, pilot: &CrashTolerantClient, kind: &str) -> Vec<Value> {
    journals[&pilot.session].values().filter(|event| event["type"] == kind).cloned().collect()
}

/// After the restart the daemon asks about a run with an unknown outcome; the user answers "continue".
async fn unknown(mut story: CrashScenario, pilot: CrashTolerantClient, expected: (usize, bool)) -> Value {
    story.restart().await;
    let (_, mut log) = story.reopen_session(&pilot).await;
    let question = log.wait_for("question.requested").await;
    assert_eq!(question["kind"], "unknown_outcome");
    let joined = story.join(&pilot).await;
    joined.decide(&question, "continue").await.expect("it lives").expect("taken");
    log.turn_ends("success").await;
    assert_eq!(done(&story), expected, "never run by itself");
    let journals = story.finish_and_check().await;
    let outcome = events_of_kind(&journals, &pilot, "tool.completed").remove(0);
    assert_eq!(outcome["status"], "unknown");
    outcome
}

async fn c9(way: CrashMode) {
    let Some(mut story) = begin("C9", way).await else { return };
    let pilot = submit(&story).await;
    story.crashed().await;
    assert_eq!(done(&story), (1, false));
    still_asked(story, pilot).await;
}

async fn c10(way: CrashMode) {
    let Some(mut story) = begin("C10", way).await else { return };
    let pilot = allowed(&mut story).await;
    assert_eq!(done(&story), (1, false));
    still_asked(story, pilot).await;
}

async fn c12(way: CrashMode) {
    let Some(mut story) = begin("C12:2", way).await else { return };
    let pilot = allowed(&mut story).await;
    let outcome = unknown(story, pilot, (1, false)).await;
    let told = outcome["output"].as_str().expect("a text");
    assert!(told.contains("stopped the first run") && told.contains("outcome is unknown"), "{told}");
}

async fn c14_first(way: CrashMode) {
    let Some(mut story) = begin("C14", way).await else { return };
    let pilot = submit(&story).await;
    let journals = story.crashed().await;
    assert!(events_of_kind(&journals, &pilot, "tool.blocked").is_empty());
    unknown(story, pilot, (1, false)).await;
}

async fn c14_second(way: CrashMode) {
    let Some(mut story) = begin("C14:2", way).await else { return };
    let pilot = allowed(&mut story).await;
    unknown(story, pilot, (2, true)).await;
}
