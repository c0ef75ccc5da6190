//! C8 to C11 and C19: a tool call needs permission, its request is answered, or the call is aborted.

use serde_json::json;

use super::client_log::StreamCursor;
use super::invariants::appended_once;
use super::matrix_ways;
use super::scenario::{CrashScenario, bash};
use super::tolerant_client::{AnswerPolicy, CrashTolerantClient};
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::Step;
use crate::support::wait::poll_until;

matrix_ways! {
    c8_uncommitted_permission_request_is_created_once => c8,
    c9_pending_permission_request_stays_pending => c9,
    c10_uncommitted_permission_answer_has_no_effect => c10,
    c11_committed_permission_answer_is_not_requested_again => c11,
    c19_committed_abort_is_completed_after_restart => c19,
    c24_project_grant_applies_after_restart => c24,
}

async fn start_asking_session(scenario: &CrashScenario) -> CrashTolerantClient {
    scenario.daemon.models.push(Step::calls([bash("echo once >> log.txt")]).say("I log it."));
    scenario.daemon.models.push(Step::text("It is logged."));
    scenario.session().await
}

/// Answers the only pending request over a new connection. The tool runs once and the turn ends.
async fn is_answered_once(scenario: CrashScenario, tolerant: &CrashTolerantClient) {
    let (session, mut log) = scenario.reopen_session(tolerant).await;
    let asked = log.wait_for("permission.requested").await;
    session.allow(&asked).await;
    log.turn_ends("success").await;
    assert_eq!(log.events_of("permission.requested").len(), 1, "asked once");
    assert_eq!(session.pending().await.len(), 0);
    assert_eq!(scenario.daemon.models.requests().len(), 2, "the model was not asked again for the call");
    let done = log.events_of("tool.completed");
    assert_eq!(done[0]["status"], "completed", "{done:?}");
    appended_once(&scenario.daemon.read("log.txt"), ["once"]);
    scenario.finish_and_check().await;
}

async fn c8(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C8", way).await;
    let tolerant = start_asking_session(&scenario).await;
    tolerant.submit("log it", "k").await;
    let journals = scenario.wait_crashed().await;
    let asked = journals[&tolerant.session].values().filter(|event| event["type"] == "permission.requested");
    assert_eq!(asked.count(), 0, "the request is not committed");
    scenario.restart().await;
    is_answered_once(scenario, &tolerant).await;
}

async fn c9(way: CrashMode) {
    for attached in [true, false] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C9", way).await;
        scenario.daemon.models.push(Step::calls([bash("echo once >> log.txt")]).say("I log it."));
        scenario.daemon.models.push(Step::text("It is logged."));
        let tolerant = scenario.session_with(json!({"background": !attached})).await;
        let flight = attached.then(|| tolerant.run(StreamCursor::default(), AnswerPolicy::Watches));
        tolerant.submit("log it", "k").await;
        let journals = scenario.wait_crashed().await;
        if let Some(flight) = flight {
            flight.await.expect("no panic");
        }
        let asked =
            journals[&tolerant.session].values().find(|event| event["type"] == "permission.requested");
        let asked = asked.expect("it was asked").clone();
        scenario.restart().await;
        let (session, mut log) = scenario.reopen_session(&tolerant).await;
        assert_eq!(
            log.wait_for("permission.requested").await,
            asked,
            "each client that attaches gets the request"
        );
        let pending = session.pending().await;
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0]["request_id"], asked["request_id"]);
        assert_eq!(asked["deadline_ms"].is_i64(), !attached, "unattended sessions have a deadline");
        assert_eq!(pending[0]["deadline_ms"], asked["deadline_ms"], "the deadline is unchanged");
        assert_eq!(session.view().await["state"], "requires_action");
        is_answered_once(scenario, &tolerant).await;
    }
}

async fn c10(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C10", way).await;
    let tolerant = start_asking_session(&scenario).await;
    let flight = tolerant.run(StreamCursor::default(), AnswerPolicy::Answers);
    tolerant.submit("log it", "k").await;
    let journals = scenario.wait_crashed().await;
    flight.await.expect("no panic");
    let settled = journals[&tolerant.session].values().filter(|event| event["type"] == "permission.resolved");
    assert_eq!(settled.count(), 0, "the answer was not committed");
    scenario.restart().await;
    is_answered_once(scenario, &tolerant).await;
}

