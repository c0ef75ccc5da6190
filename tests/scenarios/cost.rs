//! The cost ledger: what calls took is kept by session and model, over restarts, crashes and deletions,
//! agrees with the results of turns, and never calls an unknown price nothing.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::{Gate, Step};

const PRICE: &str = "[model.\"scripted/model\"]\ncontext_window = 9000\nmax_output_tokens = 700\n\
                     price = { input = 2.0, output = 10.0 }";

/// The ledger of one session, as `model.usage` has it.
async fn ledger(house: &TestDaemon, session: &str) -> Value {
    let client = house.client("reader").await;
    let reply = client.call("model.usage", json!({"session_id": session})).await;
    let rows = reply["rows"].as_array().expect("rows");
    assert!(rows.iter().all(|row| row["session_id"] == session), "{reply}");
    assert_eq!(rows.len(), 1, "{reply}");
    rows[0].clone()
}

/// The numbers that stand in both.
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
async fn sessions_turns_and_the_ledger_agree_also_after_a_restart_and_another_price() {
    let mut house = TestDaemon::builder().config(PRICE).start().await;
    let alice = house.client("alice").await;
    let (one, other) = (alice.create(&house).await, alice.create(&house).await);
    house.models.push(Step::calls([("LS", json!({"path": "."}))]).usage(100, 10));
    house.models.push(Step::text("done").usage(200, 20));
    one.submit("go").await;
    let result = one.follow().await.turn_ends("success").await;
    assert_eq!(result["cost_usd_micros"], 300 * 2 + 30 * 10);
    let by_model = &result["usage_by_model"]["scripted/model"];
    assert_eq!((&by_model["calls"], &by_model["lost_attempts"]), (&json!(2), &json!(0)));
    assert_eq!((&by_model["context_window"], &by_model["max_output_tokens"]), (&json!(9000), &json!(700)));
    house.models.push(Step::text("other").usage(1, 1));
    other.submit("go").await;
    other.follow().await.turn_ends("success").await;

    let row = ledger(&house, &one.id).await;
    agree(&row, by_model);
    agree(&one.view().await["models"]["scripted/model"], by_model);
    assert_eq!(ledger(&house, &other.id).await["cost_usd_micros"], 12, "sessions are never mixed");

    // What was paid was paid, whatever it would cost now.
    let dearer = PRICE.replace("2.0", "9.0");
    let file = house.path("config.toml");
    let text = std::fs::read_to_string(&file).expect("the configuration").replace(PRICE, &dearer);
    std::fs::write(&file, text).expect("written");
    house.stop().await;
    house.launch().await;
    let one = house.client("alice").await.join(&one);
    assert_eq!(ledger(&house, &one.id).await, row);
    house.models.push(Step::text("more").usage(10, 0));
    one.submit("again").await;
    one.follow()
        .await
        .find("the second end", |event| {
            event["type"] == "turn.completed" && event["result"]["text"] == "more"
        })
        .await;
    let grown = ledger(&house, &one.id).await;
    assert_eq!(grown["cost_usd_micros"], 300 * 2 + 30 * 10 + 10 * 9);
    assert_eq!(one.view().await["cost_usd_micros"], grown["cost_usd_micros"]);
    // The price that it was reckoned with stands with the call.
    let priced: Vec<Value> = one.events().await.into_iter().filter(|e| e["terms"].is_object()).collect();
    let inputs: Vec<&Value> = priced.iter().map(|event| &event["terms"]["price"]["input"]).collect();
    assert_eq!(inputs, [&json!(2.0), &json!(2.0), &json!(9.0)]);
    house.models.assert_no_breach();
}

