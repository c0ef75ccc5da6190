//! The title model names a session: in the background, charged to the session. It runs only if such a
//! model is configured and the session has no title.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::{Gate, Request, Step};

const TITLE_CONFIG: &str = "quick = \"scripted/small\"\n[retry]\nbase_ms = 1\nmax_ms = 5\n\
                     [model.\"scripted/small\"]\nprice = { input = 1.0, output = 5.0 }\n\
                     [model.\"scripted/model\"]\nprice = { input = 2.0, output = 10.0 }\n";

fn is_quick(request: &Request) -> bool {
    request.body["model"] == "small"
}

/// The main model answers "Done."; the title model answers with `step`.
fn script_title_model(daemon: &TestDaemon, step: impl Fn() -> Step + Send + 'static) {
    daemon.models.set_fallback(
        move |request| {
            if is_quick(request) { step() } else { Step::text("Done.").usage(200, 20) }
        },
    );
}

fn quick_requests(daemon: &TestDaemon) -> Vec<Request> {
    daemon.models.requests().into_iter().filter(is_quick).collect()
}

async fn start(daemon: &TestDaemon, more: Value) -> (Session, Log) {
    let session = daemon.client("alice").await.create_with(daemon, more).await;
    let seen = session.follow().await;
    (session, seen)
}

/// The next completed helper call.
async fn wait_helper_end(seen: &mut Log) -> Value {
    seen.wait_for("helper.completed").await
}

async fn title(session: &Session) -> String {
    session.view().await["title"].as_str().expect("a title").to_owned()
}

