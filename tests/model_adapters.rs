//! Both adapters, the replay provider and the recorder against a local server that answers, fails,
//! stalls and breaks off by script.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentd::model::{Key, Kind, ModelSettings, Models, Provider, Settings};
use agentd::types::ids::{Mint, Seed};
use agentd::types::message::{Block, Message, Role, ToolCall};
use agentd::types::model::{Delta, FaultKind, ModelFault, ModelReply, ModelRequest, ReplyBlock, StopReason};
use agentd::types::tool::ToolCard;
use agentd::types::usage::Usage;
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::model_server::{Gate, ModelServer, Step};

const DEADLINE: Duration = Duration::from_secs(20);
const BOTH: [Kind; 2] = [Kind::Anthropic, Kind::OpenAiChat];
/// Set by cargo for every test and without spaces: stands in for a key.
const KEY_VARIABLE: &str = "CARGO_MANIFEST_DIR";
const KEY: &str = env!("CARGO_MANIFEST_DIR");

fn provider(kind: Kind, server: &ModelServer) -> Provider {
    let base_url = if kind == Kind::Anthropic { server.url().into() } else { server.openai_url() };
    Provider { base_url: Some(base_url), key: Key::Env(KEY_VARIABLE.into()), ..Provider::new(kind) }
}

fn models_with(provider: Provider, change: impl FnOnce(&mut Settings)) -> Models {
    let mut settings = Settings { providers: [("test".to_owned(), provider)].into(), ..Settings::default() };
    change(&mut settings);
    Models::new(settings).expect("settings that work")
}

fn models(kind: Kind, server: &ModelServer) -> Models {
    models_with(provider(kind, server), |_| {})
}

fn replay(cassette: &Path) -> Models {
    let cassette = Some(cassette.to_owned());
    models_with(Provider { cassette, ..Provider::new(Kind::Replay) }, |_| {})
}

fn request(messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: "test/scripted".parse().expect("a model"),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [ToolCard {
            name: "Read".into(),
            description: "Reads a file.".into(),
            input_schema: json!({"type":"object","properties":{"file_path":{"type":"string"}}}),
            read_only: true,
        }]
        .into(),
        max_output_tokens: None,
    }
}

fn hello() -> ModelRequest {
    request(vec![Message::user("hello")])
}

/// The reply as the next message of the transcript, and an answer to each of its calls.
fn continued(mut asked: ModelRequest, reply: &ModelReply) -> ModelRequest {
    let mut mint = Mint::new(1, Seed(asked.messages.len() as u128));
    let mut said = Vec::new();
    let mut results = Vec::new();
    for block in &reply.content {
        said.push(match block {
            ReplyBlock::Text(text) => Block::Text { text: text.clone() },
            ReplyBlock::Thinking { text, signature } => {
                Block::Thinking { text: text.clone(), signature: signature.clone() }
            }
            ReplyBlock::RedactedThinking(data) => Block::RedactedThinking { data: data.clone() },
            ReplyBlock::ToolCall { provider_id, tool, input } => {
                let call_id = mint.call();
                results.push(Block::ToolResult {
                    call_id,
                    provider_id: provider_id.clone(),
                    content: format!("result of {tool}"),
                    is_error: false,
                });
                Block::ToolCall(ToolCall {
                    call_id,
                    provider_id: provider_id.clone(),
                    tool: tool.clone(),
                    input: input.clone().expect("JSON"),
                    input_error: None,
                })
            }
        });
    }
    if results.is_empty() {
        results.push(Block::Text { text: "go on".into() });
    }
    asked.messages.push(Arc::new(Message { role: Role::Assistant, content: said }));
    asked.messages.push(Arc::new(Message { role: Role::User, content: results }));
    asked
}

/// Calls and collects all deltas.
async fn call(models: &Models, request: &ModelRequest) -> (Vec<Delta>, Result<ModelReply, ModelFault>) {
    let (out, mut deltas) = mpsc::channel::<Vec<Delta>>(4);
    let collect = async {
        let mut all = Vec::new();
        while let Some(batch) = deltas.recv().await {
            assert!(!batch.is_empty(), "an empty batch");
            all.extend(batch);
        }
        all
    };
    let ask = async {
        let outcome = models.call(request, &out).await;
        drop(out);
        outcome
    };
    let (outcome, all) =
        tokio::time::timeout(DEADLINE, async { tokio::join!(ask, collect) }).await.expect("an end");
    (all, outcome)
}

