//! The model or its server fails: the turn reports what happened and what to check, and the session
//! stays usable.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, Api, MESSAGE_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::Step;

/// A fake key that looks real: it must never appear anywhere.
const CANARY: &str = "sk-canary-7f3a9b2c4d5e6f70";
const FAST_RETRIES: &str = "[retry]\nbase_ms = 1\nmax_ms = 5";

async fn start(daemon: &TestDaemon) -> (Session, Log) {
    let session = daemon.client("alice").await.create(daemon).await;
    let seen = session.follow().await;
    (session, seen)
}

/// The turn ends with an error of this kind that contains these words; the next turn succeeds.
async fn expect_failure(
    daemon: &TestDaemon,
    session: &Session,
    seen: &mut Log,
    kind: &str,
    words: &[&str],
) -> Value {
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let error = &result["errors"][0];
    assert_eq!(error["kind"], kind, "{error}");
    let message = error["message"].as_str().expect("words");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in {message:?}");
    }
    assert_eq!(seen.events_of("error").len(), 1);
    seen.state_is("idle").await;

    daemon.models.push(Step::text("Hello again."));
    session.submit("once more").await;
    assert_eq!(seen.turn_ends("success").await["errors"], json!([]), "errors belong to their own turn");
    daemon.models.assert_no_breach();
    result
}

#[tokio::test]
async fn unreachable_model_server_error_gives_advice() {
    // This port was free a moment ago, so no server listens on it.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nowhere = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let daemon = TestDaemon::builder().config(FAST_RETRIES).model_server_at(&nowhere).start().await;
    let (session, mut seen) = start(&daemon).await;
    for _ in 0..2 {
        session.submit("hello").await;
        let result = seen.turn_ends("llm_error").await;
        let error = &result["errors"][0];
        assert_eq!(error["kind"], "unreachable");
        let message = error["message"].as_str().expect("words");
        assert!(message.contains(&nowhere["http://".len()..]) && message.contains("base_url"), "{message}");
        seen.state_is("idle").await;
    }
}

#[tokio::test]
async fn garbage_model_reply_fails_turn_without_crash() {
    let page = "<html><body>Welcome to the hotel network</body></html>";
    let no_json = "event: message_start\ndata: {\"type\": oops\n\n";
    for api in MESSAGE_APIS {
        for (content_type, body) in [
            ("text/html", page),
            ("application/json", page),
            ("text/event-stream", no_json),
            ("text/event-stream", ""),
        ] {
            let daemon = TestDaemon::builder().api(api).config("[retry]\nattempts = 1").start().await;
            let (session, mut seen) = start(&daemon).await;
            daemon.models.push(Step::raw(200, content_type, body));
            session.submit("hello").await;
            let result = seen.turn_ends("llm_error").await;
            assert!(!result["errors"][0]["message"].as_str().expect("words").is_empty());
            seen.state_is("idle").await;
            daemon.models.push(Step::text("Hello again."));
            session.submit("once more").await;
            seen.turn_ends("success").await;
            daemon.models.assert_no_breach();
        }
    }
}

#[tokio::test]
async fn refused_api_key_is_reported_without_its_value() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder()
            .api(api)
            .provider("api_key_env = \"CANARY_KEY\"")
            .environment("CANARY_KEY", CANARY)
            .start()
            .await;
        let (session, mut seen) = start(&daemon).await;
        // Some servers quote the key that they reject.
        let words = format!("invalid key {CANARY}");
        daemon.models.set_fallback(move |_| Step::error(401, "authentication_error", &words));
        session.submit("hello").await;
        let result = seen.turn_ends("llm_error").await;
        assert_eq!(result["errors"][0]["kind"], "unauthorized", "{result:#}");
        let message = result["errors"][0]["message"].as_str().expect("words").to_owned();
        assert!(message.contains("401") && message.contains("[providers.scripted]"), "{message}");
        seen.state_is("idle").await;

        // The key was sent in the request header and nowhere else.
        let request = &daemon.models.requests()[0];
        let sent = request.header("x-api-key").or(request.header("authorization")).expect("a key");
        assert!(sent.ends_with(CANARY));
        assert!(seen.events().iter().all(|event| !event.to_string().contains(CANARY)));
        assert!(session.events().await.iter().all(|event| !event.to_string().contains(CANARY)));
        let status = session.client.call("daemon.status", json!({})).await;
        assert!(!status.to_string().contains(CANARY));
        let written = daemon.all_written_bytes();
        assert!(written.len() > 10_000, "the database is there");
        assert!(!written.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes()));
    }
}

