//! The request prefix stays the same: each request of a turn begins with the bytes of the previous one,
//! so that the provider's cache finds it. Tested in all APIs, with and without thinking, with steering,
//! denials, interrupted attempts and restarts of the daemon.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::{Api, TestDaemon};
use crate::support::model_server::{Gate, Request, Step};

/// Number of model answers in the turn.
const CALL_COUNT: usize = 50;

#[tokio::test]
async fn anthropic_requests_extend_previous_prefix() {
    long_turns(Api::Anthropic).await;
}

#[tokio::test]
async fn chat_completions_requests_extend_previous_prefix() {
    long_turns(Api::OpenAiChat).await;
}

#[tokio::test]
async fn responses_requests_extend_previous_prefix() {
    long_turns(Api::OpenAiResponses).await;
}

async fn long_turns(api: Api) {
    for thinking in ["high", "off"] {
        let requests = long_turn(api, thinking).await;
        let bodies: Vec<Vec<u8>> = requests.iter().map(|request| cache_input(&request.body)).collect();
        let rewritten: usize = bodies
            .windows(2)
            .map(|pair| pair[0].len() - pair[0].iter().zip(&pair[1]).take_while(|(a, b)| a == b).count())
            .sum();
        let all: usize = bodies.iter().map(Vec::len).sum();
        eprintln!(
            "B12 {api:?}, thinking {thinking}: {rewritten} bytes of {all} in {} requests differ from the prefix",
            bodies.len()
        );
        assert_eq!(rewritten, 0, "{api:?}, thinking {thinking}");
        match thinking {
            "off" => without_thoughts(&requests),
            _ => with_all_thoughts(api, &requests),
        }
        if api == Api::Anthropic {
            breakpoints_stand_where_the_last_request_ended(&requests);
        }
    }
}

/// One turn with every event that could change the prefix.
async fn long_turn(api: Api, thinking: &str) -> Vec<Request> {
    let config = format!(
        "[session]\nthinking = \"{thinking}\"\n[model.\"scripted/model\"]\nthinking = true\n\
         [retry]\nbase_ms = 1\nmax_ms = 2\n[permissions]\ndeny = [\"Bash(rm:*)\"]"
    );
    let mut daemon = TestDaemon::builder().api(api).config(&config).start().await;
    let lines: String = (0..CALL_COUNT).map(|n| format!("line {n} — \"ß\"\n")).collect();
    daemon.write("a.txt", &lines);
    daemon.write("AGENTS.md", "Be brief.\n");
    let file = daemon.workspace().join("a.txt");
    let read = |n: usize| ("Read", json!({"file_path": file, "offset": n, "limit": 1}));
    let next =
        |n: usize| Step::calls([read(n)]).say(&format!("Now line {n}.")).thinking(&format!("Then {n}. "));
    let [steer, crash, stop] = [Gate::new(), Gate::new(), Gate::new()];
    for n in 1..CALL_COUNT {
        match n {
            5 => daemon.models.push(next(n).hold(&steer)),
            10 => daemon.models.push(Step::calls([bash("rm a.txt")]).thinking("Away with it. ")),
            12 => daemon.models.push(Step::calls([bash("touch b.txt")]).thinking("A new one. ")),
            15 => {
                daemon.models.push(next(n).cut_after(700));
                daemon.models.push(next(n));
            }
            20 => {
                daemon.models.push(Step::error(529, "overloaded_error", "busy"));
                daemon.models.push(next(n));
            }
            25 => {
                daemon.models.push(Step::text("never heard").hold(&crash));
                daemon.models.push(next(n));
            }
            // More blocks than a cache breakpoint looks back.
            30 => daemon.models.push(Step::calls((0..12).map(read)).thinking("Many. ")),
            35 => {
                daemon.models.push(Step::text("never heard").hold(&stop));
                daemon.models.push(next(n));
            }
            _ => daemon.models.push(next(n)),
        }
    }
    daemon.models.push(Step::text("Read.").thinking("All done. "));

    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    session.submit("read it line by line").await;
    steer.wait_reached().await;
    session.submit_with(json!({"input": "and mind the quotes", "when_busy": "steer"})).await;
    steer.open();
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny", "feedback": "no new files"})).await;
    crash.wait_reached().await;
    daemon.crash_and_restart().await;
    stop.wait_reached().await;
    daemon.signal(Signal::SIGTERM);
    daemon.wait_exit().await;
    daemon.launch().await;
    let session = daemon.client("alice").await.join(&session);
    let mut seen = session.follow_after(seen.last_seq()).await;
    seen.turn_ends("success").await;
    daemon.models.assert_no_breach();
    let requests = daemon.models.requests();
    assert_eq!(requests.len(), CALL_COUNT + 4, "two attempts failed, and restarts lost two");
    let last = requests[requests.len() - 1].body.to_string();
    for words in ["Be brief.", "line 48", "mind the quotes", "no new files", "not permitted here"] {
        assert!(last.contains(words), "{words}: {last}");
    }
    requests
}