async fn fault(models: &Models, request: &ModelRequest) -> ModelFault {
    call(models, request).await.1.expect_err("a fault")
}

fn text(deltas: &[Delta]) -> String {
    deltas
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn a_conversation_with_tools_is_held_with_either_api() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        server.push(
            Step::calls([("Read", json!({"file_path":"a"})), ("Read", json!({"file_path":"ß"}))])
                .thinking("Let me see.")
                .say("I read.")
                .usage(100, 20),
        );
        server.push(Step::text("All done."));
        let models = models(kind, &server);

        let asked = hello();
        let (deltas, reply) = call(&models, &asked).await;
        let reply = reply.unwrap();
        assert_eq!(text(&deltas), "I read.");
        assert_eq!(reply.stop_reason, StopReason::ToolUse);
        assert_eq!(reply.usage, Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() });
        assert_eq!(reply.content.len(), 4, "{reply:?}");

        let (deltas, reply) = call(&models, &continued(asked, &reply)).await;
        assert_eq!(text(&deltas), "All done.");
        assert_eq!(reply.unwrap().stop_reason, StopReason::EndTurn);

        server.assert_no_breach();
        let requests = server.requests();
        assert_eq!(requests[1].tool_results().len(), 2, "{:?}", requests[1].body);
        assert_eq!(requests[1].tool_results()[0].1, "result of Read");
        let sent = match kind {
            Kind::Anthropic => requests[0].header("x-api-key"),
            _ => requests[0].header("authorization").and_then(|value| value.strip_prefix("Bearer ")),
        };
        assert_eq!(sent, Some(KEY));
        assert_eq!(requests[0].header("anthropic-version").is_some(), kind == Kind::Anthropic);
        assert!(requests[0].header("user-agent").is_some_and(|agent| agent.starts_with("agentd/")));
    }
}

#[tokio::test]
async fn connections_are_used_again() {
    let server = ModelServer::start().await;
    server.otherwise(|_| Step::text("hi"));
    let models = models(Kind::Anthropic, &server);
    models.warm().await;
    for _ in 0..20 {
        call(&models, &hello()).await.1.unwrap();
    }
    assert!(server.connections() < 20, "{} connections for 20 calls", server.connections());
}

#[tokio::test]
async fn an_answer_in_one_piece_reads_like_a_stream() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        let step = Step::calls([("Read", json!({"file_path":"a"}))]).say("I read.").usage(7, 3);
        server.push(step.clone());
        server.push(step);
        let plain = ModelSettings { streaming: false, ..ModelSettings::default() };
        let piecewise = models(kind, &server);
        let whole = models_with(provider(kind, &server), |settings| {
            settings.models.insert("test/scripted".into(), plain);
        });
        let (streamed_deltas, streamed) = call(&piecewise, &hello()).await;
        let (deltas, reply) = call(&whole, &hello()).await;
        let (mut streamed, reply) = (streamed.unwrap(), reply.unwrap());
        assert_eq!(text(&deltas), text(&streamed_deltas));
        // Ids carry the number of the request.
        streamed.response_id.clone_from(&reply.response_id);
        if let (
            Some(ReplyBlock::ToolCall { provider_id, .. }),
            Some(ReplyBlock::ToolCall { provider_id: id, .. }),
        ) = (streamed.content.last_mut(), reply.content.last())
        {
            provider_id.clone_from(id);
        }
        assert_eq!(reply, streamed);
        server.assert_no_breach();
    }
}

#[tokio::test]
async fn a_slow_drip_is_an_answer_too() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        server.push(Step::pieces(["Grü", "ße ", "🦀"]).drip(1));
        let (deltas, reply) = call(&models(kind, &server), &hello()).await;
        assert_eq!(reply.unwrap().content, [ReplyBlock::Text("Grüße 🦀".into())]);
        assert_eq!(text(&deltas), "Grüße 🦀");
    }
}