#[tokio::test]
async fn missing_api_key_error_names_setting() {
    let daemon = TestDaemon::builder().provider("api_key_env = \"NOT_SET_ANYWHERE\"").start().await;
    let (session, mut seen) = start(&daemon).await;
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let message = result["errors"][0]["message"].as_str().expect("words");
    assert!(message.contains("NOT_SET_ANYWHERE"), "{message}");
    seen.state_is("idle").await;
    assert_eq!(daemon.models.requests().len(), 0);
}

#[tokio::test]
async fn key_in_place_of_variable_name_is_never_shown() {
    let daemon = TestDaemon::builder().provider("api_key_env = \"sk-canary-abc\"").start().await;
    let (session, mut seen) = start(&daemon).await;
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await.to_string();
    assert!(result.contains("api_key_env") && !result.contains("canary"), "{result}");
    let checked = session.client.call("model.check", json!({})).await.to_string();
    assert!(!checked.contains("canary") && !daemon.log().contains("canary"), "{checked}");
}

#[tokio::test]
async fn missing_configuration_error_names_settings() {
    let mut daemon = TestDaemon::builder().build().await;
    std::fs::write(daemon.path("config.toml"), "").expect("written");
    daemon.launch().await;
    let (session, mut seen) = start(&daemon).await;
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let message = result["errors"][0]["message"].as_str().expect("words");
    assert!(message.contains("ANTHROPIC_API_KEY") && message.contains("[models] main"), "{message}");
}

#[tokio::test]
async fn overloaded_server_is_retried_with_visible_reason() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::error(529, "overloaded_error", "come back later"));
        daemon.models.push(Step::error(503, "api_error", "no room"));
        daemon.models.push(Step::text("Here I am."));
        session.submit("hello").await;
        for attempt in 1..=2 {
            let retry = seen.wait_for("retry").await;
            assert_eq!((&retry["attempt"], &retry["max"]), (&json!(attempt), &json!(10)));
            assert!(retry["delay_ms"].is_u64() && !retry["reason"].as_str().expect("words").is_empty());
        }
        assert_eq!(seen.next_answer().await["item"]["text"], "Here I am.");
        assert_eq!(seen.turn_ends("success").await["errors"], json!([]));
        let requests = daemon.models.requests();
        assert_eq!(requests[0].body, requests[2].body);
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn turn_ends_with_reason_after_last_attempt() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 1\nattempts = 3").start().await;
    let (session, mut seen) = start(&daemon).await;
    for _ in 0..3 {
        daemon.models.push(Step::error(529, "overloaded_error", "come back later"));
    }
    expect_failure(&daemon, &session, &mut seen, "overloaded", &["529", "come back later"]).await;
    assert_eq!(seen.events_of("retry").len(), 2);
}

#[tokio::test]
async fn bad_request_is_not_retried_and_next_turn_works() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::error(400, "invalid_request_error", "no such thing"));
        expect_failure(&daemon, &session, &mut seen, "bad_request", &["400", "no such thing"]).await;
        assert_eq!(daemon.models.requests().len(), 2);
    }
}

