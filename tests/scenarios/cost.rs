//! The cost ledger: usage is stored per session and model, over restarts, crashes and deletions. It
//! agrees with the results of turns, and an unknown price is never shown as zero.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::{Gate, Step};

const PRICE: &str = "[model.\"scripted/model\"]\ncontext_window = 9000\nmax_output_tokens = 700\n\
                     price = { input = 2.0, output = 10.0 }";

/// The ledger of one session from `model.usage`.
async fn ledger(daemon: &TestDaemon, session: &str) -> Value {
    let client = daemon.client("reader").await;
    let reply = client.call("model.usage", json!({"session_id": session})).await;
    let rows = reply["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["session_id"] == session), "{reply}");
    assert_eq!(rows.len(), 1, "{reply}");
    rows[0].clone()
}

/// Asserts that both values have the same numbers.
fn agree(one: &Value, other: &Value) {
    for name in [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "calls",
        "lost_attempts",
        "estimated_calls",
        "cost_usd_micros",
        "cost_at_least_usd_micros",
    ] {
        assert_eq!(one[name], other[name], "{name}: {one} {other}");
    }
}

#[tokio::test]
async fn session_turn_and_ledger_costs_agree_after_restart() {
    let mut daemon = TestDaemon::builder().config(PRICE).start().await;
    let alice = daemon.client("alice").await;
    let (one, other) = (alice.create(&daemon).await, alice.create(&daemon).await);
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).usage(100, 10));
    daemon.models.push(Step::text("done").usage(200, 20));
    one.submit("go").await;
    let result = one.follow().await.turn_ends("success").await;
    assert_eq!(result["cost_usd_micros"], 300 * 2 + 30 * 10);
    let by_model = &result["usage_by_model"]["scripted/model"];
    assert_eq!((&by_model["calls"], &by_model["lost_attempts"]), (&json!(2), &json!(0)));
    assert_eq!((&by_model["context_window"], &by_model["max_output_tokens"]), (&json!(9000), &json!(700)));
    daemon.models.push(Step::text("other").usage(1, 1));
    other.submit("go").await;
    other.follow().await.turn_ends("success").await;

    let row = ledger(&daemon, &one.id).await;
    agree(&row, by_model);
    agree(&one.view().await["models"]["scripted/model"], by_model);
    assert_eq!(ledger(&daemon, &other.id).await["cost_usd_micros"], 12, "sessions are never mixed");

    // A later price does not change past costs.
    let dearer = PRICE.replace("2.0", "9.0");
    let file = daemon.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("the configuration").replace(PRICE, &dearer);
    std::fs::write(&file, text).expect("written");
    daemon.stop().await;
    daemon.launch().await;
    let one = daemon.client("alice").await.join(&one);
    assert_eq!(ledger(&daemon, &one.id).await, row);
    daemon.models.push(Step::text("more").usage(10, 0));
    one.submit("again").await;
    one.follow()
        .await
        .find("the second end", |event| {
            event["type"] == "turn.completed" && event["result"]["text"] == "more"
        })
        .await;
    let grown = ledger(&daemon, &one.id).await;
    assert_eq!(grown["cost_usd_micros"], 300 * 2 + 30 * 10 + 10 * 9);
    assert_eq!(one.view().await["cost_usd_micros"], grown["cost_usd_micros"]);
    // Each usage record contains the price at the time of the call.
    let priced: Vec<Value> =
        one.events().await.into_iter().filter(|e| e["model_snapshot"].is_object()).collect();
    let inputs: Vec<&Value> = priced.iter().map(|event| &event["model_snapshot"]["price"]["input"]).collect();
    assert_eq!(inputs, [&json!(2.0), &json!(2.0), &json!(9.0)]);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn attempt_interrupted_by_crash_is_recorded_once() {
    let mut daemon = TestDaemon::builder().config(PRICE).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("lost words").hold_after(1, &gate));
    daemon.models.push(Step::text("whole").usage(100, 10));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let result = session.follow().await.turn_ends("success").await;
    for _ in 0..2 {
        let row = ledger(&daemon, &session.id).await;
        agree(&row, &result["usage_by_model"]["scripted/model"]);
        assert_eq!(
            (&row["calls"], &row["lost_attempts"], &row["estimated_calls"]),
            (&json!(2), &json!(1), &json!(1))
        );
        daemon.crash_and_restart().await;
    }
    let shown = ctl(&daemon, &["cost", &session.id]).await.stdout();
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains("$0.01*")), "an estimate says so: {shown}");
}

