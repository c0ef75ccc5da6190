//! An answer is cut at the output limit: it is asked for again with a higher one, then the model goes on
//! where it stopped, then the turn says that it was too long. A call that was cut never runs.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, Api, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::Step;

async fn start(api: Api, config: &str) -> (TestDaemon, Session, Log) {
    let house = TestDaemon::builder().api(api).config(config).start().await;
    let session = house.client("alice").await.create_with(&house, json!({"mode": "accept_edits"})).await;
    let seen = session.follow().await;
    (house, session, seen)
}

/// An answer that ends at the limit, in the words of the API.
fn cut(api: Api, step: Step) -> Step {
    step.stop(match api {
        Api::Anthropic => "max_tokens",
        Api::OpenAiChat => "length",
        Api::OpenAiResponses => "max_output_tokens",
    })
}

fn limit_of(body: &Value) -> Value {
    let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    names.iter().map(|name| &body[*name]).find(|limit| !limit.is_null()).cloned().unwrap_or_default()
}

#[tokio::test]
async fn an_answer_that_is_too_long_gets_more_room_then_goes_on() {
    for api in ALL_APIS {
        let (house, session, mut seen) =
            start(api, "[model.\"scripted/model\"]\nmax_output_tokens = 64000").await;
        house.models.push(cut(api, Step::text("one tw")));
        house.models.push(cut(api, Step::text("one two th")));
        house.models.push(Step::text("ree four"));
        session.submit("count").await;
        let first = seen.answer().await;
        assert_eq!(
            (&first["item"]["status"], &first["superseded"], &first["usage"]["output_tokens"]),
            (&json!("interrupted"), &json!(true), &json!(5)),
            "it was paid for and counts no more"
        );
        let stone = seen.wait_for("message.tombstone").await;
        assert_eq!((&stone["item_id"], &stone["reason"]), (&first["item_id"], &json!("output_limit")));
        let second = seen.answer().await;
        assert_eq!(second["item"]["status"], "completed");
        let note = seen.find("the note", |event| event["item"]["kind"] == "notice").await;
        assert_eq!(note["item"]["role"], "user");
        let result = seen.turn_ends("success").await;
        assert_eq!((&result["text"], &result["model_calls"]), (&json!("one two three four"), &json!(3)));
        assert_eq!(result["usage"]["output_tokens"], 15);

        let requests = house.models.requests();
        let limits: Vec<Value> = requests.iter().map(|it| limit_of(&it.body)).collect();
        assert_eq!(limits, [32_000, 64_000, 64_000], "{api:?}");
        let last = requests[2].body.to_string();
        assert!(last.contains("one two th") && last.contains("no recap"), "{last}");
        assert!(!last.contains("\"one tw\""), "what counts no more is not sent");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn an_answer_without_end_ends_the_turn() {
    for api in ALL_APIS {
        let (house, session, mut seen) = start(api, "").await;
        for _ in 0..4 {
            house.models.push(cut(api, Step::text("more and ")));
        }
        session.submit("count").await;
        let result = seen.turn_ends("max_output_tokens").await;
        assert_eq!(result["text"], "more and more and more and more and ");
        assert_eq!(
            (&result["errors"][0]["kind"], &result["stop_reason"]),
            (&json!("max_output_tokens"), &json!("max_tokens"))
        );
        assert_eq!(house.models.requests().len(), 4, "{api:?}: the limit is not known, so it is not raised");
        house.models.push(Step::text("Yes."));
        session.submit("still there?").await;
        assert_eq!(seen.turn_ends("success").await["text"], "Yes.");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn of_the_calls_in_a_cut_answer_only_the_whole_ones_run() {
    for api in ALL_APIS {
        let (house, session, mut seen) = start(api, "").await;
        let write =
            |name: &str| ("Write", json!({"file_path": house.workspace().join(name), "content": "x"}));
        house.models.push(cut(api, Step::calls([write("whole"), write("half")]).cut_last_call(12)));
        house.models.push(Step::text("I see."));
        session.submit("go").await;
        seen.turn_ends("success").await;
        assert_eq!((house.read("whole").as_str(), house.workspace().join("half").exists()), ("x", false));
        assert_eq!(seen.seen_of("tool.requested").len(), 1, "{api:?}");

        // The only call of the answer: the model is asked for it again.
        for bytes in [0, 9] {
            house.models.push(cut(api, Step::calls([write("half")]).cut_last_call(bytes)));
            house.models.push(Step::text("Smaller, then."));
            session.submit("again").await;
            seen.turn_ends("success").await;
            let last = house.models.requests().pop().expect("a request").body.to_string();
            assert!(last.contains("in the middle of a tool call"), "{api:?}: {last}");
        }
        assert_eq!(seen.seen_of("tool.requested").len(), 1, "{api:?}");
        assert!(!house.workspace().join("half").exists());
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn a_pause_without_a_word_is_not_asked_about_for_ever() {
    let (house, session, mut seen) = start(Api::Anthropic, "").await;
    house.models.push(Step::text("So far").stop("pause_turn"));
    let silent = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
                  data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"}}\n\n\
                  data: {\"type\":\"message_stop\"}\n\n";
    house.models.push(Step::raw(200, "text/event-stream", silent));
    session.submit("go").await;
    let result = seen.turn_ends("llm_error").await;
    assert_eq!(result["errors"][0]["kind"], "paused", "{result}");
    assert_eq!(house.models.requests().len(), 2);
    house.models.assert_no_breach();
}

/// How a proxy says that a request does not fit: without numbers, and with no word of its own.
const OVERFLOW: &str =
    r#"{"error":{"message":"litellm.ContextWindowExceededError: it is too long","code":"400"}}"#;

#[tokio::test]
async fn what_was_chosen_holds_for_unknown_models_and_no_answer_outgrows_a_budget() {
    for api in ALL_APIS {
        let (house, session, mut seen) = start(api, "[session]\noutput_tokens = 700").await;
        house.models.push(Step::text("Fine."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
        // The answer before it had five tokens.
        let budgets = json!({"output_tokens": 600, "session_output_tokens": 10});
        house.models.push(cut(api, Step::text("As long as")));
        session.call("submit", json!({"input": "a story", "budgets": budgets})).await;
        let result = seen.turn_ends("error_max_tokens").await;
        assert_eq!(result["text"], "As long as", "what was said stands");
        let limits: Vec<Value> = house.models.requests().iter().map(|it| limit_of(&it.body)).collect();
        // OpenAI's Responses take no less than 16.
        let least = if api == Api::OpenAiResponses { 16 } else { 5 };
        assert_eq!(limits, [json!(700), json!(least)], "{api:?}");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn a_rest_that_does_not_fit_leaves_what_there_is() {
    for api in ALL_APIS {
        let (house, session, mut seen) = start(api, "").await;
        house.models.push(cut(api, Step::text("all that fits")));
        house.models.push(Step::raw(400, "application/json", OVERFLOW));
        session.submit("a poem").await;
        let result = seen.turn_ends("max_output_tokens").await;
        assert_eq!(
            (&result["text"], &result["errors"][0]["kind"]),
            (&json!("all that fits"), &json!("context_overflow")),
            "{api:?}"
        );
        // From the start it is a failure.
        house.models.push(Step::raw(400, "application/json", OVERFLOW));
        session.submit("another").await;
        assert_eq!(seen.turn_ends("llm_error").await["errors"][0]["kind"], "context_overflow");
    }
}