#[tokio::test]
async fn first_turn_creates_title_charged_to_session() {
    for api in ALL_APIS {
        let mut daemon = TestDaemon::builder().api(api).config(TITLE_CONFIG).start().await;
        script_title_model(&daemon, || Step::text("\"Mend the\u{1b}[31m test.\"\nor so").usage(100, 10));
        let (session, mut seen) = start(&daemon, json!({})).await;
        session.submit("please mend the test that fails since yesterday").await;
        let result = seen.turn_ends("success").await;
        assert_eq!(result["usage_by_model"].as_object().expect("models").len(), 1, "the turn's own model");
        assert_eq!(wait_helper_end(&mut seen).await["fault"], Value::Null);
        let titled = seen.events_of("session.updated").pop().expect("a title");
        assert_eq!((&titled["title"], &titled["titled_by"]), (&json!("Mend the test"), &json!("model")));
        assert_eq!(title(&session).await, "Mend the test");
        assert!(ctl(&daemon, &["ps"]).await.stdout().contains("Mend the test"));

        let asked = &quick_requests(&daemon)[0].body;
        let whole = asked.to_string();
        assert!(whole.contains("fails since yesterday") && !whole.contains("Done."), "{whole}");
        let tools = asked["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        assert!(!tools && asked.get("temperature").is_none() && asked.get("thinking").is_none(), "{whole}");

        // One call of the session's model: 100 and 10 tokens at 1 and 5, plus 200 and 20 at 2 and 10.
        let view = session.view().await;
        assert_eq!(view["cost_usd_micros"], 100 + 50 + 400 + 200, "{view}");
        let small = &view["models"]["scripted/small"];
        assert_eq!((&small["calls"], &small["lost_attempts"]), (&json!(1), &json!(0)), "{view}");
        assert_eq!(small["cost_usd_micros"], 150);

        // The title is stored, and the daemon does not request it again.
        daemon.stop().await;
        daemon.launch().await;
        let session = daemon.client("alice").await.join(&session);
        assert_eq!(title(&session).await, "Mend the test");
        assert_eq!(session.view().await["cost_usd_micros"], view["cost_usd_micros"]);
        let after = view["last_seq"].as_u64().expect("a number");
        let mut seen = session.follow_after(after).await;
        session.submit("and now?").await;
        seen.turn_ends("success").await;
        assert_eq!(quick_requests(&daemon).len(), 1);
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn failed_title_helper_call_is_not_retried() {
    let faults = [
        (529, "overloaded_error"),
        (429, "rate_limit_error"),
        (401, "authentication_error"),
        (500, "api_error"),
    ];
    for (status, kind) in faults {
        let daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
        // The main model is overloaded too, once.
        daemon.models.push(Step::error(529, "overloaded_error", "busy"));
        script_title_model(&daemon, move || Step::error(status, kind, "not now"));
        let (session, mut seen) = start(&daemon, json!({})).await;
        session.submit("say done").await;
        seen.turn_ends("success").await;
        assert_eq!(seen.events_of("retry").len(), 1, "the turn waited");
        let ended = wait_helper_end(&mut seen).await;
        assert!(ended["fault"].is_string(), "{ended}");
        assert_eq!(quick_requests(&daemon).len(), 1, "{status}: exactly one request");
        assert_eq!((seen.events_of("retry").len(), seen.events_of("error").len()), (1, 0), "unchanged");
        assert_eq!(title(&session).await, "say done");
        assert!(
            session.view().await["models"].get("scripted/small").is_none(),
            "refused, so nothing is booked"
        );
        // At most three attempts in all.
        for n in 2..=4 {
            session.submit("again").await;
            seen.turn_ends("success").await;
            if n <= 3 {
                wait_helper_end(&mut seen).await;
            }
        }
        assert_eq!(quick_requests(&daemon).len(), 3, "{status}");
    }
}

#[tokio::test]
async fn broken_or_invalid_title_reply_is_charged_but_unused() {
    let daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
    daemon.models.set_fallback(|request| {
        match (is_quick(request), request.body.to_string().contains("other")) {
            (false, _) => Step::text("Done."),
            (true, false) => Step::text("half a title").break_off("overloaded_error", "busy"),
            (true, true) if request.body.to_string().contains("cut") => {
                Step::text("Half a ti").stop("max_tokens")
            }
            (true, true) if request.body.to_string().contains("long") => {
                Step::text(&"A title ".repeat(20_000))
            }
            (true, true) => Step::text("…\n\"\"").usage(7, 3),
        }
    });
    let (session, mut seen) = start(&daemon, json!({})).await;
    session.submit("one").await;
    assert_eq!(wait_helper_end(&mut seen).await["fault"], "overloaded");
    let booked = seen.events_of("usage").pop().expect("a booking");
    assert_eq!(
        (&booked["reason"], &booked["purpose"], &booked["estimated"], &booked["model"]),
        (&json!("lost_attempt"), &json!("title"), &json!(true), &json!("scripted/small"))
    );
    assert_eq!(session.view().await["models"]["scripted/small"]["lost_attempts"], 1);

    let (other, mut seen) = start(&daemon, json!({})).await;
    other.submit("the other").await;
    assert_eq!(wait_helper_end(&mut seen).await["fault"], "unusable");
    for (said, fault) in [("the other is cut", "unusable"), ("the other is long", "garbage")] {
        let (session, mut seen) = start(&daemon, json!({})).await;
        session.submit(said).await;
        assert_eq!(wait_helper_end(&mut seen).await["fault"], fault, "{said}");
        assert_eq!(title(&session).await, said);
    }
    assert_eq!(title(&other).await, "the other");
    assert_eq!(other.view().await["models"]["scripted/small"]["cost_usd_micros"], 7 + 15);
}

#[tokio::test]
async fn title_given_by_client_is_never_replaced() {
    let daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
    // The title was given at creation, so there is no helper call.
    script_title_model(&daemon, || Step::text("The model's"));
    let (named, mut seen) = start(&daemon, json!({"title": "Mine"})).await;
    named.submit("one").await;
    seen.turn_ends("success").await;
    // A title that is set while the title model runs wins, even if it equals the current one.
    for given in ["Ours", "the words"] {
        let gate = Gate::new();
        let held = gate.clone();
        script_title_model(&daemon, move || Step::text("The model's").hold(&held));
        let asked = quick_requests(&daemon).len();
        let (session, mut seen) = start(&daemon, json!({})).await;
        session.submit("the words").await;
        seen.turn_ends("success").await;
        gate.wait_reached().await;
        session.call("update", json!({"title": given})).await;
        // The next turn and its end do not wait for it either.
        session.submit("go on").await;
        seen.turn_ends("success").await;
        gate.open();
        wait_helper_end(&mut seen).await;
        assert_eq!(title(&session).await, given);
        session.submit("go on").await;
        seen.turn_ends("success").await;
        assert_eq!(quick_requests(&daemon).len(), asked + 1);
    }
    assert_eq!(title(&named).await, "Mine");
    let named_id = &named.id;
    assert!(named.events().await.iter().all(|event| event["type"] != "helper.started"), "{named_id}");
}

#[tokio::test]
async fn no_title_call_without_quick_model_or_budget() {
    let spent = format!("{TITLE_CONFIG}[session.budgets]\nsession_model_calls = 1\n");
    let unpriced = "quick = \"scripted/small\"\n[model.\"scripted/model\"]\nprice = { input = 1.0, output = 1.0 }\n\
                    [session.budgets]\nsession_usd = 5.0\n";
    // The budget suffices for the turn, but not for the maximum cost of a title in addition.
    let scarce = ["session_model_calls = 2", "session_output_tokens = 219", "session_usd = 0.0015"]
        .map(|limit| format!("{TITLE_CONFIG}[session.budgets]\n{limit}\n"));
    let [few, short, poor] = &scarce;
    for config in ["[retry]\nbase_ms = 1\n", spent.as_str(), unpriced, few, short, poor] {
        let daemon = TestDaemon::builder().config(config).start().await;
        script_title_model(&daemon, || Step::text("A title"));
        let (session, mut seen) = start(&daemon, json!({})).await;
        session.submit("say done").await;
        seen.turn_ends("success").await;
        // Events that a turn's end causes are in the same transaction.
        let events = session.events().await;
        assert!(events.iter().all(|event| event["type"] != "helper.started"), "{config}");
        assert_eq!(title(&session).await, "say done");
    }
}

#[tokio::test]
async fn running_title_call_counts_towards_session_budget() {
    let config = format!("{TITLE_CONFIG}[session.budgets]\nsession_model_calls = 3\n");
    let daemon = TestDaemon::builder().config(&config).start().await;
    let gate = Gate::new();
    let held = gate.clone();
    script_title_model(&daemon, move || Step::text("A title").hold(&held));
    let (session, mut seen) = start(&daemon, json!({})).await;
    for _ in 0..2 {
        session.submit("say done").await;
        seen.turn_ends("success").await;
        gate.wait_reached().await;
    }
    session.submit("say done").await;
    seen.turn_ends("error_max_turns").await;
    assert_eq!(daemon.models.requests().len(), 3, "two turns and a title");
}

#[tokio::test]
async fn turns_do_not_wait_for_title() {
    let mut daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
    let gate = Gate::new();
    let held = gate.clone();
    let slow = Gate::new();
    let held_too = slow.clone();
    let second = Gate::new();
    let held_second = second.clone();
    daemon.models.set_fallback(move |request| match is_quick(request) {
        true if request.body.to_string().contains("two") => Step::text("A title").hold(&held_second),
        true => Step::text("A title").hold(&held),
        false if request.body.to_string().contains("slowly") => Step::text("Done.").hold(&held_too),
        false => Step::text("Done."),
    });
    let (session, mut seen) = start(&daemon, json!({})).await;
    session.submit("one").await;
    seen.turn_ends("success").await;
    gate.wait_reached().await;
    // An abort of the next turn ends that turn, but not the helper call.
    session.submit("slowly").await;
    slow.wait_reached().await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    assert!(seen.events_of("helper.completed").is_empty());
    // A kill ends it, and it is charged with its maximum possible cost.
    let (other, mut others) = start(&daemon, json!({})).await;
    other.submit("two").await;
    others.turn_ends("success").await;
    second.wait_reached().await;
    other.call("kill", json!({})).await;
    assert_eq!(wait_helper_end(&mut others).await["fault"], "stopped");
    others.wait_for("session.ended").await;
    assert_eq!(others.events_of("usage").len(), 1);
    // A regular stop does not wait for it, and the next daemon does not repeat it.
    daemon.stop().await;
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let ends: Vec<Value> =
        session.events().await.into_iter().filter(|event| event["type"] == "helper.completed").collect();
    assert_eq!((ends.len(), &ends[0]["fault"]), (1, &json!("stopped")), "{ends:?}");
    assert_eq!(session.view().await["models"]["scripted/small"]["lost_attempts"], 1);
    assert_eq!(quick_requests(&daemon).len(), 2);
}

#[tokio::test]
async fn own_command_is_in_no_title_and_not_sent_to_title_model() {
    let daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
    // An unusable title, so that the one from the input stays.
    script_title_model(&daemon, || Step::text("…\n\"\"").usage(7, 3));
    let (session, mut seen) = start(&daemon, json!({})).await;
    let command = "I ran this command myself: `make` (exit 2). Its output:\n```\nx\n```";
    let input = [command, "fix it"].map(|text| json!({"type": "text", "text": text}));
    session.submit_with(json!({ "input": input })).await;
    assert_eq!(wait_helper_end(&mut seen).await["fault"], "unusable");
    assert_eq!(title(&session).await, "fix it");
    let sent = quick_requests(&daemon).pop().expect("a request").body["messages"].to_string();
    assert!(sent.contains("fix it") && !sent.contains("make"), "{sent}");
}

#[tokio::test]
async fn title_model_gets_text_of_user_alone() {
    let daemon = TestDaemon::builder().config(TITLE_CONFIG).start().await;
    script_title_model(&daemon, || Step::text("Seven"));
    let (session, mut seen) = start(&daemon, json!({})).await;
    let schema = json!({"type": "string", "maxLength": 77});
    daemon.models.push(Step::text("\"seven\"").usage(200, 20));
    session.call("submit", json!({"input": "How old is the tree?", "output_schema": schema})).await;
    wait_helper_end(&mut seen).await;
    let sent = quick_requests(&daemon).pop().expect("a request").body["messages"].to_string();
    assert!(sent.contains("How old is the tree?"), "{sent}");
    for other in ["reminder", "maxLength", "JSON Schema", "seven"] {
        assert!(!sent.contains(other), "{other}: {sent}");
    }
}