#[tokio::test]
async fn reported_usage_of_broken_stream_replaces_estimate() {
    let daemon = TestDaemon::builder().api(Api::Anthropic).config("[retry]\nbase_ms = 1").start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("half").usage(4321, 9).break_off("overloaded_error", "too busy"));
    daemon.models.push(Step::text("whole"));
    session.submit("go").await;
    let booked = seen.wait_for("usage").await;
    assert_eq!(booked["usage"]["input_tokens"], 4321, "{booked}");
    assert!(booked["usage"]["output_tokens"].as_u64() >= Some(2), "{booked}");
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn estimate_of_broken_stream_stays_within_output_limit() {
    let daemon = TestDaemon::builder()
        .api(Api::OpenAiChat)
        .config("[session]\noutput_tokens = 20\n[retry]\nbase_ms = 1")
        .start()
        .await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text(&"many words ".repeat(40)).break_off("overloaded_error", "too busy"));
    daemon.models.push(Step::text("whole"));
    session.submit("go").await;
    let booked = seen.wait_for("usage").await;
    assert_eq!(
        (&booked["estimated"], &booked["usage"]["output_tokens"]),
        (&json!(true), &json!(20)),
        "{booked}"
    );
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn unknown_price_is_null_and_costs_outlive_deleted_session() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let session = alice.create(&daemon).await;
    daemon.models.push(Step::text("done").usage(1200, 20));
    session.submit("go").await;
    let result = session.follow().await.turn_ends("success").await;
    assert!(result["cost_usd_micros"].is_null() && result["cost_at_least_usd_micros"] == 0, "{result}");
    let view = session.view().await;
    assert!(view["cost_usd_micros"].is_null(), "{view}");
    assert!(view["models"]["scripted/model"]["cost_usd_micros"].is_null(), "{view}");
    assert_eq!(view["models"]["scripted/model"]["unpriced_calls"], 1);
    let shown = ctl(&daemon, &["cost"]).await.stdout();
    let unknown =
        shown.lines().skip(1).take(2).filter(|line| line.split_whitespace().any(|word| word == "?"));
    assert_eq!(unknown.count(), 2, "{shown}");
    let listed = ctl(&daemon, &["models", "--json"]).await.json();
    let model = listed.as_array().and_then(|list| list.iter().find(|view| view["model"] == "scripted/model"));
    let model = model.unwrap_or_else(|| panic!("{listed}"));
    assert!(
        model["price"].is_null() && model["known"] == false && model["pointers"] == json!(["main"]),
        "{model}"
    );

    session.call("delete", json!({})).await;
    // The calls of another session with this id would be missing in the ledger.
    let again = json!({"session_id": session.id, "cwd": daemon.workspace()});
    assert_eq!(alice.refused("session.create", again).await.kind, "invalid_params");
    let row = ledger(&daemon, &session.id).await;
    assert!(row["title"].is_null() && row["input_tokens"] == 1200, "{row}");
    let total = ctl(&daemon, &["cost", "--json"]).await.json();
    assert_eq!((&total["total"]["calls"], &total["total"]["cost_usd_micros"]), (&json!(1), &json!(null)));
    assert_eq!(ctl(&daemon, &["cost", "--since", "1h", "--json"]).await.json()["total"]["calls"], 1);
    let refused = alice.refused("model.usage", json!({"cursor": "nonsense"})).await;
    assert_eq!(refused.kind, "invalid_params", "{refused:?}");
}

#[tokio::test]
async fn result_counts_tool_calls_cache_hits_and_all_tokens() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let list = || ("LS", json!({"path": "."}));
    daemon.models.push(Step::calls([list(), list()]).usage(100, 10).cache_read(40));
    daemon.models.push(Step::calls([list()]).usage(10, 1));
    daemon.models.push(Step::text("done").usage(200, 20).cache_read(60));
    session.submit("go").await;
    let mut seen = session.follow().await;
    let result = seen.turn_ends("success").await;
    assert_eq!((&result["tool_calls"], &result["cache_hit_tokens"]), (&json!(3), &json!(100)));
    let total = 100 + 10 + 40 + 10 + 1 + 200 + 20 + 60;
    for usage in
        [&result["usage"], &result["usage_by_model"]["scripted/model"], &session.view().await["usage"]]
    {
        assert_eq!(usage["total"], total, "{usage}");
    }
    let answers = seen.events_of("message.completed").into_iter().filter(|it| it["usage"].is_object());
    let totals: Vec<Value> = answers.map(|it| it["usage"]["total"].clone()).collect();
    assert_eq!(totals, [150, 11, 280]);

    // The counts are those of one turn.
    daemon.models.push(Step::text("again"));
    session.submit("again").await;
    let next = seen.turn_ends("success").await;
    assert_eq!((&next["tool_calls"], &next["cache_hit_tokens"]), (&json!(0), &json!(0)));
}
