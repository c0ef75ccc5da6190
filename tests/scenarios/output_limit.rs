//! An answer that stops at the output limit: the daemon requests it again with a higher limit, then
//! lets the model continue, then ends the turn with an error. A truncated call never runs.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, Api, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::Step;

async fn start(api: Api, config: &str) -> (TestDaemon, Session, Log) {
    let daemon = TestDaemon::builder().api(api).config(config).start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"mode": "accept_edits"})).await;
    let seen = session.follow().await;
    (daemon, session, seen)
}

/// An answer that ends at the limit, in the API's words.
fn limited_answer(api: Api, step: Step) -> Step {
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
async fn truncated_answer_raises_output_limit_then_continues() {
    for api in ALL_APIS {
        let (daemon, session, mut seen) =
            start(api, "[model.\"scripted/model\"]\nmax_output_tokens = 64000").await;
        daemon.models.push(limited_answer(api, Step::text("one tw")));
        daemon.models.push(limited_answer(api, Step::text("one two th")));
        daemon.models.push(Step::text("ree four"));
        session.submit("count").await;
        let first = seen.next_answer().await;
        assert_eq!(
            (&first["item"]["status"], &first["superseded"], &first["usage"]["output_tokens"]),
            (&json!("interrupted"), &json!(true), &json!(5)),
            "charged, but superseded by the next answer"
        );
        let stone = seen.wait_for("message.tombstone").await;
        assert_eq!((&stone["item_id"], &stone["reason"]), (&first["item_id"], &json!("output_limit")));
        let second = seen.next_answer().await;
        assert_eq!(second["item"]["status"], "completed");
        let note = seen.find("the note", |event| event["item"]["kind"] == "notice").await;
        assert_eq!(note["item"]["role"], "user");
        let result = seen.turn_ends("success").await;
        assert_eq!((&result["text"], &result["model_calls"]), (&json!("one two three four"), &json!(3)));
        assert_eq!(result["usage"]["output_tokens"], 15);

        let requests = daemon.models.requests();
        let limits: Vec<Value> = requests.iter().map(|it| limit_of(&it.body)).collect();
        assert_eq!(limits, [32_000, 64_000, 64_000], "{api:?}");
        let last = requests[2].body.to_string();
        assert!(last.contains("one two th") && last.contains("no recap"), "{last}");
        assert!(!last.contains("\"one tw\""), "a superseded answer is not sent");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn endless_answer_ends_turn_at_output_limit() {
    for api in ALL_APIS {
        let (daemon, session, mut seen) = start(api, "").await;
        for _ in 0..4 {
            daemon.models.push(limited_answer(api, Step::text("more and ")));
        }
        session.submit("count").await;
        let result = seen.turn_ends("max_output_tokens").await;
        assert_eq!(result["text"], "more and more and more and more and ");
        assert_eq!(
            (&result["errors"][0]["kind"], &result["stop_reason"]),
            (&json!("max_output_tokens"), &json!("max_tokens"))
        );
        assert_eq!(daemon.models.requests().len(), 4, "{api:?}: an unknown limit is not raised");
        daemon.models.push(Step::text("Yes."));
        session.submit("still there?").await;
        assert_eq!(seen.turn_ends("success").await["text"], "Yes.");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn truncated_answer_runs_complete_calls_only() {
    for api in ALL_APIS {
        let (daemon, session, mut seen) = start(api, "").await;
        let write =
            |name: &str| ("Write", json!({"file_path": daemon.workspace().join(name), "content": "x"}));
        daemon
            .models
            .push(limited_answer(api, Step::calls([write("whole"), write("half")]).cut_last_call(12)));
        daemon.models.push(Step::text("I see."));
        session.submit("go").await;
        seen.turn_ends("success").await;
        assert_eq!((daemon.read("whole").as_str(), daemon.workspace().join("half").exists()), ("x", false));
        assert_eq!(seen.events_of("tool.requested").len(), 1, "{api:?}");

        // It is the only call of the answer, so the daemon requests it again.
        for bytes in [0, 9] {
            daemon.models.push(limited_answer(api, Step::calls([write("half")]).cut_last_call(bytes)));
            daemon.models.push(Step::text("Smaller, then."));
            session.submit("again").await;
            seen.turn_ends("success").await;
            let last = daemon.models.requests().pop().expect("a request").body.to_string();
            assert!(last.contains("in the middle of a tool call"), "{api:?}: {last}");
        }
        assert_eq!(seen.events_of("tool.requested").len(), 1, "{api:?}");
        assert!(!daemon.workspace().join("half").exists());
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn empty_paused_reply_ends_turn_as_error() {
    let (daemon, session, mut seen) = start(Api::Anthropic, "").await;
    daemon.models.push(Step::text("So far").stop("pause_turn"));
    let silent = "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
                  data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\"}}\n\n\
                  data: {\"type\":\"message_stop\"}\n\n";
    daemon.models.push(Step::raw(200, "text/event-stream", silent));
    session.submit("go").await;
    let result = seen.turn_ends("llm_error").await;
    assert_eq!(result["errors"][0]["kind"], "paused", "{result}");
    assert_eq!(daemon.models.requests().len(), 2);
    daemon.models.assert_no_breach();
}

/// A proxy's error for a request that does not fit: without numbers and without an error code.
const OVERFLOW: &str =
    r#"{"error":{"message":"litellm.ContextWindowExceededError: it is too long","code":"400"}}"#;

#[tokio::test]
async fn configured_output_limit_is_capped_by_remaining_budget() {
    for api in ALL_APIS {
        let (daemon, session, mut seen) = start(api, "[session]\noutput_tokens = 700").await;
        daemon.models.push(Step::text("Fine."));
        session.submit("hello").await;
        seen.turn_ends("success").await;
        // The first answer used five of the session's ten tokens.
        let budgets = json!({"output_tokens": 600, "session_output_tokens": 10});
        daemon.models.push(limited_answer(api, Step::text("As long as")));
        session.call("submit", json!({"input": "a story", "budgets": budgets})).await;
        let result = seen.turn_ends("error_max_tokens").await;
        assert_eq!(result["text"], "As long as", "the text so far is kept");
        let limits: Vec<Value> = daemon.models.requests().iter().map(|it| limit_of(&it.body)).collect();
        // OpenAI Responses requires at least 16.
        let least = if api == Api::OpenAiResponses { 16 } else { 5 };
        assert_eq!(limits, [json!(700), json!(least)], "{api:?}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn continuation_overflow_keeps_text_so_far() {
    for api in ALL_APIS {
        let (daemon, session, mut seen) = start(api, "").await;
        daemon.models.push(limited_answer(api, Step::text("all that fits")));
        daemon.models.push(Step::raw(400, "application/json", OVERFLOW));
        session.submit("a poem").await;
        let result = seen.turn_ends("max_output_tokens").await;
        assert_eq!(
            (&result["text"], &result["errors"][0]["kind"]),
            (&json!("all that fits"), &json!("context_overflow")),
            "{api:?}"
        );
        // In the first request of a turn, the overflow ends the turn once a summary does not fit either.
        for _ in 0..6 {
            daemon.models.push(Step::raw(400, "application/json", OVERFLOW));
        }
        session.submit("another").await;
        assert_eq!(seen.turn_ends("llm_error").await["errors"][0]["kind"], "context_overflow");
    }
}
