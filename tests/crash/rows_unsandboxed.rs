//! C9 to C14 for a command that runs a second time without the sandbox that blocked the first run. Each
//! run has its own intent, and each happens at most once.

use serde_json::{Value, json};

use super::invariants::Journals;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::CrashTolerantClient;
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
    let scenario =
        CrashScenario::begin(TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]"), point, way)
            .await;
    let told = &scenario.daemon.client("eve").await.sandbox().await["landlock"];
    if told != "works" {
        base::skip_test!("landlock does not work here: {told}");
        return None;
    }
    Some(scenario)
}

/// Submits a command that counts its runs and is then blocked by the sandbox.
async fn submit(scenario: &CrashScenario) -> CrashTolerantClient {
    let command = format!("echo ran >> runs; echo x > {}", scenario.daemon.path("outside").display());
    scenario.daemon.models.push(Step::calls([bash(&command)]));
    scenario.daemon.models.push(Step::text("Done."));
    let tolerant = scenario.session().await;
    tolerant.submit("go", "k").await;
    tolerant
}

/// Same as `submit`; the client allows the permission request, and the daemon dies at its crash point.
async fn submit_and_allow(scenario: &mut CrashScenario) -> CrashTolerantClient {
    let tolerant = submit(scenario).await;
    let (_, mut log) = scenario.reopen_session(&tolerant).await;
    let asked = log.wait_for("permission.requested").await;
    tolerant.approve(&asked, json!({"decision": "allow"})).await;
    scenario.wait_crashed().await;
    tolerant
}

/// How often the command ran, and whether one run wrote outside the sandbox.
fn count_runs(scenario: &CrashScenario) -> (usize, bool) {
    (scenario.daemon.read("runs").lines().count(), scenario.daemon.path("outside").exists())
}

/// After the restart the same permission request is pending. The client allows it, and the second run
/// is the last.
async fn expect_pending_request(mut scenario: CrashScenario, tolerant: CrashTolerantClient) {
    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    let pending = session.pending().await;
    assert_eq!((pending.len(), &pending[0]["kind"]), (1, &json!("sandbox")), "{pending:?}");
    let asked = log.wait_for("permission.requested").await;
    assert_eq!(pending[0]["request_id"], asked["request_id"]);
    let tolerant = scenario.join(&tolerant).await;
    tolerant.approve(&asked, json!({"decision": "allow"})).await.expect("a reply").expect("accepted");
    log.turn_ends("success").await;
    assert_eq!(count_runs(&scenario), (2, true));
    let journals = scenario.finish_and_check().await;
    assert_eq!(events_of_kind(&journals, &tolerant, "tool.started").len(), 2);
    assert_eq!(events_of_kind(&journals, &tolerant, "permission.requested").len(), 1);
}

fn events_of_kind(journals: &Journals, tolerant: &CrashTolerantClient, kind: &str) -> Vec<Value> {
    journals[&tolerant.session].values().filter(|event| event["type"] == kind).cloned().collect()
}

/// After the restart the daemon asks about a run with an unknown outcome; the user answers "continue".
async fn answer_unknown_outcome(
    mut scenario: CrashScenario,
    tolerant: CrashTolerantClient,
    expected: (usize, bool),
) -> Value {
    scenario.restart().await;
    let (_, mut log) = scenario.reopen_session(&tolerant).await;
    let question = log.wait_for("question.requested").await;
    assert_eq!(question["kind"], "unknown_outcome");
    let joined = scenario.join(&tolerant).await;
    joined.decide(&question, "continue").await.expect("a reply").expect("accepted");
    log.turn_ends("success").await;
    assert_eq!(count_runs(&scenario), expected, "never run by itself");
    let journals = scenario.finish_and_check().await;
    let outcome = events_of_kind(&journals, &tolerant, "tool.completed").remove(0);
    assert_eq!(outcome["status"], "unknown");
    outcome
}

async fn c9(way: CrashMode) {
    let Some(mut scenario) = begin("C9", way).await else { return };
    let tolerant = submit(&scenario).await;
    scenario.wait_crashed().await;
    assert_eq!(count_runs(&scenario), (1, false));
    expect_pending_request(scenario, tolerant).await;
}

async fn c10(way: CrashMode) {
    let Some(mut scenario) = begin("C10", way).await else { return };
    let tolerant = submit_and_allow(&mut scenario).await;
    assert_eq!(count_runs(&scenario), (1, false));
    expect_pending_request(scenario, tolerant).await;
}

async fn c12(way: CrashMode) {
    let Some(mut scenario) = begin("C12:2", way).await else { return };
    let tolerant = submit_and_allow(&mut scenario).await;
    let outcome = answer_unknown_outcome(scenario, tolerant, (1, false)).await;
    let told = outcome["output"].as_str().expect("a text");
    assert!(told.contains("stopped the first run") && told.contains("outcome is unknown"), "{told}");
}

async fn c14_first(way: CrashMode) {
    let Some(mut scenario) = begin("C14", way).await else { return };
    let tolerant = submit(&scenario).await;
    let journals = scenario.wait_crashed().await;
    assert!(events_of_kind(&journals, &tolerant, "tool.blocked").is_empty());
    answer_unknown_outcome(scenario, tolerant, (1, false)).await;
}

async fn c14_second(way: CrashMode) {
    let Some(mut scenario) = begin("C14:2", way).await else { return };
    let tolerant = submit_and_allow(&mut scenario).await;
    answer_unknown_outcome(scenario, tolerant, (2, true)).await;
}
