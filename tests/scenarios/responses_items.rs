//! Servers that number the items of OpenAI Responses differently in the stream and at its end, or
//! rename them at the end: every call runs once, and every text appears once.

use serde_json::json;

use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::Step;

/// An answer with a text and a call of Bash that appends a line. Items are numbered from `first` in
/// steps of `gap`. The response id changes with every event, as GitHub Copilot's does.
fn answer(first: u64, gap: u64) -> Step {
    let call = |arguments: &str| json!({"type":"function_call","id":"fc_1","call_id":"call_a","name":"Bash","arguments":arguments});
    let arguments = json!({"command": "echo ran >> runs.txt"}).to_string();
    let message = json!({"type":"message","id":"msg_1","role":"assistant","status":"completed",
        "content":[{"type":"output_text","text":"I run it.","annotations":[]}]});
    let (one, two) = (first, first + gap);
    let output = [message.clone(), call(&arguments)];
    let events = [
        json!({"type":"response.created","response":{"id":"r1","status":"in_progress"}}),
        json!({"type":"response.in_progress","response":{"id":"r2","status":"in_progress"}}),
        json!({"type":"response.output_item.added","output_index":one,"item":{"type":"message","id":"msg_1"}}),
        json!({"type":"response.output_text.delta","output_index":one,"item_id":"msg_1","delta":"I run it."}),
        json!({"type":"response.output_item.done","output_index":one,"item":message}),
        json!({"type":"response.output_item.added","output_index":two,"item":call("")}),
        json!({"type":"response.function_call_arguments.delta","output_index":two,"item_id":"fc_1","delta":arguments}),
        json!({"type":"response.output_item.done","output_index":two,"item":call(&arguments)}),
        json!({"type":"response.completed","response":{"id":"r3","status":"completed","output":output,
            "usage":{"input_tokens":10,"output_tokens":5}}}),
    ];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    Step::raw(200, "text/event-stream", stream)
}

#[tokio::test]
async fn call_runs_once_for_every_item_numbering() {
    for (first, gap) in [(0, 1), (1, 1), (0, 2)] {
        let config = "[retry]\nattempts = 1\n[permissions]\nallow = [\"Bash\"]";
        let daemon = TestDaemon::builder().api(Api::OpenAiResponses).config(config).start().await;
        let client = daemon.client("alice").await;
        let session = client.create(&daemon).await;
        let mut seen = session.follow().await;
        daemon.models.push(answer(first, gap));
        daemon.models.push(Step::text("Done."));
        session.submit("go").await;
        let said = seen.next_answer().await;
        assert_eq!(said["item"]["text"], "I run it.", "{first}, {gap}");
        seen.turn_ends("success").await;
        assert_eq!(seen.events_of("tool.requested").len(), 1, "{first}, {gap}");
        assert_eq!(std::fs::read_to_string(daemon.workspace().join("runs.txt")).expect("it ran"), "ran\n");
        daemon.models.assert_no_breach();
    }
}
