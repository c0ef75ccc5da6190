//! Limits that hold inside a running tool or answer, warnings before a limit, and the limit on money.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

const ALLOWED: &str = "[permissions]\nallow = [\"Bash\"]\n";
const PRICED: &str = "[model.\"scripted/model\"]\nprice = { input = 1.0, output = 10.0 }\n";

#[tokio::test]
async fn wall_time_ends_running_command() {
    let daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let limits = json!({"budgets": {"wall_time_ms": 600}});
    let session = daemon.client("alice").await.create_with(&daemon, limits).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sleep 60")]));
    session.submit("go").await;
    seen.wait_for("tool.started").await;
    let warned = seen.wait_for("budget.warning").await;
    assert_eq!((&warned["budget"], &warned["limit"]), (&json!("wall_time_ms"), &json!(600)));
    assert!(warned["used"].as_u64() >= Some(480), "{warned}");
    let aborting = seen.wait_for("turn.aborting").await;
    assert_eq!(aborting["subtype"], "error_max_time");
    let done = seen.wait_for("tool.completed").await;
    assert_eq!(done["status"], "cancelled");
    let result = seen.turn_ends("error_max_time").await;
    assert_eq!(result["errors"][0]["kind"], "budget");
    assert!(result["duration_ms"].as_u64() < Some(20_000), "{result}");
    daemon.tool_processes_reach(|count| count == 0).await;
    // The conversation is valid for the next turn.
    daemon.models.push(Step::text("Yes."));
    session.submit("still there?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn wall_time_ends_streaming_answer_and_keeps_its_text() {
    let daemon = TestDaemon::start().await;
    let limits = json!({"budgets": {"session_wall_time_ms": 500}});
    let session = daemon.client("alice").await.create_with(&daemon, limits).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    let result = seen.turn_ends("error_max_time").await;
    assert!(result["errors"][0]["message"].as_str().expect("a text").contains("session"), "{result}");
    daemon.models.wait_for_hangups(1).await;
    let items = session.items().await;
    assert_eq!((&items[1]["status"], &items[1]["text"]), (&json!("interrupted"), &json!("one ")));
    let kinds: Vec<&Value> = items.iter().map(|item| &item["kind"]).collect();
    assert_eq!(kinds, ["user_message", "assistant_message", "error"]);
    assert!(items[2]["text"].as_str().expect("a text").contains("limit of 500 ms"), "{items:?}");
    // The daemon refuses a submit at once if its limit is already used up.
    let refused =
        session.refused("submit", json!({"input": "x", "budgets": {"session_wall_time_ms": 100}})).await;
    assert_eq!((refused.code, refused.kind.as_str()), (-32013, "budget"));
}

#[tokio::test]
async fn wall_time_holds_after_restart() {
    let mut daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let limits = json!({"budgets": {"wall_time_ms": 1_500}});
    let session = daemon.client("alice").await.create_with(&daemon, limits).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.set_fallback(move |_| Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    seen.text_of(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("error_max_time").await;
}

#[tokio::test]
async fn money_limit_ends_turn_after_warning() {
    let config = format!("{ALLOWED}{PRICED}");
    let daemon = TestDaemon::builder().config(&config).start().await;
    // A call costs 100 + 10 * 10 micro-dollars.
    daemon.models.set_fallback(|_| Step::calls([bash("true")]).usage(100, 10));
    let limits = json!({"budgets": {"usd_micros": 500, "model_calls": 50}});
    let session = daemon.client("alice").await.create_with(&daemon, limits).await;
    let mut seen = session.follow().await;
    session.submit("never stop").await;
    let result = seen.turn_ends("error_max_budget_usd").await;
    assert_eq!((&result["model_calls"], &result["cost_usd_micros"]), (&json!(3), &json!(600)));
    let warnings = seen.events_of("budget.warning");
    assert_eq!(warnings.len(), 1, "once for each limit and turn: {warnings:?}");
    let warned = &warnings[0];
    let told = (&warned["budget"], &warned["used"], &warned["limit"]);
    assert_eq!(told, (&json!("usd_micros"), &json!(400), &json!(500)));
    assert_eq!(daemon.models.requests().len(), 3);
    // The next turn has its own limit on money, and its own warning.
    session.submit("again").await;
    seen.turn_ends("error_max_budget_usd").await;
    assert_eq!(seen.events_of("budget.warning").len(), 2);
}

#[tokio::test]
async fn endless_answer_is_stopped_at_output_limit() {
    let daemon = TestDaemon::start().await;
    let limits = json!({"budgets": {"output_tokens": 100}});
    let session = daemon.client("alice").await.create_with(&daemon, limits).await;
    let mut seen = session.follow().await;
    // This server ignores the limit of the request.
    let gate = Gate::new();
    let endless = vec!["x".repeat(1_000); 8];
    daemon.models.push(Step::pieces(endless).hold_after(6, &gate));
    session.submit("go").await;
    seen.turn_ends("error_max_tokens").await;
    assert_eq!(daemon.models.requests()[0].body["max_tokens"], 100);
    daemon.models.wait_for_hangups(1).await;
}

#[tokio::test]
async fn turn_resumed_too_often_leaves_session_failed() {
    let mut daemon = TestDaemon::builder().config("[retry]\nresumes = 0\n").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    seen.text_of(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("error_during_execution").await;
    assert_eq!(session.view().await["state"], "failed");
    daemon.crash_and_restart().await;
    let session = daemon.client("carol").await.join(&session);
    assert_eq!(session.view().await["state"], "failed", "also after a restart");
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::text("Done."));
    session.submit("again").await;
    seen.turn_ends("success").await;
    assert_eq!(session.view().await["state"], "idle");
}

#[tokio::test]
async fn events_carry_step_and_reasoning_is_an_item() {
    let config = format!("{ALLOWED}[model.\"scripted/model\"]\nthinking = true\n");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"thinking": "low"})).await;
    let hello = session.client.call("daemon.hello", json!({})).await;
    assert_eq!(hello["event_version"], 1);
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("true")]).thinking("I run it."));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    seen.turn_ends("success").await;
    let events = session.events().await;
    let steps = |kind: &str| -> Vec<Value> {
        events.iter().filter(|event| event["type"] == kind).map(|event| event["step"].clone()).collect()
    };
    assert_eq!(steps("message.started"), [json!(1), json!(2)]);
    assert_eq!(steps("tool.completed"), [json!(1)]);
    assert_eq!(steps("turn.completed"), [json!(2)]);
    assert_eq!(steps("session.created"), [Value::Null]);
    let phases: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "turn.phase").map(|event| &event["phase"]).collect();
    let step = ["compact_check", "normalize", "model_call"];
    let expected = [&["input", "context"][..], &step, &["tool_execution"], &step, &["result"]].concat();
    assert_eq!(phases, expected);
    let items = session.items().await;
    let reasoning: Vec<&Value> = items.iter().filter(|item| item["kind"] == "reasoning").collect();
    assert_eq!((reasoning.len(), &reasoning[0]["text"]), (1, &json!("I run it.")), "{items:?}");
    assert_ne!(reasoning[0]["item_id"], items[1]["item_id"]);
}
