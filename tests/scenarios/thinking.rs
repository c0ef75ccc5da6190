//! How much a model may think: set by the configuration, a session or a turn, and never changed inside
//! a turn.

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};

/// A model that thinks, with an output limit for any budget.
const THINKER: &str = "[model.\"scripted/model\"]\nthinking = true\nmax_output_tokens = 64000";

#[tokio::test]
async fn submit_thinking_overrides_session_thinking_for_one_turn() {
    let daemon = TestDaemon::builder().config(THINKER).config("[session]\nthinking = \"low\"").start().await;
    daemon.models.set_fallback(|_| Step::text("Yes.").thinking("Hm. "));
    let client = daemon.client("alice").await;

    let by_config = client.create(&daemon).await;
    let mut seen = by_config.follow().await;
    by_config.submit("go").await;
    seen.turn_ends("success").await;

    let own = client.create_with(&daemon, json!({"thinking": "high"})).await;
    let mut seen = own.follow().await;
    own.submit("go").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("turn.started")[0]["thinking"], "high");
    own.submit_with(json!({"input": "with a budget", "thinking": 2048})).await;
    seen.turn_ends("success").await;
    own.submit_with(json!({"input": "without", "thinking": "off"})).await;
    seen.turn_ends("success").await;
    own.call("update", json!({"thinking": "medium"})).await;
    assert_eq!(seen.wait_for("session.updated").await["thinking"], "medium");
    own.submit("as the session says now").await;
    seen.turn_ends("success").await;

    let asked: Vec<Value> = daemon.models.requests().iter().map(|r| r.body["thinking"].clone()).collect();
    let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(asked, [budget(4_096), budget(27_904), budget(2_048), Value::Null, budget(12_288)]);
    let bodies: Vec<String> =
        daemon.models.requests().iter().map(|r| r.body["messages"].to_string()).collect();
    assert!(bodies[2].contains("Hm. "), "the reasoning of the previous turn is sent: {}", bodies[2]);
    assert!(!bodies[3].contains("Hm. "), "with thinking off, no reasoning is sent: {}", bodies[3]);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn thinking_update_applies_to_next_turn_after_restart() {
    let mut daemon = TestDaemon::builder().config(THINKER).start().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([bash("touch made.txt")]).thinking("First. ").hold(&gate));
    daemon.models.push(Step::text("Done.").thinking("Second. "));
    let session = daemon.client("alice").await.create_with(&daemon, json!({"thinking": "high"})).await;
    let mut seen = session.follow().await;
    session.submit("go").await;
    gate.wait_reached().await;
    session.call("update", json!({"thinking": "off"})).await;
    let refused =
        session.refused("submit", json!({"input": "x", "when_busy": "steer", "thinking": "low"})).await;
    assert_eq!((refused.kind.as_str(), refused.data["path"].as_str()), ("invalid_params", Some("thinking")));
    session.submit_with(json!({"input": "later", "when_busy": "queue", "thinking": "low"})).await;
    gate.open();
    let asked = seen.wait_for("permission.requested").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    daemon.models.push(Step::text("Later.").thinking("Third. "));
    session.allow(&asked).await;
    seen.turn_ends("success").await;
    seen.turn_ends("success").await;
    daemon.models.push(Step::text("Off."));
    session.submit("and without").await;
    seen.turn_ends("success").await;

    let requests = daemon.models.requests();
    let budget = |n: usize| requests[n].body["thinking"]["budget_tokens"].as_u64();
    assert_eq!([budget(0), budget(1), budget(2), budget(3)], [Some(27_904), Some(27_904), Some(4_096), None]);
    assert!(requests[1].body["messages"].to_string().contains("signed_0"));
    assert!(!requests[3].body["messages"].to_string().contains("signed_"));
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn effort_is_sent_to_openai_and_unsupported_effort_reported() {
    for api in [Api::OpenAiChat, Api::OpenAiResponses] {
        let daemon = TestDaemon::builder()
            .api(api)
            .config(THINKER)
            .config("[session]\nthinking = \"auto\"")
            .start()
            .await;
        daemon.models.set_fallback(|_| Step::text("Yes.").thinking("Hm. "));
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        for thinking in [json!("auto"), json!("medium"), json!(60_000), json!("off")] {
            session.submit_with(json!({"input": "go", "thinking": thinking})).await;
            seen.turn_ends("success").await;
        }
        let told = |body: &Value| match api {
            Api::OpenAiChat => body["reasoning_effort"].clone(),
            _ => body["reasoning"].clone(),
        };
        let asked: Vec<Value> = daemon.models.requests().iter().map(|r| told(&r.body)).collect();
        let expected = match api {
            Api::OpenAiChat => [Value::Null, json!("medium"), json!("high"), Value::Null],
            _ => [
                json!({"summary": "auto"}),
                json!({"effort": "medium", "summary": "auto"}),
                json!({"effort": "high", "summary": "auto"}),
                Value::Null,
            ],
        };
        assert_eq!(asked, expected, "{api:?}");
        daemon.models.assert_no_breach();
    }

    let daemon = TestDaemon::start().await;
    daemon.models.set_fallback(|_| Step::text("Yes."));
    let session = daemon.client("alice").await.create_with(&daemon, json!({"thinking": "high"})).await;
    let mut seen = session.follow().await;
    session.submit("go").await;
    seen.turn_ends("success").await;
    session.submit("again").await;
    seen.turn_ends("success").await;
    let told: Vec<Value> = seen.events_of("notice").into_iter().filter(|n| n["kind"] == "model").collect();
    assert_eq!(told.len(), 1, "one notice: {told:?}");
    assert!(
        told[0]["text"].as_str().is_some_and(|text| text.contains("thinking = high was not asked")),
        "{told:?}"
    );
    assert!(daemon.models.requests().iter().all(|request| request.body.get("thinking").is_none()));
}

