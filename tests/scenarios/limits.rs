//! Limits: the daemon refuses excess with an error where possible, and other clients are not affected.

use serde_json::json;

use super::bash;
use crate::support::client::Refusal;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn overlong_line_is_refused_and_connection_stays_open() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    seen.text_of(1).await;

    let mut raw = daemon.raw().await;
    raw.send(format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"session.list","params":{{"search":"{}"}}}}"#,
        "x".repeat(17 << 20)
    ))
    .await;
    raw.send("\n").await;
    let reply = raw.next().await.expect("an answer");
    let refusal = Refusal::from_error(&reply["error"]);
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32600, "invalid_request"));
    assert!(
        raw.send_and_receive(r#"{"jsonrpc":"2.0","id":2,"method":"daemon.status"}"#).await["result"]
            .is_object()
    );

    gate.open();
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn maximum_message_size_is_configurable() {
    let daemon = TestDaemon::builder().config("[limits]\nmessage_bytes = 4096\nbatch = 2").start().await;
    let mut raw = daemon.raw().await;
    let hello =
        |name: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "daemon.hello", "params": {"name": name}});
    let fits = hello(&"x".repeat(20));
    assert!(raw.send_and_receive(&fits).await["result"].is_object());
    let reply = raw.send_and_receive(hello(&"x".repeat(4096))).await;
    let refusal = Refusal::from_error(&reply["error"]);
    assert_eq!((refusal.code, refusal.kind.as_str()), (-32600, "invalid_request"));
    assert!(reply.to_string().contains("4096"), "{reply}");
    assert_eq!(raw.send_and_receive(json!([&fits, &fits])).await.as_array().map(Vec::len), Some(2));
    let reply = raw.send_and_receive(json!([&fits, &fits, &fits])).await;
    assert_eq!(Refusal::from_error(&reply["error"]).kind, "invalid_request");
    assert!(raw.send_and_receive(&fits).await["result"].is_object());
}

#[tokio::test]
async fn non_utf8_request_is_refused_for_its_client_only() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let mut raw = daemon.raw().await;
    // The data contains no line end, so that it is one message.
    let blob: Vec<u8> = (0..64 * 1024u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let blob: Vec<u8> = blob.into_iter().filter(|byte| *byte != b'\n').collect();
    raw.send([&[0u8, 159, 146, 150][..], &blob, b"\n"].concat()).await;
    let reply = raw.next().await.expect("an answer");
    assert_eq!(Refusal::from_error(&reply["error"]).kind, "parse_error");
    assert!(
        raw.send_and_receive(r#"{"jsonrpc":"2.0","id":2,"method":"daemon.status"}"#).await["result"]
            .is_object()
    );
    alice.call("daemon.status", json!({})).await;
}

#[tokio::test]
async fn deep_json_and_large_batch_are_refused() {
    let daemon = TestDaemon::start().await;
    let mut raw = daemon.raw().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let reply = raw
        .send_and_receive(format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"session.list","params":{{"search":{deep}}}}}"#
        ))
        .await;
    let kind = Refusal::from_error(&reply["error"]).kind;
    assert!(["invalid_request", "parse_error"].contains(&kind.as_str()), "{kind}");
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "session.list"});
    let reply = raw.send_and_receive(json!(vec![call; 1000])).await;
    assert_eq!(Refusal::from_error(&reply["error"]).kind, "invalid_request");
    assert!(
        raw.send_and_receive(r#"{"jsonrpc":"2.0","id":2,"method":"daemon.status"}"#).await["result"]
            .is_object()
    );
}

/// Number of calls of a tool that does not exist, each with arguments that fit into an event.
const CALL_COUNT: usize = 360;

#[tokio::test]
async fn event_and_item_pages_stay_below_reply_limit() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    // The same call again and again would raise a question.
    let input = |number: usize| json!({"text": format!("{number}{}", "x".repeat(50_000))});
    daemon.models.push(Step::calls((0..CALL_COUNT).map(|number| ("Nothing", input(number)))));
    daemon.models.push(Step::text("Tried."));
    session.submit("write a lot").await;
    seen.turn_ends("success").await;
    for (verb, name) in [("events", "events"), ("items", "items")] {
        let mut page = json!({"limit": 500});
        let mut total = 0;
        let mut count = 0;
        loop {
            let reply = session.call(verb, page.clone()).await;
            total += reply.to_string().len();
            count += reply[name].as_array().expect("a list").len();
            match reply.get("next_cursor") {
                Some(cursor) => page["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert!(total > 16 << 20, "{verb}: {total} bytes are too few for this test");
        let expected = if verb == "events" { session.events().await.len() } else { 1 + 1 + CALL_COUNT + 1 };
        assert_eq!((verb, count), (verb, expected));
    }
}

#[tokio::test]
async fn client_disconnect_during_turn_does_not_affect_session() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    {
        let mut raw = daemon.raw().await;
        let submit = json!({"jsonrpc": "2.0", "id": 1, "method": "session.submit",
            "params": {"session_id": session.id, "input": "go"}});
        raw.line(submit).await;
        raw.send(r#"{"jsonrpc":"2.0","id":2,"method":"sess"#).await;
        seen.text_of(1).await;
    }
    gate.open();
    assert_eq!(seen.turn_ends("success").await["text"], "one two");
}

#[tokio::test]
async fn exhausted_model_call_budget_ends_turn_with_message() {
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash\"]").start().await;
    daemon.models.set_fallback(|_| Step::calls([bash("true")]));
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"budgets": {"model_calls": 3}})).await;
    let mut seen = session.follow().await;
    session.submit("never stop").await;
    let result = seen.turn_ends("error_max_turns").await;
    assert_eq!(result["model_calls"], 3);
    assert!(result["errors"][0]["message"].as_str().expect("words").contains('3'));
    assert_eq!(daemon.models.requests().len(), 3);
    daemon.models.set_fallback(|_| Step::text("Yes."));
    session.submit("enough?").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn repeatedly_truncated_answer_ends_turn_as_max_output_tokens() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    // Once for each allowed continuation.
    for _ in 0..4 {
        daemon.models.push(Step::text("and so on and").stop("max_tokens"));
    }
    session.submit("count").await;
    let result = seen.turn_ends("max_output_tokens").await;
    assert!(result["text"].as_str().expect("a text").contains("and so on and"), "{result}");
}