#[tokio::test]
async fn refusals_of_the_server_become_faults() {
    let page = || Step::raw(502, "text/html", "<html>Bad gateway</html>");
    let cases: Vec<(Step, FaultKind, &str, Option<u64>)> = vec![
        (
            Step::error(429, "rate_limit_error", "slow down").header("retry-after", "2"),
            FaultKind::RateLimited,
            "slow down",
            Some(2_000),
        ),
        (Step::error(529, "overloaded_error", "Overloaded"), FaultKind::Overloaded, "Overloaded", None),
        (Step::error(500, "api_error", "oops"), FaultKind::Server, "oops", None),
        (page(), FaultKind::Server, "a web page", None),
        (
            Step::error(401, "authentication_error", "bad key"),
            FaultKind::Unauthorized,
            "[providers.test]",
            None,
        ),
        (Step::error(403, "permission_error", "no"), FaultKind::Forbidden, "no", None),
        (Step::error(404, "not_found_error", "model: x"), FaultKind::NotFound, "model: x", None),
        (Step::error(413, "request_too_large", "big"), FaultKind::BadRequest, "big", None),
        (
            Step::raw(307, "text/plain", "").header("location", "http://127.0.0.1:1/"),
            FaultKind::BadRequest,
            "redirects are not followed",
            None,
        ),
        (Step::raw(200, "text/html", "<html>log in</html>"), FaultKind::Garbage, "a web page", None),
        (Step::raw(200, "application/json", "{\"a\":"), FaultKind::Garbage, "JSON", None),
        (Step::raw(200, "text/event-stream", "data: {\n\n"), FaultKind::Garbage, "JSON", None),
        (Step::raw(200, "text/event-stream", ""), FaultKind::Interrupted, "ended before", None),
        (
            Step::text("some words").break_off("overloaded_error", "sorry"),
            FaultKind::Overloaded,
            "sorry",
            None,
        ),
        (Step::text("some words here").cut_after(350), FaultKind::Interrupted, "broke", None),
    ];
    for kind in BOTH {
        let server = ModelServer::start().await;
        let models = models(kind, &server);
        for (step, expected, words, retry_after_ms) in &cases {
            server.push(step.clone());
            let fault = fault(&models, &hello()).await;
            assert_eq!(fault.kind, *expected, "{kind:?} {fault:?}");
            assert!(fault.message.contains(words), "{kind:?} {fault:?} lacks {words:?}");
            assert_eq!(fault.retry_after_ms, *retry_after_ms);
        }
        server.assert_no_breach();
    }
}

#[tokio::test]
async fn a_key_that_the_server_repeats_is_not_shown() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        server.push(Step::error(401, "authentication_error", &format!("bad key {KEY}")));
        let fault = fault(&models(kind, &server), &hello()).await;
        assert!(fault.message.contains("bad key ***"), "{fault:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_with_advice() {
    let server = ModelServer::start().await;
    let mut provider = provider(Kind::OpenAiChat, &server);
    // A port that was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    provider.base_url = Some(format!("http://{}/v1", free.local_addr().unwrap()));
    drop(free);
    let fault = fault(&models_with(provider, |_| {}), &hello()).await;
    assert_eq!(fault.kind, FaultKind::Unreachable);
    for words in ["could not reach http://127.0.0.1:", "connection refused", "base_url of [providers.test]"] {
        assert!(fault.message.contains(words), "{fault:?} lacks {words:?}");
    }
}

