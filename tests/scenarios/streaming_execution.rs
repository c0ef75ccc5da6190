//! Tools start while the answer that requests them is still streaming.

use serde_json::json;

use super::bash;
use crate::support::daemon::{MESSAGE_APIS, TestDaemon};
use crate::support::model_server::{Gate, Step};

const ALLOWED: &str = "[permissions]\nallow = [\"Bash\", \"Write\", \"Edit\"]";

#[tokio::test]
async fn allowed_call_runs_before_its_answer_is_complete() {
    for api in MESSAGE_APIS {
        let daemon = TestDaemon::builder().api(api).config(ALLOWED).start().await;
        let session = daemon.client("alice").await.create(&daemon).await;
        let mut seen = session.follow().await;
        let gate = Gate::new();
        // The second call is held back: the first one is complete by then.
        let calls = [bash("echo early > early.txt"), bash("echo late > late.txt")];
        daemon.models.push(Step::calls(calls).hold_after(3, &gate));
        daemon.models.push(Step::text("done"));
        session.submit("write both").await;
        let early = seen.wait_for("tool.completed").await;
        assert_eq!(early["status"], "completed", "{api:?}: {early}");
        assert!(
            seen.events_of("message.completed").iter().all(|event| event["item"]["role"] == "user"),
            "{api:?}"
        );
        assert_eq!(daemon.read("early.txt"), "early\n");
        gate.open();
        seen.turn_ends("success").await;
        assert_eq!(daemon.read("late.txt"), "late\n");
        // The model gets both results in the order of its calls.
        let results = daemon.models.requests()[1].tool_results();
        assert_eq!(results.len(), 2, "{api:?}: {results:?}");
        daemon.models.assert_no_breach();
    }
}

#[tokio::test]
async fn call_that_needs_permission_waits_for_whole_answer() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("touch one"), bash("touch two")]));
    daemon.models.push(Step::text("done"));
    session.submit("touch").await;
    let first = seen.wait_for("permission.requested").await;
    let second = seen.wait_for("permission.requested").await;
    let answered = seen.events();
    let complete = answered
        .iter()
        .find(|event| event["type"] == "message.completed" && event["item"]["role"] == "assistant")
        .expect("the answer is complete");
    assert!(complete["seq"].as_u64() < first["seq"].as_u64());
    session.allow(&first).await;
    session.allow(&second).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn stream_that_breaks_off_keeps_calls_and_runs_them_once() {
    let daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    let calls = [bash("echo once >> log.txt"), bash("echo never >> log.txt")];
    daemon
        .models
        .push(Step::calls(calls).say("I write.").hold_after(5, &gate).break_off("overloaded_error", "busy"));
    daemon.models.push(Step::text("written"));
    session.submit("write").await;
    seen.wait_for("tool.completed").await;
    gate.open();
    assert_eq!(seen.turn_ends("success").await["text"], "written");
    let cut = seen.events_of("message.completed").into_iter().find(|event| event["cut_short"] == true);
    let cut = cut.expect("an answer that was cut short");
    let blocks = cut["item"]["content"].as_array().expect("blocks");
    assert!(blocks.iter().any(|block| block["type"] == "tool_call"), "{cut}");
    assert_eq!(daemon.read("log.txt").matches("once").count(), 1);
    let results = daemon.models.requests()[1].tool_results();
    assert!(!results.is_empty() && results.len() <= 2, "{results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn kill_during_stream_keeps_early_call_and_never_repeats_it() {
    let mut daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    let calls = [bash("echo once >> log.txt"), bash("echo late >> log.txt")];
    daemon.models.push(Step::calls(calls).hold_after(3, &gate));
    daemon.models.push(Step::text("done"));
    session.submit("write").await;
    seen.wait_for("tool.completed").await;
    daemon.crash_and_restart().await;
    let session = daemon.client("bob").await.join(&session);
    let mut seen = session.follow().await;
    seen.turn_ends("success").await;
    assert_eq!(daemon.read("log.txt"), "once\n");
    let requests = daemon.models.requests();
    let results = requests.last().expect("a request").tool_results();
    assert_eq!(results.len(), 1, "the complete call and its result are kept: {results:?}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn abort_during_stream_keeps_result_of_early_call() {
    let daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    let calls = [bash("echo once >> log.txt"), bash("echo late >> log.txt")];
    daemon.models.push(Step::calls(calls).hold_after(3, &gate));
    session.submit("write").await;
    seen.wait_for("tool.completed").await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    daemon.models.push(Step::text("I know."));
    session.submit("what did you do?").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("a request").body["messages"].to_string();
    assert!(sent.contains("echo once") && !sent.contains("echo late"), "{sent}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn streaming_execution_can_be_switched_off() {
    let off = format!("{ALLOWED}\n[session.ablation]\nstreaming_execution = true");
    let daemon = TestDaemon::builder().config(&off).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("echo one > one.txt"), bash("echo two > two.txt")]));
    daemon.models.push(Step::text("done"));
    session.submit("write both").await;
    seen.turn_ends("success").await;
    assert!(seen.events_of("tool.requested").iter().all(|event| event["provider_id"].is_null()));
}

#[tokio::test]
async fn edits_of_different_files_run_together_and_read_of_edited_file_waits() {
    let daemon = TestDaemon::builder().config(ALLOWED).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    let write = |file: &str, text: &str| ("Write", json!({"file_path": file, "content": text}));
    let read = |file: &str| ("Read", json!({"file_path": file}));
    daemon.models.push(Step::calls([write("a.txt", "new a\n"), write("b.txt", "new b\n"), read("a.txt")]));
    daemon.models.push(Step::text("done"));
    session.submit("write and read").await;
    seen.turn_ends("success").await;
    let results = daemon.models.requests()[1].tool_results();
    assert!(results[2].1.contains("new a"), "the read sees the edit before it: {results:?}");
    let summaries = seen.events_of("tool.summary");
    assert_eq!(summaries.len(), 1, "one for the answer with several calls: {summaries:?}");
    assert_eq!(summaries[0]["text"], "read 1 file, edited 2 files");
    let requested: Vec<_> =
        seen.events_of("tool.requested").iter().map(|event| event["call_id"].clone()).collect();
    assert_eq!(summaries[0]["call_ids"], json!(requested));
}