#[tokio::test]
async fn an_attempt_that_a_crash_cut_off_is_booked_exactly_once() {
    let mut house = TestDaemon::builder().config(PRICE).start().await;
    let session = house.client("alice").await.create(&house).await;
    let gate = Gate::new();
    house.models.push(Step::text("lost words").hold_after(1, &gate));
    house.models.push(Step::text("whole").usage(100, 10));
    session.submit("go").await;
    session.follow().await.text_of(1).await;
    house.crash_and_restart().await;
    let session = house.client("alice").await.join(&session);
    let result = session.follow().await.turn_ends("success").await;
    for _ in 0..2 {
        let row = ledger(&house, &session.id).await;
        agree(&row, &result["usage_by_model"]["scripted/model"]);
        assert_eq!(
            (&row["calls"], &row["lost_attempts"], &row["estimated_calls"]),
            (&json!(2), &json!(1), &json!(1))
        );
        house.crash_and_restart().await;
    }
    let shown = ctl(&house, &["cost", &session.id]).await.fine();
    assert!(shown.lines().nth(1).is_some_and(|line| line.contains(" ~$")), "an estimate says so: {shown}");
}

#[tokio::test]
async fn what_a_provider_reported_before_it_broke_off_takes_the_place_of_the_estimate() {
    let house = TestDaemon::builder().api(Api::Anthropic).config("[retry]\nbase_ms = 1").start().await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text("half").usage(4321, 9).break_off("overloaded_error", "too busy"));
    house.models.push(Step::text("whole"));
    session.submit("go").await;
    let booked = seen.wait_for("usage").await;
    assert_eq!(booked["usage"]["input_tokens"], 4321, "{booked}");
    assert!(booked["usage"]["output_tokens"].as_u64() >= Some(2), "{booked}");
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn estimate_of_a_broken_answer_stays_within_its_output_limit() {
    let house = TestDaemon::builder()
        .api(Api::OpenAiChat)
        .config("[session]\noutput_tokens = 20\n[retry]\nbase_ms = 1")
        .start()
        .await;
    let session = house.client("alice").await.create(&house).await;
    let mut seen = session.follow().await;
    house.models.push(Step::text(&"many words ".repeat(40)).break_off("overloaded_error", "too busy"));
    house.models.push(Step::text("whole"));
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
async fn an_unknown_price_is_unknown_wherever_it_is_shown_and_money_stays_when_a_session_goes() {
    let house = TestDaemon::start().await;
    let alice = house.client("alice").await;
    let session = alice.create(&house).await;
    house.models.push(Step::text("done").usage(1200, 20));
    session.submit("go").await;
    let result = session.follow().await.turn_ends("success").await;
    assert!(result["cost_usd_micros"].is_null() && result["cost_at_least_usd_micros"] == 0, "{result}");
    let view = session.view().await;
    assert!(view["cost_usd_micros"].is_null(), "{view}");
    assert!(view["models"]["scripted/model"]["cost_usd_micros"].is_null(), "{view}");
    assert_eq!(view["models"]["scripted/model"]["unpriced_calls"], 1);
    let shown = ctl(&house, &["cost"]).await.fine();
    let last = |text: &str| {
        text.lines().map(|line| line.split_whitespace().last().map(String::from)).collect::<Vec<_>>()
    };
    assert_eq!(last(&shown)[1..3], [Some("?".into()), Some("?".into())], "{shown}");
    let listed = ctl(&house, &["models", "--json"]).await.json();
    let model = listed.as_array().and_then(|list| list.iter().find(|view| view["model"] == "scripted/model"));
    let model = model.unwrap_or_else(|| panic!("{listed}"));
    assert!(
        model["price"].is_null() && model["known"] == false && model["pointers"] == json!(["main"]),
        "{model}"
    );

    session.call("delete", json!({})).await;
    let row = ledger(&house, &session.id).await;
    assert!(row["title"].is_null() && row["input_tokens"] == 1200, "{row}");
    let total = ctl(&house, &["cost", "--json"]).await.json();
    assert_eq!((&total["total"]["calls"], &total["total"]["cost_usd_micros"]), (&json!(1), &json!(null)));
    assert_eq!(ctl(&house, &["cost", "--since", "1h", "--json"]).await.json()["total"]["calls"], 1);
    let refused = alice.refused("model.usage", json!({"cursor": "nonsense"})).await;
    assert_eq!(refused.kind, "invalid_params", "{refused:?}");
}