#[tokio::test]
async fn broken_stream_is_retried_without_duplicate_text() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::text("broken off").break_off("overloaded_error", "sorry"));
        daemon.models.push(Step::text("the whole answer"));
        session.submit("hello").await;
        let cut = seen.next_answer().await;
        assert_eq!(
            (&cut["item"]["status"], &cut["item"]["text"]),
            (&json!("interrupted"), &json!("broken off"))
        );
        seen.wait_for("retry").await;
        let whole = seen.next_answer().await;
        assert_eq!(
            (&whole["item"]["status"], &whole["item"]["text"]),
            (&json!("completed"), &json!("the whole answer"))
        );
        assert_ne!(cut["item_id"], whole["item_id"]);
        assert_eq!(seen.streamed(&whole["item_id"]), "the whole answer");
        assert_eq!(seen.turn_ends("success").await["text"], "the whole answer");

        daemon.models.push(Step::text("Yes."));
        session.submit("sure?").await;
        seen.turn_ends("success").await;
        assert!(!daemon.models.requests()[2].body.to_string().contains("broken off"));
        daemon.models.assert_no_breach();
    }
}

/// The beginning of an answer with the text "broken off", then the damage, then the rest of the answer.
fn damaged_answer(api: Api, damage: &str) -> Vec<u8> {
    let (before, after) = match api {
        Api::Anthropic => (
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n\
             data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
             data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"broken off\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
             data: {\"type\":\"message_stop\"}\n\n",
        ),
        Api::OpenAiChat => (
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"broken off\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        Api::OpenAiResponses => (
            "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"broken off\"}\n\n",
            "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n",
        ),
    };
    [before, damage, after].concat().into_bytes()
}

#[tokio::test]
async fn damaged_event_interrupts_the_message_and_is_retried() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        for damage in ["data: {oops\n\n", "data: {\"choices\":[{\"ind", "data: upstream timed out\n\n"] {
            daemon.models.push(Step::raw(200, "text/event-stream", damaged_answer(api, damage)));
            daemon.models.push(Step::text("the whole answer"));
            session.submit("hello").await;
            let cut = seen.next_answer().await;
            assert_eq!(
                (&cut["item"]["status"], &cut["item"]["text"]),
                (&json!("interrupted"), &json!("broken off")),
                "{api:?}: {damage}"
            );
            assert_eq!(seen.wait_for("retry").await["kind"], "interrupted", "{api:?}: {damage}");
            assert_eq!(seen.next_answer().await["item"]["status"], "completed");
            assert_eq!(seen.turn_ends("success").await["text"], "the whole answer");
        }
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn exhausted_quota_inside_a_stream_ends_the_turn_at_once() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::text("some words").break_off("insufficient_quota", "no credit"));
        expect_failure(&daemon, &session, &mut seen, "forbidden", &["no credit", "quota"]).await;
        assert_eq!(daemon.models.requests().len(), 2, "{api:?}");
        assert!(seen.events_of("retry").is_empty(), "{api:?}");
    }
}

#[tokio::test]
async fn closed_connection_is_retried_until_success() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).config(FAST_RETRIES).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::text("one two three").cut_after(700));
        daemon.models.push(Step::text("four"));
        session.submit("hello").await;
        seen.wait_for("retry").await;
        assert_eq!(seen.turn_ends("success").await["text"], "four");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn invalid_tool_call_is_returned_to_model() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).start().await;
        let (session, mut seen) = start(&daemon).await;
        daemon.models.push(Step::calls([
            ("Teleport", json!({"to": "moon"})),
            ("Read", json!({"path": "a.txt"})),
            ("Read", json!({"file_path": daemon.workspace().join("absent.txt")})),
        ]));
        daemon.models.push(Step::text("I see."));
        session.submit("go").await;
        seen.turn_ends("success").await;
        let results = daemon.models.requests()[1].tool_results();
        assert!(results[0].1.contains("Teleport") && results[0].1.contains("Bash"), "{results:?}");
        assert!(results[1].1.contains("file_path"), "{results:?}");
        assert!(results[2].1.contains("absent.txt"), "{results:?}");
        assert!(seen.events_of("permission.requested").is_empty());
        daemon.models.assert_no_breach();
    }
}