#[tokio::test]
async fn a_missing_key_is_told_before_anything_is_sent() {
    let vendor = models_with(Provider::new(Kind::Anthropic), |_| {});
    let fault_ = fault(&vendor, &hello()).await;
    assert_eq!(fault_.kind, FaultKind::NoKey);
    assert!(fault_.message.contains("set ANTHROPIC_API_KEY"), "{fault_:?}");

    let server = ModelServer::start().await;
    let mut provider = provider(Kind::OpenAiChat, &server);
    provider.key = Key::Env("AGENTD_NO_SUCH_KEY".into());
    let fault_ = fault(&models_with(provider.clone(), |_| {}), &hello()).await;
    assert_eq!(fault_.kind, FaultKind::NoKey);
    assert_eq!(server.requests().len(), 0);

    // A local server needs none.
    provider.key = Key::None;
    server.push(Step::text("hi"));
    assert!(call(&models_with(provider, |_| {}), &hello()).await.1.is_ok());
    assert_eq!(server.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn headers_of_the_settings_are_sent_and_win() {
    let server = ModelServer::start().await;
    server.push(Step::text("hi"));
    let mut provider = provider(Kind::Anthropic, &server);
    provider.headers.insert("anthropic-version".into(), "2099-01-01".into());
    provider.headers.insert("X-Title".into(), "test".into());
    call(&models_with(provider, |_| {}), &hello()).await.1.unwrap();
    let request = &server.requests()[0];
    assert_eq!(request.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(request.header("x-title"), Some("test"));
}

#[tokio::test]
async fn silence_ends_a_call_before_and_inside_the_answer() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        let never = Gate::new();
        server.push(Step::text("too late").hold(&never));
        server.push(Step::text("one two").hold_after(1, &never));
        let models = models_with(provider(kind, &server), |settings| {
            settings.idle_timeout = Duration::from_millis(600);
        });
        assert_eq!(fault(&models, &hello()).await.kind, FaultKind::Idle);
        let (deltas, outcome) = call(&models, &hello()).await;
        assert_eq!(outcome.unwrap_err().kind, FaultKind::Idle);
        assert_eq!(text(&deltas), "one ");
    }
}

#[tokio::test]
async fn deltas_come_while_the_answer_is_still_being_made() {
    for kind in BOTH {
        let server = ModelServer::start().await;
        let gate = Gate::new();
        server.push(Step::text("one two").hold_after(1, &gate));
        let models = models(kind, &server);
        let asked = hello();
        let (out, mut deltas) = mpsc::channel(4);
        let watch = async {
            let mut seen = Vec::new();
            while text(&seen) != "one " {
                seen.extend(deltas.recv().await.expect("more deltas"));
            }
            gate.open();
            while let Some(batch) = deltas.recv().await {
                seen.extend(batch);
            }
            assert_eq!(text(&seen), "one two");
        };
        let ask = async {
            let outcome = models.call(&asked, &out).await;
            drop(out);
            outcome.unwrap();
        };
        tokio::time::timeout(DEADLINE, async { tokio::join!(ask, watch) }).await.expect("an end");
    }
}

#[tokio::test]
async fn dropping_the_call_or_its_listener_ends_the_request() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.push(Step::text("one two").hold_after(1, &gate));
    server.push(Step::text("one two").hold_after(1, &gate));
    let models = models(Kind::Anthropic, &server);

    let (out, _deltas) = mpsc::channel(4);
    let asking = tokio::spawn({
        let models = models.clone();
        async move { models.call(&hello(), &out).await }
    });
    gate.reached().await;
    asking.abort();
    server.wait_for_hangups(1).await;

    let (out, mut deltas) = mpsc::channel(4);
    let asked = hello();
    let leave = async {
        assert!(deltas.recv().await.is_some());
        drop(deltas);
    };
    let (outcome, ()) =
        tokio::time::timeout(DEADLINE, async { tokio::join!(models.call(&asked, &out), leave) })
            .await
            .unwrap();
    assert_eq!(outcome.unwrap_err().kind, FaultKind::Interrupted);
    server.wait_for_hangups(2).await;
}

#[tokio::test]
async fn an_answer_that_was_complete_survives_a_bad_ending() {
    let server = ModelServer::start().await;
    // No [DONE], no counts, and the connection breaks.
    let said = json!({"choices":[{"index":0,"delta":{"content":"all said"},"finish_reason":"stop"}]});
    let body = format!("data: {said}\n\n");
    server.push(Step::raw(200, "text/event-stream", body.clone()).cut_after(body.len()));
    let (deltas, reply) = call(&models(Kind::OpenAiChat, &server), &hello()).await;
    assert_eq!(reply.unwrap().stop_reason, StopReason::EndTurn);
    assert_eq!(text(&deltas), "all said");
}

#[tokio::test]
async fn a_recording_plays_back_what_was_answered() {
    for kind in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tape.jsonl");
        let server = ModelServer::start().await;
        server.push(Step::calls([("Read", json!({"file_path":"a"}))]).say(&format!("My key is {KEY}.")));
        server.push(Step::error(500, "api_error", "oops"));
        server.push(Step::text("All done."));
        let mut recorded = provider(kind, &server);
        recorded.record = Some(file.clone());
        let live = models_with(recorded, |_| {});

        let asked = hello();
        let (_, first) = call(&live, &asked).await;
        let first = first.unwrap();
        let next = continued(asked.clone(), &first);
        assert_eq!(fault(&live, &next).await.kind, FaultKind::Server);
        let (live_deltas, second) = call(&live, &next).await;
        assert_eq!(first.notices, Vec::<String>::new());

        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let tape = std::fs::read_to_string(&file).unwrap();
        assert!(!tape.contains(KEY), "{tape}");
        assert_eq!(tape.lines().count(), 4, "{tape}");

        // By order, and by hash, in a fresh provider each time.
        let by_hash = folder.path().join("by_hash.jsonl");
        std::fs::write(&by_hash, tape.replacen("\"order\"", "\"hash\"", 1)).unwrap();
        for cassette in [&file, &by_hash] {
            let player = replay(cassette);
            let (deltas, again) = call(&player, &asked).await;
            assert_eq!(text(&deltas), "My key is ***.");
            assert_eq!(again.unwrap().stop_reason, first.stop_reason);
            // The newest record of this place: the failed attempt is not repeated.
            let (deltas, again) = call(&player, &next).await;
            assert_eq!(again, second);
            assert_eq!(text(&deltas), text(&live_deltas));
        }
    }
}

