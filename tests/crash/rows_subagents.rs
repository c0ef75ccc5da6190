//! C26: the start of a sub-agent.

use serde_json::json;

use super::matrix_ways;
use super::scenario::CrashScenario;
use crate::support::daemon::{CrashMode, TestDaemon};
use crate::support::model_server::{Request, Step};

fn is_of_parent(request: &Request) -> bool {
    request.messages()[0]["content"].to_string().contains("delegate")
}

/// The daemon dies while a sub-agent starts. After the restart the sub-agent works once, and the parent gets its
/// result.
async fn dies_at_start(point: &str, way: CrashMode) {
    let mut scenario = CrashScenario::begin(TestDaemon::builder(), point, way).await;
    scenario.daemon.models.set_fallback(|request| {
        match (is_of_parent(request), request.tool_results().len()) {
            (true, 0) => {
                let input =
                    json!({"description": "look", "prompt": "look around", "subagent_type": "explore"});
                Step::calls([("Task", input)])
            }
            (true, _) => Step::text("It found something."),
            (false, _) => Step::text("Found."),
        }
    });
    let tolerant = scenario.session().await;
    tolerant.submit("delegate it", "key").await;
    let journals = scenario.wait_crashed().await;
    let events = &journals[&tolerant.session];
    assert!(events.values().any(|event| event["type"] == "subagent.started"), "recorded before creation");
    scenario.restart().await;
    let (session, mut log) = scenario.reopen_session(&tolerant).await;
    assert_eq!(log.turn_ends("success").await["text"], "It found something.");
    let all = session.client.call("session.list", json!({"include_children": true})).await;
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(2), "one sub-agent: {all}");
    let events = session.events().await;
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((of("subagent.started"), of("subagent.completed")), (1, 1));
    let tasks = scenario.daemon.models.requests().iter().filter(|request| !is_of_parent(request)).count();
    assert!(tasks <= 2, "a lost model call is repeated once at most: {tasks}");
    scenario.finish_and_check().await;
}

async fn c26_reserved(way: CrashMode) {
    dies_at_start("C26.reserved", way).await;
}

async fn c26_created(way: CrashMode) {
    dies_at_start("C26.created", way).await;
}

async fn c26_submitted(way: CrashMode) {
    dies_at_start("C26.submitted", way).await;
}

matrix_ways! {
    reserved_subagent_is_created_after_restart => c26_reserved,
    created_subagent_gets_its_task_after_restart => c26_created,
    submitted_subagent_is_followed_after_restart => c26_submitted,
}
