//! The context window: long turns fit it, stage by stage, and clients see what was compacted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::bash;
use super::context_overflow::{refusal, session_without_window};
use crate::support::client::Session;
use crate::support::daemon::TestDaemon;
use crate::support::log::Log;
use crate::support::model_server::{Request, Step};

/// Bytes per token of the scripted provider: its tokenizer differs from the daemon's estimate.
const BYTES_PER_TOKEN: f64 = 3.3;

/// Tokens of a request as the scripted provider counts them.
fn tokens(request: &Request) -> u64 {
    let part = |name: &str| request.body.get(name).map_or(0, |part| part.to_string().len());
    ((part("system") + part("tools") + part("messages")) as f64 / BYTES_PER_TOKEN) as u64
}

fn is_summary_request(request: &Request) -> bool {
    request.messages().last().expect("messages")["content"].to_string().contains("Write a summary")
}

/// The configuration of a model with this window.
pub(super) fn window(context_window: u64, max_output_tokens: u64) -> String {
    format!(
        "[model.\"scripted/model\"]\ncontext_window = {context_window}\nmax_output_tokens = {max_output_tokens}\n\
         [permissions]\nallow = [\"Bash\"]"
    )
}

/// Tokens that each stage saved, by name.
fn savings(events: &[Value]) -> BTreeMap<String, (u64, u64)> {
    let mut saved: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for event in
        events.iter().filter(|event| event["type"] == "compact.completed" && event["error"].is_null())
    {
        let number = |name: &str| event[name].as_u64().expect("a number");
        let entry = saved.entry(event["stage"].as_str().expect("a stage").to_owned()).or_default();
        *entry = (entry.0 + 1, entry.1 + number("tokens_before") - number("tokens_after"));
    }
    saved
}

/// Bytes of the part that a provider caches, in the order in which it reads a request.
fn cacheable(request: &Request) -> String {
    let part = |name: &str| request.body.get(name).cloned().unwrap_or_default();
    let mut all = json!([part("tools"), part("system"), part("messages")]);
    strip_cache_marks(&mut all);
    all.to_string()
}

fn strip_cache_marks(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(strip_cache_marks),
        Value::Object(map) => {
            map.remove("cache_control");
            map.values_mut().for_each(strip_cache_marks);
        }
        _ => {}
    }
}

/// Waits for the end of a long turn. Each wait is for one event, so the deadline applies to the time between events.
async fn long_turn_ends(seen: &mut Log) -> Value {
    loop {
        let event = seen.find("any event", |_| true).await;
        if event["type"] == "turn.completed" {
            return event;
        }
    }
}

/// A turn of 100 steps with three calls each and about 2 MB of output. Checks that no request exceeds the window.
async fn long_turn(context_window: u64, max_output_tokens: u64) -> (TestDaemon, Session, Vec<Request>) {
    const STEP_COUNT: usize = 100;
    let daemon = TestDaemon::builder().config(&window(context_window, max_output_tokens)).start().await;
    for number in 0..30 {
        daemon.write(
            &format!("f{number}.txt"),
            &format!("file {number}: {}\n", "some words here ".repeat(9)).repeat(45),
        );
    }
    let steps = Arc::new(AtomicUsize::new(0));
    daemon.models.set_fallback(move |request| {
        let sent = tokens(request);
        if is_summary_request(request) {
            return Step::text("SUMMARY: thirty files are read one after the other.").usage(sent, 20);
        }
        let step = steps.fetch_add(1, Ordering::SeqCst);
        if step == STEP_COUNT {
            return Step::text("All read.").usage(sent, 5);
        }
        let read = |at: usize| {
            let file = format!("f{}.txt", (step * 3 + at) % 30);
            ("Read", json!({"file_path": file, "offset": 1 + (step / 10) % 3, "limit": 44}))
        };
        Step::calls([read(0), read(1), read(2)]).say(&format!("Step {step}.")).usage(sent, 60)
    });
    let session = daemon
        .client("alice")
        .await
        .create_with(&daemon, json!({"tools": {"allow": ["Read", "Bash", "Edit"]}}))
        .await;
    let mut seen = session.follow().await;
    session.submit("read all the files").await;
    let end = long_turn_ends(&mut seen).await;
    assert_eq!(end["result"]["subtype"], "success", "{end}");
    let requests = daemon.models.requests();
    for (at, request) in requests.iter().enumerate() {
        let answer = request.body["max_tokens"].as_u64().expect("a limit");
        let sent = tokens(request);
        assert!(sent + answer <= context_window, "request {at}: {sent} + {answer} exceed {context_window}");
        // Each request contains the newest results, word for word.
        if !is_summary_request(request) && at > 0 {
            assert!(request.tool_results().len() == 3, "request {at} ends with the newest results");
        }
    }
    daemon.models.assert_no_breach();
    (daemon, session, requests)
}

