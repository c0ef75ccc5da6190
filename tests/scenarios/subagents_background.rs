//! Sub-agents that run in the background and report with a later message.

use serde_json::json;

use crate::scenarios::subagents::begins_with;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn background_subagent_reports_with_a_later_message() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    let held = gate.clone();
    daemon.models.set_fallback(move |request| {
        let first = begins_with(request);
        let last = request.messages().last().map(ToString::to_string).unwrap_or_default();
        match (first.contains("delegate"), request.tool_results().len()) {
            (true, _) if last.contains("Found it.") => Step::text("Thanks."),
            (true, 0) => {
                let input = json!({"description": "d", "prompt": "look", "subagent_type": "explore",
                                   "run_in_background": true});
                Step::calls([("Task", input)])
            }
            (true, _) => Step::text("It runs."),
            (false, _) => Step::text("Found it.").hold(&held),
        }
    });
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    assert_eq!(log.turn_ends("success").await["text"], "It runs.");
    gate.open();
    assert_eq!(log.turn_ends("success").await["text"], "Thanks.");
    assert_eq!(log.events_of("subagent.completed")[0]["result"]["text"], "Found it.");
}

#[tokio::test]
async fn chained_background_subagents_share_limit_of_one_turn() {
    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|request| {
        let last = request.messages().last().map(ToString::to_string).unwrap_or_default();
        if !begins_with(request).contains("delegate") {
            return Step::text("Found it.");
        }
        if request.tool_results().is_empty() || last.contains("Found it.") {
            let input = json!({"description": "d", "prompt": "look", "subagent_type": "explore", "run_in_background": true});
            return Step::calls([("Task", input)]);
        }
        Step::text("It runs.")
    });
    let limit = json!({"budgets": {"model_calls": 8}});
    let session = daemon.client("alice").await.create_with(&daemon, limit).await;
    let mut log = session.follow().await;
    session.submit("delegate").await;
    // At the limit, either the last sub-agent or the turn for its result gets no model call.
    log.find("the end of the limit", |event| {
        event["code"] == "budget" || event["result"]["subtype"] == "error_max_turns"
    })
    .await;
    assert!(daemon.models.requests().len() <= 8, "{} calls", daemon.models.requests().len());
}
