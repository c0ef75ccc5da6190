//! The same request gets the same answer if the response cache is enabled.

use serde_json::{Value, json};

use crate::support::daemon::{ALL_APIS, TestDaemon};
use crate::support::model_server::Step;

const CACHE: &str = "[session]\nresponse_cache = true\n\
                     [model.\"scripted/model\"]\nprice = { input = 1000.0, output = 1000.0 }";

/// The completed answers of a session's only turn.
async fn answers(daemon: &TestDaemon, prompt: &str) -> Vec<Value> {
    let session = daemon.client("alice").await.create(daemon).await;
    let mut seen = session.follow().await;
    session.submit(prompt).await;
    seen.turn_ends("success").await;
    let is_answer = |event: &Value| event["item"]["kind"] == "assistant_message";
    seen.events_of("message.completed").into_iter().filter(is_answer).collect()
}

#[tokio::test]
async fn identical_request_is_answered_from_cache_for_free() {
    for api in ALL_APIS {
        let daemon = TestDaemon::builder().api(api).config(CACHE).start().await;
        daemon.write("a.txt", "so\n");
        let read = json!({"file_path": daemon.workspace().join("a.txt")});
        daemon.models.push(Step::calls([("Read", read)]).say("Let me see."));
        daemon.models.push(Step::text("It is so."));
        let asked = answers(&daemon, "is it?").await;
        let again = answers(&daemon, "is it?").await;
        assert_eq!(daemon.models.requests().len(), 2, "{api:?}: no request was sent again");
        let cost = |answers: &[Value]| -> u64 {
            answers.iter().map(|answer| answer["cost_usd_micros"].as_u64().expect("a known cost")).sum()
        };
        assert!(
            cost(&asked) > 0 && asked.iter().all(|answer| answer.get("cache_hit").is_none()),
            "{asked:?}"
        );
        assert_eq!(cost(&again), 0, "{api:?}");
        for (first, second) in asked.iter().zip(&again) {
            assert_eq!(second["cache_hit"], true, "{api:?}: {second}");
            assert_eq!(first["item"]["text"], second["item"]["text"], "{api:?}");
            assert_eq!(second["usage"]["input_tokens"], 0, "{api:?}");
        }
        assert_eq!(asked.len(), again.len());
        let metrics = daemon.client("alice").await.call("daemon.metrics", json!({})).await;
        assert_eq!(metrics["response_cache_hits"], 2, "{api:?}: {metrics}");

        // A single different word makes another request.
        daemon.models.push(Step::text("That is not."));
        assert_eq!(answers(&daemon, "is that?").await[0]["item"]["text"], "That is not.");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn disabled_or_incomplete_responses_are_not_cached() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::text("one"));
    daemon.models.push(Step::text("two"));
    assert_eq!(answers(&daemon, "is it?").await[0]["item"]["text"], "one");
    assert_eq!(answers(&daemon, "is it?").await[0]["item"]["text"], "two");

    let daemon = TestDaemon::builder().config(CACHE).config("[retry]\nbase_ms = 1\nmax_ms = 1").start().await;
    daemon.models.push(Step::text("half an answer").break_off("overloaded_error", "busy"));
    daemon.models.push(Step::text("the whole answer"));
    let first = answers(&daemon, "is it?").await;
    assert_eq!(first.last().expect("an answer")["item"]["text"], "the whole answer");
    assert_eq!(daemon.models.requests().len(), 2);
    let again = answers(&daemon, "is it?").await;
    assert_eq!(again.len(), 1);
    assert_eq!(
        (&again[0]["cache_hit"], &again[0]["item"]["text"]),
        (&json!(true), &json!("the whole answer"))
    );
}