/// Prints how many requests have a changed beginning, and the share of bytes that a provider's cache could serve.
fn report(name: &str, session_events: &[Value], requests: &[Request]) {
    let saved = savings(session_events);
    let conversation: Vec<String> =
        requests.iter().filter(|request| !is_summary_request(request)).map(cacheable).collect();
    let (mut served, mut total, mut breaks) = (0usize, 0usize, 0);
    for pair in conversation.windows(2) {
        // The next request does not repeat the closing brackets of the earlier request.
        let before = pair[0].trim_end_matches(['}', ']', '"']);
        let common = before.bytes().zip(pair[1].bytes()).take_while(|(a, b)| a == b).count();
        breaks += usize::from(common + 64 < before.len());
        served += common;
        total += pair[1].len();
    }
    eprintln!(
        "{name}: {} requests, {breaks} with a changed beginning, {}% of the bytes could be served from a cache; {saved:?}",
        requests.len(),
        served * 100 / total.max(1),
    );
}

#[tokio::test]
async fn long_turn_fits_window_of_8000_tokens() {
    let (_daemon, session, requests) = long_turn(8_000, 1_000).await;
    let events = session.events().await;
    report("window 8,000", &events, &requests);
    let saved = savings(&events);
    assert!(saved.contains_key("microcompact") || saved.contains_key("autocompact"), "{saved:?}");
    // The journal keeps every result as the model first received it.
    let whole = events.iter().filter(|event| event["type"] == "tool.completed").count();
    assert_eq!(whole, 300);
}

#[tokio::test]
async fn long_turn_fits_window_of_200000_tokens() {
    let (_daemon, session, requests) = long_turn(200_000, 32_000).await;
    let events = session.events().await;
    report("window 200,000", &events, &requests);
    assert!(!savings(&events).is_empty());
    // Between two compactions the beginning of the requests never changes.
    let edits = events
        .iter()
        .filter(|event| event["type"] == "compact.completed" && !event["edit"].is_null())
        .count();
    let conversation: Vec<String> =
        requests.iter().filter(|request| !is_summary_request(request)).map(cacheable).collect();
    let breaks = conversation.windows(2).filter(|pair| {
        let before = pair[0].trim_end_matches(['}', ']', '"']);
        !pair[1].starts_with(before)
    });
    assert!(breaks.count() <= edits, "only a compaction changes the prefix");
}

/// A session with a small window. Its first turn ran `outputs` commands with long output.
async fn full_session(more: &str, outputs: usize) -> (TestDaemon, Session, Log) {
    let config = format!("{}\n{more}", window(6_000, 500));
    let daemon = TestDaemon::builder().config(&config).start().await;
    let session =
        daemon.client("alice").await.create_with(&daemon, json!({"tools": {"allow": ["Bash"]}})).await;
    let mut seen = session.follow().await;
    for number in 0..outputs {
        let sent = 1_000 + 900 * number as u64;
        let call = bash(&format!("seq {}000 {}900", number + 1, number + 1));
        daemon.models.push(Step::calls([call]).usage(sent, 20));
    }
    daemon.models.push(Step::text("first done").usage(1_500 + 1_000 * outputs as u64, 5));
    session.submit("count").await;
    long_turn_ends(&mut seen).await;
    (daemon, session, seen)
}