/// The input of a provider's cache hash, in order: tools, system prompt, conversation. Cache
/// breakpoints are left out, because they move with the conversation and are no content.
fn cache_input(body: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in ["model", "tools", "system", "instructions", "messages", "input"] {
        let mut part = body[name].clone();
        remove_cache_marks(&mut part);
        match part {
            Value::Null => {}
            // Without the closing bracket, because appending elements is not a change.
            Value::Array(elements) => {
                for element in elements {
                    bytes.extend(element.to_string().into_bytes());
                    bytes.push(b'\n');
                }
            }
            other => bytes.extend(other.to_string().into_bytes()),
        }
    }
    bytes
}

fn remove_cache_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(remove_cache_marks);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_cache_marks),
        _ => {}
    }
}

/// Blocks and items of a request in any API.
fn parts(request: &Request) -> Vec<&Value> {
    let items = request.body["input"].as_array().into_iter().flatten();
    let blocks = request.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
    items.chain(blocks).collect()
}

fn thoughts(request: &Request) -> Vec<&Value> {
    let is_one =
        |part: &&Value| matches!(part["type"].as_str(), Some("thinking" | "redacted_thinking" | "reasoning"));
    parts(request).into_iter().filter(is_one).collect()
}

fn without_thoughts(requests: &[Request]) {
    for request in requests {
        let body = &request.body;
        assert_eq!(thoughts(request), Vec::<&Value>::new());
        for name in ["thinking", "output_config", "reasoning", "reasoning_effort", "include"] {
            assert_eq!(body.get(name), None, "{name} with thinking off");
        }
        assert!(!body["messages"].to_string().contains("Then 1."), "reasoning is sent as something else");
    }
}

/// Checks that the reasoning of every answer is sent back unchanged until the turn ends.
fn with_all_thoughts(api: Api, requests: &[Request]) {
    for request in requests {
        let body = &request.body;
        match api {
            Api::Anthropic => {
                assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 4096}));
                assert_eq!(body["max_tokens"], 8192);
            }
            Api::OpenAiChat => assert_eq!(body["reasoning_effort"], "high"),
            Api::OpenAiResponses => {
                assert_eq!(body["reasoning"], json!({"effort": "high", "summary": "auto"}));
                assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
            }
        }
    }
    let last = thoughts(&requests[requests.len() - 1]);
    match api {
        Api::Anthropic => {
            assert_eq!(last.len(), CALL_COUNT - 1);
            assert!(
                last.iter()
                    .all(|block| block["signature"].as_str().is_some_and(|s| s.starts_with("signed_")))
            );
            assert_eq!(last[0]["thinking"], "Then 1. ");
        }
        Api::OpenAiResponses => {
            assert_eq!(last.len(), CALL_COUNT - 1);
            assert!(
                last.iter()
                    .all(|item| item["encrypted_content"].as_str().is_some_and(|s| s.starts_with("sealed_")))
            );
        }
        // This API has no field for it.
        Api::OpenAiChat => assert_eq!(last.len(), 0),
    }
}

fn breakpoints_stand_where_the_last_request_ended(requests: &[Request]) {
    let is_marked = |block: Option<&Value>| block.is_some_and(|block| block.get("cache_control").is_some());
    let end = |message: &Value| is_marked(message["content"].as_array().and_then(|blocks| blocks.last()));
    for (n, request) in requests.iter().enumerate() {
        let list = |name: &str| request.body[name].as_array().cloned().unwrap_or_default();
        assert!(is_marked(list("tools").last()) && is_marked(list("system").last()), "{n}");
        assert!(request.messages().last().is_some_and(end), "{n}: the end");
        let before = n.checked_sub(1).map_or(0, |n| requests[n].messages().len());
        if let Some(last_end) = request.messages().get(before.wrapping_sub(1)) {
            assert!(end(last_end), "{n}: the end of the previous request");
        }
    }
}