/// The client allows the second of two calls first. That call waits for the first one: allowed, but not
/// started.
async fn c11(way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), "C11", way).await;
    scenario.daemon.models.push(Step::calls([bash("echo first >> log.txt"), bash("echo second >> log.txt")]));
    scenario.daemon.models.push(Step::text("Both are logged."));
    let tolerant = scenario.session().await;
    let mut log = tolerant.log(0).await.expect("a reply");
    tolerant.submit("log both", "k").await;
    let first = log.wait_for("permission.requested").await;
    let second = log.wait_for("permission.requested").await;
    assert_eq!(tolerant.approve(&second, json!({"decision": "allow"})).await, None);
    scenario.wait_crashed().await;
    assert_eq!(scenario.daemon.read("log.txt"), "", "no call runs before the first is allowed");

    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    let pending = session.pending().await;
    assert_eq!(pending.len(), 1, "only the first request is pending: {pending:?}");
    assert_eq!(pending[0]["request_id"], first["request_id"]);
    let late = session.answer_refused(&second, json!({"decision": "allow"})).await;
    assert_eq!(late.code, -32014, "the first answer counts");
    session.allow(&first).await;
    log.turn_ends("success").await;
    assert_eq!(scenario.daemon.read("log.txt"), "first\nsecond\n");
    scenario.finish_and_check().await;
}

async fn c19(way: CrashMode) {
    for command in
        ["echo begun; exec sleep 1000", "trap '' TERM; setsid -f sleep 1000; echo begun; sleep 1000"]
    {
        let plan = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]");
        let mut scenario = CrashScenario::begin(plan, "C19", way).await;
        scenario.daemon.models.push(Step::calls([bash(command)]));
        let tolerant = scenario.session().await;
        let mut log = tolerant.log(0).await.expect("a reply");
        tolerant.submit("go", "k").await;
        log.wait_for("tool.progress").await;
        let (seen, alive) = (|| scenario.daemon.log(), || scenario.daemon.tool_processes().len());
        poll_until("the processes of the call", seen, || (alive() > 0).then_some(())).await;
        assert_eq!(tolerant.abort().await, None, "not acknowledged");
        scenario.wait_crashed().await;

        // Checks that every process of the call is gone.
        scenario.restart().await;
        let (session, mut log) = scenario.reopen_session(&tolerant).await;
        log.turn_ends("aborted").await;
        log.state_is("idle").await;
        assert_eq!(session.view().await["state"], "idle");
        assert_eq!(scenario.daemon.models.requests().len(), 1, "the model was not asked again");
        scenario.finish_and_check().await;
    }
}

/// A grant for the project: the answer is in the journal, and the policy file is written after it.
async fn c24(way: CrashMode) {
    for point in ["C24.grant_owed", "C24.grant_synced", "C24.grant_written"] {
        let mut scenario = CrashScenario::begin(TestDaemon::builder(), point, way).await;
        scenario.daemon.models.push(Step::calls([bash("touch log.txt")]));
        let tolerant = scenario.session().await;
        let mut log = tolerant.log(0).await.expect("a reply");
        tolerant.submit("log it", "k").await;
        let asked = log.wait_for("permission.requested").await;
        let answer = json!({"decision": "allow", "scope": "project", "grant": "Bash(touch:*)"});
        assert_eq!(tolerant.approve(&asked, answer).await, None, "not acknowledged");
        let journals = scenario.wait_crashed().await;
        let resolved =
            journals[&tolerant.session].values().find(|event| event["type"] == "permission.resolved");
        assert_eq!(resolved.expect("the grant is in the journal")["scope"], "project");
        scenario.restart().await;
        let (session, _) = scenario.reopen_session(&tolerant).await;
        let known = session.client.call("permission.rules", json!({"session_id": session.id})).await;
        let rules = known["rules"].as_array().expect("rules");
        assert_eq!(rules.len(), 1, "{point}: {known}");
        assert_eq!(rules[0]["scope"], "project");
        assert!(session.pending().await.is_empty(), "answered once");
        let policy = scenario.daemon.path("data/agentd/policy");
        let left = std::fs::read_dir(policy).expect("there").count();
        assert_eq!(left, 1, "no temporary file is left");
    }
}
