//! The model or its server fails: the turn says what happened and what to check, and the session
//! is as good as before.

use serde_json::{Value, json};

use crate::support::client::Session;
use crate::support::daemon::{ALL_APIS, Api, BOTH_APIS, TestDaemon};
use crate::support::log::Log;
use crate::support::model_server::Step;

/// Looks like a key and is one for these tests: it must never be seen anywhere.
const CANARY: &str = "sk-canary-7f3a9b2c4d5e6f70";
const FAST: &str = "[retry]\nbase_ms = 1\nmax_ms = 5";

async fn start(house: &TestDaemon) -> (Session, Log) {
    let session = house.client("alice").await.create(house).await;
    let seen = session.follow().await;
    (session, seen)
}

/// The turn ends with an error of this kind whose words contain these; the next one is fine.
async fn fails(house: &TestDaemon, session: &Session, seen: &mut Log, kind: &str, words: &[&str]) -> Value {
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let error = &result["errors"][0];
    assert_eq!(error["kind"], kind, "{error}");
    let message = error["message"].as_str().expect("words");
    for word in words {
        assert!(message.contains(word), "{word:?} is missing in {message:?}");
    }
    assert_eq!(seen.seen_of("error").len(), 1);
    seen.state_is("idle").await;

    house.models.push(Step::text("Hello again."));
    session.submit("once more").await;
    assert_eq!(seen.turn_ends("success").await["errors"], json!([]), "errors belong to their own turn");
    house.models.assert_no_breach();
    result
}

#[tokio::test]
async fn a_server_that_is_not_running_is_named_with_what_to_check() {
    // A port that was free a moment ago: nobody listens there.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let nowhere = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let house = TestDaemon::builder().config(FAST).model_server_at(&nowhere).start().await;
    let (session, mut seen) = start(&house).await;
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
async fn garbage_instead_of_an_answer_is_an_error_and_not_a_crash() {
    let page = "<html><body>Welcome to the hotel network</body></html>";
    let no_json = "event: message_start\ndata: {\"type\": oops\n\n";
    for api in BOTH_APIS {
        for (content_type, body) in [
            ("text/html", page),
            ("application/json", page),
            ("text/event-stream", no_json),
            ("text/event-stream", ""),
        ] {
            let house = TestDaemon::builder().api(api).config("[retry]\nattempts = 1").start().await;
            let (session, mut seen) = start(&house).await;
            house.models.push(Step::raw(200, content_type, body));
            session.submit("hello").await;
            let result = seen.turn_ends("llm_error").await;
            assert!(!result["errors"][0]["message"].as_str().expect("words").is_empty());
            seen.state_is("idle").await;
            house.models.push(Step::text("Hello again."));
            session.submit("once more").await;
            seen.turn_ends("success").await;
            house.models.assert_no_breach();
        }
    }
}

#[tokio::test]
async fn a_refused_key_is_told_and_never_shown() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder()
            .api(api)
            .provider("api_key_env = \"CANARY_KEY\"")
            .environment("CANARY_KEY", CANARY)
            .start()
            .await;
        let (session, mut seen) = start(&house).await;
        // Some servers quote the key that they refuse.
        let words = format!("invalid key {CANARY}");
        house.models.otherwise(move |_| Step::error(401, "authentication_error", &words));
        session.submit("hello").await;
        let result = seen.turn_ends("llm_error").await;
        assert_eq!(result["errors"][0]["kind"], "unauthorized", "{result:#}");
        let message = result["errors"][0]["message"].as_str().expect("words").to_owned();
        assert!(message.contains("401") && message.contains("[providers.scripted]"), "{message}");
        seen.state_is("idle").await;

        // The key was sent where it belongs, and nowhere else.
        let request = &house.models.requests()[0];
        let sent = request.header("x-api-key").or(request.header("authorization")).expect("a key");
        assert!(sent.ends_with(CANARY));
        assert!(seen.seen().iter().all(|event| !event.to_string().contains(CANARY)));
        assert!(session.events().await.iter().all(|event| !event.to_string().contains(CANARY)));
        let status = session.client.call("daemon.status", json!({})).await;
        assert!(!status.to_string().contains(CANARY));
        let written = house.everything_written();
        assert!(written.len() > 10_000, "the database is there");
        assert!(!written.windows(CANARY.len()).any(|bytes| bytes == CANARY.as_bytes()));
    }
}

#[tokio::test]
async fn without_a_key_the_error_says_what_to_set() {
    let house = TestDaemon::builder().provider("api_key_env = \"NOT_SET_ANYWHERE\"").start().await;
    let (session, mut seen) = start(&house).await;
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let message = result["errors"][0]["message"].as_str().expect("words");
    assert!(message.contains("NOT_SET_ANYWHERE"), "{message}");
    seen.state_is("idle").await;
    assert_eq!(house.models.requests().len(), 0);
}

