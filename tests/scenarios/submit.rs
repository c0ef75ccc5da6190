//! The main scenario: a message, the model's tool calls, the user's approval, changed files, an answer.

use serde_json::json;

use super::{is_delta, permanent};
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::Step;

/// Two clients are attached. The model wants to write a file and run a command; both clients receive
/// both permission requests at once. The first answer counts, the calls run, and the journal returns
/// the same events again.
async fn run_main_scenario(api: Api) {
    let daemon = TestDaemon::builder().api(api).start().await;
    let alice = daemon.client("alice").await;
    let bob = daemon.client("bob").await;
    let session = alice.create(&daemon).await;
    let at_bobs = bob.join(&session);
    let mut seen = session.follow().await;
    let mut seen_by_bob = at_bobs.follow().await;

    let note = daemon.workspace().join("note.txt");
    daemon.models.push(
        Step::calls([
            ("Write", json!({"file_path": note, "content": "eggs\nmilk\n"})),
            ("Bash", json!({"command": "wc -l < note.txt >> count.txt"})),
        ])
        .say("I shall write the list and count its lines."),
    );
    daemon.models.push(Step::text("The list has two lines."));
    let turn = session.submit("write a shopping list").await;

    let write = seen.wait_for("permission.requested").await;
    let count = seen.wait_for("permission.requested").await;
    assert_eq!((&write["tool"], &count["tool"]), (&json!("Write"), &json!("Bash")));
    assert!(write["diff"].as_str().expect("a diff").contains("+eggs"), "{write:#}");
    assert_eq!(count["input"]["command"], "wc -l < note.txt >> count.txt");
    assert_eq!(write["turn_id"], json!(turn));
    assert_eq!(seen_by_bob.wait_for("permission.requested").await, write);
    assert_eq!(seen_by_bob.wait_for("permission.requested").await, count);
    assert_eq!(session.view().await["requires"], "permission");
    assert_eq!(session.pending().await.len(), 2);
    assert!(!note.exists(), "nothing is done before the answer");

    session.allow(&write).await;
    let late = at_bobs.answer_refused(&write, json!({"decision": "deny"})).await;
    assert_eq!((late.code, late.kind.as_str()), (-32014, "not_pending"));
    assert_eq!(late.data["answered_by"]["client"], "alice");
    assert_eq!(late.data["decision"], "allow");
    at_bobs.allow(&count).await;

    let result = seen.turn_ends("success").await;
    assert_eq!(result["text"], "The list has two lines.");
    assert_eq!(result["model_calls"], 2);
    assert_eq!(daemon.read("note.txt"), "eggs\nmilk\n");
    assert_eq!(daemon.read("count.txt").trim(), "2");
    seen.state_is("idle").await;
    seen_by_bob.state_is("idle").await;

    let requests = daemon.models.requests();
    let results = requests[1].tool_results();
    assert_eq!(results.len(), 2, "{results:?}");
    daemon.models.assert_no_breach();

    let answers =
        seen.events_of("message.completed").into_iter().filter(|e| e["item"]["role"] == "assistant");
    let mut texts = Vec::new();
    for answer in answers {
        assert_eq!(json!(seen.streamed(&answer["item_id"])), answer["item"]["text"]);
        texts.push(answer["item"]["text"].clone());
    }
    assert_eq!(texts, ["I shall write the list and count its lines.", "The list has two lines."]);
    assert_eq!(seen.events_of("file.changed").len(), 1);

    let journal = session.events().await;
    assert_eq!(journal.iter().filter(|event| is_delta(event)).count(), 0);
    for shown in [permanent(seen.events()), permanent(seen_by_bob.events())] {
        assert_eq!(journal[..shown.len()], shown[..]);
    }
}

#[tokio::test]
async fn approved_write_creates_file_with_anthropic_messages() {
    run_main_scenario(Api::Anthropic).await;
}

#[tokio::test]
async fn approved_write_creates_file_with_chat_completions() {
    run_main_scenario(Api::OpenAiChat).await;
}
