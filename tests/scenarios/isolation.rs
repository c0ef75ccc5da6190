//! A failure in one session affects only that session. These tests assert no speeds, only that the
//! other sessions complete and that nothing grows without bound.

use serde_json::json;

use super::bash;
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Gate, Step};
use crate::support::raw::RawConnection;

/// A session whose answers are selected by its first words.
async fn submit_words(daemon: &TestDaemon, words: &str) -> (Session, Log) {
    let session = daemon.client(words).await.create(daemon).await;
    let seen = session.follow().await;
    session.submit(words).await;
    (session, seen)
}

#[tokio::test]
async fn hanging_or_flooding_session_does_not_affect_others() {
    let daemon = TestDaemon::builder()
        .config("[permissions]\nallow = [\"Bash\"]\n[retry]\nbase_ms = 1\nattempts = 2")
        .start()
        .await;
    let never = Gate::new();
    let hang = never.clone();
    daemon.models.set_fallback(move |request| {
        let body = request.body.to_string();
        let has_result = body.contains("tool_result");
        match () {
            () if body.contains("hang the model") => Step::text("one two three").hold_after(1, &hang),
            () if body.contains("hang the tool") => Step::calls([bash("sleep 1000")]),
            () if body.contains("flood") && !has_result => {
                Step::calls([bash("yes flooding the journal | head -c 30000000")])
            }
            () if body.contains("garbage") => {
                Step::raw(200, "text/event-stream", "event: nonsense\ndata: {\"type\":\n\n")
            }
            () => Step::text("All is well."),
        }
    });
    let (_model, mut model) = submit_words(&daemon, "hang the model").await;
    let (tool, mut tool_seen) = submit_words(&daemon, "hang the tool").await;
    let (flood, mut flood_seen) = submit_words(&daemon, "flood").await;
    let (_garbage, mut garbage) = submit_words(&daemon, "garbage").await;
    let mut stuck: Vec<RawConnection> = Vec::new();
    for _ in 0..10 {
        let mut raw = daemon.raw().await;
        let params = json!({"session_id": flood.id});
        raw.line(json!({"jsonrpc": "2.0", "id": 1, "method": "session.subscribe", "params": params})).await;
        stuck.push(raw);
    }
    model.text_of(1).await;
    tool_seen.wait_for("tool.started").await;

    for _ in 0..5 {
        let (healthy, mut seen) = submit_words(&daemon, "hello").await;
        for _ in 0..3 {
            seen.turn_ends("success").await;
            healthy.submit("and again").await;
        }
        seen.turn_ends("success").await;
    }
    garbage.turn_ends("llm_error").await;
    flood_seen.turn_ends("success").await;
    let kept: usize = flood.events().await.iter().map(|event| event.to_string().len()).sum();
    assert!(kept < 4 << 20, "{kept} bytes of a flood are kept");
    tool.call("abort", json!({})).await;
    tool_seen.turn_ends("aborted").await;
    assert_eq!(tool.view().await["state"], "idle");
    assert!(daemon.tool_processes().is_empty());
}