#[tokio::test]
async fn a_cassette_written_by_hand_is_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("demo.jsonl");
    std::fs::write(
        &file,
        r#"{"cassette":1}
{"thinking":"Hm, well.","say":"I look at it.","calls":[{"tool":"Read","input":{"file_path":"a"}}],"usage":{"output_tokens":9}}
{"say":"Three small words","delay_ms":1,"pace_ms":1}
{"say":"Half a","fail":"overloaded"}
"#,
    )
    .unwrap();
    let models = replay(&file);

    let asked = hello();
    let (deltas, reply) = call(&models, &asked).await;
    let reply = reply.unwrap();
    assert_eq!(text(&deltas), "I look at it.");
    assert_eq!(reply.stop_reason, StopReason::ToolUse);
    assert_eq!(reply.usage.output_tokens, 9);
    let called = ReplyBlock::ToolCall {
        provider_id: "call_replay_0_2".into(),
        tool: "Read".into(),
        input: Ok(json!({"file_path":"a"})),
    };
    assert_eq!(reply.content[2], called);

    let asked = continued(asked, &reply);
    let (deltas, reply) = call(&models, &asked).await;
    let reply = reply.unwrap();
    let pieces = deltas.iter().filter(|delta| matches!(delta, Delta::Text { .. })).count();
    assert_eq!((text(&deltas).as_str(), pieces), ("Three small words", 3));

    let asked = continued(asked, &reply);
    let (deltas, outcome) = call(&models, &asked).await;
    assert_eq!(text(&deltas), "Half a");
    assert_eq!(outcome.unwrap_err().kind, FaultKind::Overloaded);

    // Nothing is left, and nothing is made up.
    let asked = continued(asked, &reply);
    let fault_ = fault(&models, &asked).await;
    assert_eq!(fault_.kind, FaultKind::CassetteExhausted);
    assert!(fault_.message.contains("no record number 4, it holds 3"), "{fault_:?}");

    // The first record again: the place is found from the request alone.
    assert!(call(&models, &hello()).await.1.is_ok());
}

#[tokio::test]
async fn a_bad_cassette_is_told_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.jsonl");
    std::fs::write(&file, "{\"say\":\"a\"}\n{\"sya\":\"b\"}\n").unwrap();
    let fault_ = fault(&replay(&file), &hello()).await;
    assert_eq!(fault_.kind, FaultKind::Unconfigured);
    assert!(fault_.message.contains("line 2: unknown field `sya`"), "{fault_:?}");
    let absent = fault(&replay(&folder.path().join("absent")), &hello()).await;
    assert!(absent.message.contains("could not be read"), "{absent:?}");
}

#[tokio::test]
async fn the_test_server_refuses_what_a_strict_provider_refuses() {
    let server = ModelServer::start().await;
    let twice = request(vec![Message::user("one"), Message::user("two")]);
    let call_id = Mint::new(1, Seed(1)).call();
    let unanswered = Block::ToolCall(ToolCall {
        call_id,
        provider_id: "c1".into(),
        tool: "Read".into(),
        input: json!({}),
        input_error: None,
    });
    let said = Message { role: Role::Assistant, content: vec![unanswered] };
    let open = request(vec![Message::user("one"), said, Message::user("two")]);
    let mut breaches = 0;
    for kind in BOTH {
        let models = models(kind, &server);
        for (asked, words) in [(&open, "c1"), (&hello(), "no step left")] {
            let fault = fault(&models, asked).await;
            assert_eq!(fault.kind, FaultKind::BadRequest);
            assert!(fault.message.contains(words), "{fault:?} lacks {words:?}");
            breaches += 1;
            assert_eq!(server.breaches().len(), breaches);
        }
    }
    let fault = fault(&models(Kind::Anthropic, &server), &twice).await;
    assert!(fault.message.contains("expected role assistant"), "{fault:?}");
}