#[tokio::test]
async fn invalid_thinking_value_is_refused() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let session = client.create(&daemon).await;
    for thinking in [json!("deep"), json!(0), json!(-1), json!(true), json!(1.5), json!({"budget": 1})] {
        let create = json!({"cwd": daemon.workspace(), "thinking": thinking});
        for refused in [
            client.refused("session.create", create).await,
            session.refused("update", json!({"thinking": thinking})).await,
            session.refused("submit", json!({"input": "x", "thinking": thinking})).await,
        ] {
            assert_eq!(refused.kind, "invalid_params", "{thinking}");
            assert_eq!(refused.data["path"], "thinking", "{thinking}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn thinking_is_redacted_per_subscription_without_changing_seq() {
    let daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let session = client.create(&daemon).await;
    let gate = Gate::new();
    let thought = "Is it so?\nIt is, since nothing else is left.";
    daemon.models.push(Step::text("Yes.").thinking(thought).hold_after(3, &gate));
    let follow = async |shown: &str, after_seq: u64| {
        let include = json!({"after_seq": after_seq, "include": {"thinking": shown}});
        let subscription = session.call("subscribe", include).await;
        Log::new(client.clone(), subscription.as_str().expect("a name").to_owned())
    };
    let mut logs = Vec::new();
    for shown in ["full", "summary", "none"] {
        logs.push((shown, follow(shown, 0).await));
    }
    session.submit("is it?").await;
    gate.wait_reached().await;
    // A client that attaches in the middle of the thinking text.
    let middle = logs[0].1.wait_for("message.thinking_delta").await["seq"].as_u64().expect("a seq");
    logs.push(("none", follow("none", middle).await));
    gate.open();
    for (_, log) in &mut logs {
        log.turn_ends("success").await;
    }
    let end = logs[0].1.events_of("turn.completed")[0]["seq"].as_u64();
    let full = logs[0].1.events();
    let is_thought = |event: &&Value| event["type"] == "message.thinking_delta";
    let streamed: String =
        full.iter().filter(is_thought).filter_map(|event| event["text"].as_str()).collect();
    assert_eq!(streamed, thought);
    for (n, (shown, log)) in logs.iter().enumerate() {
        let after = if n == 3 { middle } else { 0 };
        let text = match *shown {
            "full" => json!({"type": "thinking", "text": thought, "signature": "signed_0"}),
            "summary" => json!({"type": "thinking", "text": "Is it so? …"}),
            _ => json!({"type": "thinking", "text": ""}),
        };
        let expected: Vec<Value> = full
            .iter()
            .filter(|event| event["seq"].as_u64() > Some(after) && (*shown == "full" || !is_thought(event)))
            .map(|event| {
                let mut event = event.clone();
                // Deltas and their ends are the same; the completed message shows its thinking text as
                // requested.
                if event["item"]["content"][0]["type"] == "thinking" {
                    event["item"]["content"][0] = text.clone();
                }
                event
            })
            .collect();
        let of_the_turn = |events: Vec<Value>| -> Vec<Value> {
            let is_of_it = |event: &Value| event["turn_id"].is_string() && event["seq"].as_u64() <= end;
            events.into_iter().filter(is_of_it).collect()
        };
        assert_eq!(of_the_turn(log.events()), of_the_turn(expected), "{shown} after {after}");
    }
    // The same for clients that poll.
    let page = session.call("events", json!({"include": {"thinking": "none"}})).await;
    let page = page["events"].as_array().expect("events").clone();
    assert!(!page.iter().any(|event| is_thought(&event)));
    assert!(!json!(page).to_string().contains("nothing else is left"));
    let whole = session.call("events", json!({})).await.to_string();
    assert!(whole.contains("nothing else is left"), "the journal keeps it");

    for include in [json!({"thinking": "some"}), json!({"thoughts": "none"}), json!("none")] {
        let refused = session.refused("subscribe", json!({"include": include})).await;
        assert_eq!(refused.kind, "invalid_params", "{include}");
        assert!(refused.message.contains("include"), "{refused:?}");
    }
}