#[tokio::test]
async fn summary_replaces_old_messages_and_keeps_newest_input() {
    let config = "[compaction]\nsnip = false\nmicrocompact = false\ncollapse = false";
    let (daemon, session, mut seen) = full_session(config, 3).await;
    daemon.models.push(Step::text("SUMMARY of the counting"));
    daemon.models.push(Step::text("second done"));
    session.submit("go on please").await;
    let started = seen.wait_for("compact.started").await;
    assert_eq!((&started["stage"], &started["trigger"]), (&json!("autocompact"), &json!("auto")));
    let completed = seen.wait_for("compact.completed").await;
    assert_eq!(completed["item_id"], started["item_id"]);
    assert!(completed["tokens_after"].as_u64() < completed["tokens_before"].as_u64(), "{completed}");
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let (summary, next) = (&requests[requests.len() - 2], &requests[requests.len() - 1]);
    assert!(is_summary_request(summary));
    // The summary's request begins like the conversation, so that the provider's cache serves it.
    assert_eq!(summary.body["system"].to_string().len(), next.body["system"].to_string().len());
    let begins = summary.messages()[0]["content"][0]["text"].as_str();
    assert_eq!(begins, Some("count"));
    let sent = next.body["messages"].to_string();
    assert!(sent.contains("SUMMARY of the counting") && sent.contains("go on please"), "{sent}");
    assert!(!sent.contains("1100"), "the old output is gone: {sent}");
    // The journal and the items keep the original; the boundary is an item of its own.
    let items = session.items().await;
    assert!(items.iter().any(|item| item["text"].as_str().is_some_and(|text| text.contains("1100"))));
    let boundary = items.iter().find(|item| item["kind"] == "compaction").expect("a boundary");
    assert_eq!(boundary["status"], "completed");
    // The turn is charged for the summary's model call.
    let usage = seen.events_of("usage");
    assert_eq!(usage.last().expect("a usage")["purpose"], "compaction");
    let context = session.call("context", json!({})).await;
    assert_eq!(context["compactions"], 1);
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn manual_compaction_is_a_turn_with_instructions() {
    let (daemon, session, mut seen) = full_session("", 1).await;
    daemon.models.push(Step::text("SUMMARY with numbers"));
    let params = json!({"instructions": "keep the numbers", "idempotency_key": "k"});
    let reply = session.call("compact", params.clone()).await;
    assert_eq!(session.call("compact", params).await, reply, "a repeated call is the same call");
    let end = seen.turn_ends("success").await;
    assert_eq!((&end["model_calls"], seen.events_of("turn.started").len()), (&json!(1), 2));
    assert_eq!(seen.events_of("turn.started")[1]["turn_id"], reply["turn_id"]);
    let requests = daemon.models.requests();
    assert!(requests.last().expect("a request").body.to_string().contains("keep the numbers"));
    // The next turn starts from the summary.
    daemon.models.push(Step::text("third"));
    session.submit("and now").await;
    seen.turn_ends("success").await;
    let sent = daemon.models.requests().last().expect("a request").body["messages"].to_string();
    assert!(sent.contains("SUMMARY with numbers") && !sent.contains("1100"), "{sent}");
    let long = session.refused("compact", json!({"instructions": "x".repeat(10_001)})).await;
    assert_eq!((long.code, long.data["path"].as_str()), (-32602, Some("instructions")));
}

#[tokio::test]
async fn manual_compaction_waits_for_running_turn() {
    let (daemon, session, mut seen) = full_session("", 1).await;
    let gate = crate::support::model_server::Gate::new();
    daemon.models.push(Step::text("slow answer").hold_after(1, &gate));
    daemon.models.push(Step::text("SUMMARY"));
    let running = session.submit("slowly").await;
    seen.wait_for("message.text_delta").await;
    let reply = session.call("compact", json!({})).await;
    assert_eq!(seen.wait_for("turn.queued").await["turn_id"], reply["turn_id"]);
    gate.open();
    assert_eq!(seen.wait_for("turn.completed").await["turn_id"], json!(running));
    assert_eq!(seen.wait_for("compact.completed").await["trigger"], "manual");
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn failed_or_empty_summary_leaves_conversation_and_stops_after_limit() {
    let config = "[compaction]\nsnip = false\nmicrocompact = false\ncollapse = false\nmax_failures = 2";
    let (daemon, session, mut seen) = full_session(config, 3).await;
    daemon.models.push(Step::text(" "));
    daemon.models.push(Step::text("one").usage(4_600, 5));
    session.submit("a").await;
    let completed = seen.wait_for("compact.completed").await;
    assert_eq!((&completed["error"], &completed["edit"]), (&json!("empty_summary"), &Value::Null));
    seen.turn_ends("success").await;
    // Another status would be answered by a shorter request.
    daemon.models.push(Step::error(403, "permission_error", "no"));
    daemon.models.push(Step::text("two").usage(4_700, 5));
    session.submit("b").await;
    assert_eq!(seen.wait_for("compact.completed").await["error"], "forbidden");
    seen.turn_ends("success").await;
    // After two failures, the third turn requests no summary.
    daemon.models.push(Step::text("three"));
    session.submit("c").await;
    seen.turn_ends("success").await;
    assert_eq!(seen.events_of("compact.started").len(), 2);
    let sent = daemon.models.requests().last().expect("a request").body["messages"].to_string();
    assert!(sent.contains("1100"), "the conversation is complete: {sent}");
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn configured_model_writes_summary_and_sessions_model_after_its_failure() {
    let config = "model = \"scripted/small\"";
    let (daemon, session, mut seen) = session_without_window(config).await;
    daemon.models.push(Step::text("SUMMARY").usage(100, 10));
    session.call("compact", json!({"idempotency_key": "a"})).await;
    let end = seen.turn_ends("success").await;
    assert_eq!(daemon.models.requests().last().expect("a request").body["model"], "small");
    assert_eq!(seen.events_of("usage").last().expect("a usage")["model"], "scripted/small");
    assert!(end["usage_by_model"].get("scripted/small").is_some(), "{end}");
    daemon.models.push(Step::text("second done"));
    session.submit("go on").await;
    seen.turn_ends("success").await;
    // The model does not exist any more.
    daemon.models.push(refusal(404, "no such model"));
    daemon.models.push(Step::text("SUMMARY again"));
    session.call("compact", json!({"idempotency_key": "b"})).await;
    seen.turn_ends("success").await;
    let requests = daemon.models.requests();
    let models: Vec<_> =
        requests[requests.len() - 2..].iter().map(|request| &request.body["model"]).collect();
    assert_eq!(models, ["small", "model"]);
}

#[tokio::test]
async fn context_names_parts_that_add_up_to_used() {
    let (daemon, session, _seen) = full_session("", 1).await;
    daemon.write("AGENTS.md", "ignored: the prompt was built before");
    let context = session.call("context", json!({})).await;
    assert_eq!((&context["window"], &context["reserved_output"]), (&json!(6_000), &json!(500)));
    let part = |name: &str| {
        let parts = context["parts"].as_array().expect("parts");
        parts.iter().find(|part| part["name"] == name).and_then(|part| part["tokens"].as_u64())
    };
    let used = context["used"].as_u64().expect("a number");
    let names = ["system", "instructions", "tools", "messages", "tool_results", "reminders"];
    assert_eq!(names.iter().filter_map(|name| part(name)).sum::<u64>(), used, "{context}");
    assert_eq!(part("free"), Some(6_000 - 500 - used));
    assert!(part("tool_results") > part("messages"), "{context}");
    // Without a known window, the context has no window and its numbers are estimates.
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let context = session.call("context", json!({})).await;
    assert_eq!((&context["window"], &context["estimated"]), (&Value::Null, &json!(true)), "{context}");
}

#[tokio::test]
async fn window_smaller_than_prompt_ends_turn_with_clear_error() {
    let daemon = TestDaemon::builder().config(&window(1_200, 300)).start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    session.submit("hi").await;
    let end = seen.turn_ends("llm_error").await;
    assert_eq!(end["errors"][0]["kind"], "context_overflow");
    let message = end["errors"][0]["message"].as_str().expect("text");
    assert!(message.contains("900 fit the window") && message.contains("larger window"), "{message}");
    assert_eq!(daemon.models.requests().len(), 0, "nothing was sent");
    // With another model, the session continues.
    daemon.models.push(Step::text("fits"));
    session.submit_with(json!({"input": "hi", "model": "scripted/other"})).await;
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn abort_during_summary_keeps_conversation() {
    let config = "[compaction]\nsnip = false\nmicrocompact = false\ncollapse = false";
    let (daemon, session, mut seen) = full_session(config, 3).await;
    let gate = crate::support::model_server::Gate::new();
    daemon.models.push(Step::text("SUMMARY never finished").hold_after(1, &gate));
    session.submit("go on").await;
    seen.wait_for("compact.started").await;
    session.call("abort", json!({})).await;
    assert_eq!(seen.wait_for("compact.completed").await["error"], "aborted");
    seen.turn_ends("aborted").await;
    gate.open();
    daemon.models.push(Step::text("SUMMARY"));
    daemon.models.push(Step::text("after"));
    session.submit("again").await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
}
