//! `session.list {search}` finds the text of messages.

use serde_json::{Value, json};

use super::agentctl::ctl;
use crate::support::client::{Client, Session};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

async fn search_sessions(client: &Client, search: &str) -> Vec<Value> {
    client.call("session.list", json!({"search": search})).await["sessions"]
        .as_array()
        .expect("a list")
        .clone()
}

/// A session whose model answered `answer`, and then something else.
async fn answered_session(daemon: &TestDaemon, client: &Client, input: &str, answer: &str) -> Session {
    let session = client.create(daemon).await;
    for (input, answer) in [(input, answer), ("thanks", "welcome")] {
        daemon.models.push(Step::text(answer));
        session.submit(input).await;
        session.call("wait", json!({})).await;
    }
    session
}

#[tokio::test]
async fn search_finds_words_of_messages_with_their_items() {
    let mut daemon = TestDaemon::start().await;
    let client = daemon.client("alice").await;
    let one = answered_session(
        &daemon,
        &client,
        "Why does it fail?",
        "The kernel rejects the Größe of the mailbox.",
    )
    .await;
    let other = answered_session(&daemon, &client, "Something else", "Nothing to see.").await;
    let sessions = search_sessions(&client, "mailbox kern").await;
    assert_eq!(sessions.len(), 1, "all words match, the last one as a prefix");
    assert_eq!(sessions[0]["session_id"], json!(one.id));
    let answer = &one.items().await[1];
    let matches = &sessions[0]["matches"];
    assert_eq!((&matches[0]["item_id"], matches[1].clone()), (&answer["item_id"], Value::Null));
    assert!(matches[0]["snippet"].as_str().expect("a text").contains("rejects the Größe"), "{matches}");
    assert_eq!(search_sessions(&client, "grosse").await.len(), 0);
    assert_eq!(search_sessions(&client, "GRÖSSE").await.len(), 0);
    assert_eq!(search_sessions(&client, "größe").await.len(), 1);
    assert_eq!(search_sessions(&client, "welcome").await.len(), 2);
    for hostile in
        ["\"", "mailbox\" OR \"", "NEAR(", "*", "a AND", "{x} : y", "\0", "-", "text:", "(((", "'; drop"]
    {
        search_sessions(&client, hostile).await;
    }
    let listed = ctl(&daemon, &["ps", "--search", "mailbox"]).await.stdout();
    assert!(listed.contains(answer["item_id"].as_str().expect("an id")), "{listed}");

    one.call("delete", json!({})).await;
    assert_eq!(search_sessions(&client, "mailbox").await.len(), 0);
    daemon.kill().await;
    daemon.launch().await;
    let sessions = search_sessions(&daemon.client("bob").await, "nothing see").await;
    assert_eq!(sessions[0]["session_id"], json!(other.id));
}
