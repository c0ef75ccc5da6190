//! Structured output: the result satisfies a JSON Schema, or the turn says that it does not.

use serde_json::json;

use super::agentctl::ctl;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::Step;

fn schema() -> serde_json::Value {
    json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": false})
}

#[tokio::test]
async fn answer_that_satisfies_the_schema_is_the_structured_result() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("She is seven."));
    daemon.models.push(Step::text("```json\n{\"age\": \"seven\"}\n```"));
    daemon.models.push(Step::text("Of course:\n```json\n{\"age\": 7}\n```"));
    session.call("submit", json!({"input": "how old is she?", "output_schema": schema()})).await;
    let rejected = seen.wait_for("turn.output_rejected").await;
    assert_eq!((&rejected["attempt"], &rejected["max"]), (&json!(1), &json!(3)));
    let rejected = seen.wait_for("turn.output_rejected").await;
    assert!(rejected["errors"][0].as_str().expect("why").contains("/age"), "{rejected}");
    let result = seen.turn_ends("success").await;
    assert_eq!((&result["structured"], &result["model_calls"]), (&json!({"age": 7}), &json!(3)));
    let requests = daemon.models.requests();
    assert!(requests[0].body["messages"].to_string().contains("JSON Schema"));
    assert!(requests[2].messages().last().expect("one")["content"].to_string().contains("/age"));
    assert_eq!(requests[0].body["system"], requests[2].body["system"]);
    assert_eq!(requests[0].messages()[0]["content"][0], requests[2].messages()[0]["content"][0]);

    // A later turn has no schema, also after a restart.
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("Just words."));
    session.submit("and now?").await;
    let end = seen.find("the end", |event| event["result"]["text"] == "Just words.").await;
    assert!(end["result"]["structured"].is_null() && end["result"]["subtype"] == "success", "{end}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn reasoning_in_tags_is_no_part_of_the_structured_result() {
    for text in ["<think>She is seven.</think>{\"age\": 7}", "She is seven.\n</think>\n\n{\"age\": 7}"] {
        let daemon = TestDaemon::builder().api(Api::OpenAiChat).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(Step::text(text));
        session.call("submit", json!({"input": "how old is she?", "output_schema": schema()})).await;
        let result = seen.turn_ends("success").await;
        assert_eq!((&result["structured"], &result["model_calls"]), (&json!({"age": 7}), &json!(1)));
        assert_eq!(result["text"], "{\"age\": 7}");
        daemon.models.push(Step::text("fine"));
        session.submit("thanks").await;
        seen.turn_ends("success").await;
        let sent = daemon.models.requests().pop().expect("a request").body["messages"].to_string();
        assert!(!sent.contains("She is seven"), "{sent}");
    }
}

#[tokio::test]
async fn answer_that_stays_invalid_ends_the_turn_after_three_corrections() {
    let daemon = TestDaemon::start().await;
    let file = daemon.path("schema.json");
    std::fs::write(&file, schema().to_string()).expect("written");
    daemon.models.set_fallback(|_| Step::text("I do not know."));
    let args = ["run", "--output", "json", "--output-schema", file.to_str().expect("text"), "how old?"];
    let ran = ctl(&daemon, &args).await;
    assert_eq!(ran.code, 6, "{ran:?}");
    let result: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(result["subtype"], "structured_output_invalid");
    assert_eq!(result["errors"][0]["kind"], "structured_output_invalid");
    assert_eq!(daemon.models.requests().len(), 4);
    daemon.models.forget_conversations();
    daemon.models.set_fallback(|_| Step::text("{\"age\": 7}"));
    let ran = ctl(&daemon, &args).await;
    let result: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!((ran.code, &result["structured"]), (0, &json!({"age": 7})));
}

#[tokio::test]
async fn schema_of_the_session_holds_until_it_is_removed() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create_with(&daemon, json!({"output_schema": schema()})).await;
    assert_eq!(session.view().await["output_schema"], schema());
    let mut seen = session.follow().await;
    daemon.models.push(Step::text("{\"age\": 7}"));
    session.submit("how old?").await;
    assert_eq!(seen.turn_ends("success").await["structured"], json!({"age": 7}));
    daemon.models.push(Step::text("Just words."));
    session.call("submit", json!({"input": "and in words?", "output_schema": {}})).await;
    assert!(seen.turn_ends("success").await["structured"].is_null(), "this turn has none");
    session.call("update", json!({"output_schema": {}})).await;
    assert!(session.view().await["output_schema"].is_null());
    daemon.models.push(Step::text("Words again."));
    session.submit("again").await;
    assert!(seen.turn_ends("success").await["structured"].is_null());
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn invalid_schema_is_refused_before_anything_is_written() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let before = session.events().await.len();
    for (schema, word) in [
        (json!({"type": "no such type"}), "no such type"),
        (json!({"$ref": "https://example.org/s.json"}), "another document"),
        (json!("text"), "object"),
        (json!({"description": "x".repeat(40_000)}), "bytes"),
    ] {
        let refusal = session.refused("submit", json!({"input": "x", "output_schema": schema})).await;
        assert_eq!((refusal.code, &refusal.data["path"]), (-32602, &json!("output_schema")));
        assert!(refusal.message.contains(word), "{}", refusal.message);
    }
    assert_eq!(session.events().await.len(), before);
    assert_eq!(daemon.models.requests().len(), 0);
}
