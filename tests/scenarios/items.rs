//! `session.items`: the conversation page by page, from either end.

use serde_json::{Value, json};

use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

fn texts(reply: &Value) -> Vec<&str> {
    reply["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["text"].as_str().expect("a text"))
        .collect()
}

#[tokio::test]
async fn items_are_read_from_either_end_and_by_kind() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    for (input, answer) in [("one", "first"), ("two", "second"), ("three", "third")] {
        daemon.models.push(Step::text(answer));
        session.submit(input).await;
        session.call("wait", json!({})).await;
    }
    let page = session.call("items", json!({"newest_first": true, "limit": 4})).await;
    assert_eq!(texts(&page), ["third", "three", "second", "two"]);
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let rest = session.call("items", json!({"newest_first": true, "limit": 4, "cursor": cursor})).await;
    assert_eq!((texts(&rest), &rest["next_cursor"]), (vec!["first", "one"], &Value::Null));
    let inputs = session.call("items", json!({"kinds": ["user_message"]})).await;
    assert_eq!(texts(&inputs), ["one", "two", "three"]);
    let newest = session
        .call("items", json!({"kinds": ["assistant_message"], "newest_first": true, "limit": 1}))
        .await;
    assert_eq!(texts(&newest), ["third"]);
}