#[tokio::test]
async fn with_nothing_configured_at_all_the_error_says_what_to_set() {
    let mut house = TestDaemon::builder().build().await;
    std::fs::write(house.path("config.toml"), "").expect("written");
    house.launch().await;
    let (session, mut seen) = start(&house).await;
    session.submit("hello").await;
    let result = seen.turn_ends("llm_error").await;
    let message = result["errors"][0]["message"].as_str().expect("words");
    assert!(message.contains("ANTHROPIC_API_KEY") && message.contains("[models] main"), "{message}");
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again_and_people_see_why_it_takes_so_long() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::error(529, "overloaded_error", "come back later"));
        house.models.push(Step::error(503, "api_error", "no room"));
        house.models.push(Step::text("Here I am."));
        session.submit("hello").await;
        for attempt in 1..=2 {
            let retry = seen.wait_for("retry").await;
            assert_eq!((&retry["attempt"], &retry["max"]), (&json!(attempt), &json!(10)));
            assert!(retry["delay_ms"].is_u64() && !retry["reason"].as_str().expect("words").is_empty());
        }
        assert_eq!(seen.answer().await["item"]["text"], "Here I am.");
        assert_eq!(seen.turn_ends("success").await["errors"], json!([]));
        let requests = house.models.requests();
        assert_eq!(requests[0].body, requests[2].body);
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn after_the_last_attempt_the_turn_ends_with_the_reason() {
    let house = TestDaemon::builder().config("[retry]\nbase_ms = 1\nattempts = 3").start().await;
    let (session, mut seen) = start(&house).await;
    for _ in 0..3 {
        house.models.push(Step::error(529, "overloaded_error", "come back later"));
    }
    fails(&house, &session, &mut seen, "overloaded", &["529", "come back later"]).await;
    assert_eq!(seen.seen_of("retry").len(), 2);
}

#[tokio::test]
async fn what_the_provider_finds_wrong_is_not_tried_again_and_does_not_stay() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::error(400, "invalid_request_error", "no such thing"));
        fails(&house, &session, &mut seen, "bad_request", &["400", "no such thing"]).await;
        assert_eq!(house.models.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_begun_anew_and_nothing_is_said_twice() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::text("broken off").break_off("overloaded_error", "sorry"));
        house.models.push(Step::text("the whole answer"));
        session.submit("hello").await;
        let cut = seen.answer().await;
        assert_eq!(
            (&cut["item"]["status"], &cut["item"]["text"]),
            (&json!("interrupted"), &json!("broken off"))
        );
        seen.wait_for("retry").await;
        let whole = seen.answer().await;
        assert_eq!(
            (&whole["item"]["status"], &whole["item"]["text"]),
            (&json!("completed"), &json!("the whole answer"))
        );
        assert_ne!(cut["item_id"], whole["item_id"]);
        assert_eq!(seen.streamed(&whole["item_id"]), "the whole answer");
        assert_eq!(seen.turn_ends("success").await["text"], "the whole answer");

        house.models.push(Step::text("Yes."));
        session.submit("sure?").await;
        seen.turn_ends("success").await;
        assert!(!house.models.requests()[2].body.to_string().contains("broken off"));
        house.models.assert_no_breach();
    }
}

/// The beginning of an answer that says "broken off", then the damage, then the rest of the answer.
fn damaged(api: Api, damage: &str) -> Vec<u8> {
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
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        for damage in ["data: {oops\n\n", "data: {\"choices\":[{\"ind", "data: upstream timed out\n\n"] {
            house.models.push(Step::raw(200, "text/event-stream", damaged(api, damage)));
            house.models.push(Step::text("the whole answer"));
            session.submit("hello").await;
            let cut = seen.answer().await;
            assert_eq!(
                (&cut["item"]["status"], &cut["item"]["text"]),
                (&json!("interrupted"), &json!("broken off")),
                "{api:?}: {damage}"
            );
            assert_eq!(seen.wait_for("retry").await["kind"], "interrupted", "{api:?}: {damage}");
            assert_eq!(seen.answer().await["item"]["status"], "completed");
            assert_eq!(seen.turn_ends("success").await["text"], "the whole answer");
        }
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn exhausted_quota_inside_a_stream_ends_the_turn_at_once() {
    for api in ALL_APIS {
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::text("some words").break_off("insufficient_quota", "no credit"));
        fails(&house, &session, &mut seen, "forbidden", &["no credit", "quota"]).await;
        assert_eq!(house.models.requests().len(), 2, "{api:?}");
        assert!(seen.seen_of("retry").is_empty(), "{api:?}");
    }
}

#[tokio::test]
async fn a_connection_that_is_cut_is_tried_again() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).config(FAST).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::text("one two three").cut_after(700));
        house.models.push(Step::text("four"));
        session.submit("hello").await;
        seen.wait_for("retry").await;
        assert_eq!(seen.turn_ends("success").await["text"], "four");
        house.models.assert_no_breach();
    }
}

#[tokio::test]
async fn a_call_that_makes_no_sense_goes_back_to_the_model() {
    for api in BOTH_APIS {
        let house = TestDaemon::builder().api(api).start().await;
        let (session, mut seen) = start(&house).await;
        house.models.push(Step::calls([
            ("Teleport", json!({"to": "moon"})),
            ("Read", json!({"path": "a.txt"})),
            ("Read", json!({"file_path": house.workspace().join("absent.txt")})),
        ]));
        house.models.push(Step::text("I see."));
        session.submit("go").await;
        seen.turn_ends("success").await;
        let results = house.models.requests()[1].tool_results();
        assert!(results[0].1.contains("Teleport") && results[0].1.contains("Bash"), "{results:?}");
        assert!(results[1].1.contains("file_path"), "{results:?}");
        assert!(results[2].1.contains("absent.txt"), "{results:?}");
        assert!(seen.seen_of("permission.requested").is_empty());
        house.models.assert_no_breach();
    }
}
