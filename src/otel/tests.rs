//! Passes events to the exporter and checks the requests at a local receiver.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::histogram::Attribute;
use super::spans::{SpanEvent, Spans};
use super::{Exporter, Settings};
use types::event::Envelope;
use types::time::{Clock, Timestamp};

const SESSION: &str = "ses_0190f2a4-0000-7000-8000-000000000001";
const TURN: &str = "turn_0190f2a4-0000-7000-8000-00000000abcd";
const CALL: &str = "call_0190f2a4-0000-7000-8000-000000000003";

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(9_000)
    }
}

fn envelope(seq: u64, at_ms: i64, event: Value) -> Envelope {
    let mut all = json!({"seq": seq, "session_id": SESSION, "turn_id": TURN, "at_ms": at_ms});
    let (to, from) =
        (all.as_object_mut().expect("an object"), event.as_object().cloned().expect("an object"));
    to.extend(from);
    serde_json::from_value(all).expect("an event")
}

fn item(status: &str) -> Value {
    json!({"item_id": "item_0190f2a4-0000-7000-8000-000000000002", "turn_id": TURN, "kind": "assistant_message",
        "status": status, "first_seq": 3, "last_seq": 4, "text": "a secret word", "role": "assistant"})
}

/// A turn with a failed attempt, an answer and a failed tool call.
fn turn() -> Vec<Envelope> {
    let usage = json!({"input_tokens": 10, "cache_read_tokens": 90, "output_tokens": 7});
    vec![
        envelope(1, 1_000, json!({"type": "turn.started", "model": "here/m/1", "mode": "default"})),
        envelope(2, 1_100, json!({"type": "turn.phase", "phase": "model_call", "step": 1})),
        envelope(
            3,
            1_400,
            json!({"type": "usage", "model": "here/m/1", "usage": {"input_tokens": 50},
            "reason": "lost_attempt", "estimated": true}),
        ),
        envelope(
            4,
            1_400,
            json!({"type": "retry", "attempt": 1, "max": 3, "delay_ms": 100, "reason": "a secret word"}),
        ),
        envelope(5, 1_500, json!({"type": "turn.phase", "phase": "model_call", "step": 1})),
        envelope(
            6,
            2_500,
            json!({"type": "message.completed", "item": item("completed"), "model": "here/m/1",
            "stop_reason": "tool_use", "usage": usage, "duration_ms": 1_000, "response_id": "resp_1"}),
        ),
        envelope(
            7,
            3_000,
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "failed",
            "output": "a secret word", "code": "exit", "duration_ms": 400}),
        ),
        envelope(
            8,
            4_000,
            json!({"type": "turn.completed", "result": {"subtype": "success", "text": "a secret word",
            "stop_reason": "end_turn", "usage": usage, "usage_by_model": {}, "cost_usd_micros": null,
            "duration_ms": 3_000, "model_ms": 1_000, "tools_ms": 400, "permission_ms": 0, "model_calls": 2,
            "permission_denials": [], "errors": []}}),
        ),
    ]
}

#[test]
fn every_call_creates_one_span_under_turn() {
    let mut spans = Spans::new();
    let made: Vec<_> = turn()
        .iter()
        .filter_map(SpanEvent::from_envelope)
        .filter_map(|event| spans.handle_event(event))
        .collect();
    let names: Vec<_> =
        made.iter().map(|span| (span.name.as_str(), span.start.0, span.end.0, span.is_error)).collect();
    assert_eq!(
        names,
        [
            ("chat m/1", 1_100, 1_400, true),
            ("chat m/1", 1_500, 2_500, false),
            ("execute_tool Bash", 2_600, 3_000, true),
            ("invoke_agent agentd", 1_000, 4_000, false),
        ]
    );
    let root = made.last().expect("the turn");
    assert_eq!(root.parent, None);
    assert!(made[..3].iter().all(|span| span.parent == Some(root.id) && span.trace == root.trace));
    let trace: String = root.trace.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(trace, "0190f2a400007000800000000000abcd", "the id of the turn");
    let input = made[1].attributes.iter().find(|(name, _)| *name == "gen_ai.usage.input_tokens");
    assert_eq!(
        input.map(|(_, value)| value),
        Some(&Attribute::Count(100)),
        "what came from a cache is input too"
    );
    assert!(!root.attributes.iter().any(|(name, _)| name.contains("cost")), "an unknown cost is not nothing");
    assert!(!format!("{made:?}").contains("secret"), "what was said is in no span");
}

/// Answers every request with `status`; the channel returns path, headers and body of each.
async fn receiver(status: u16) -> (String, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("its address"));
    let (request_sender, request_receiver) = mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let request_sender = request_sender.clone();
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                loop {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    if let Some((head, body)) = text.split_once("\r\n\r\n") {
                        let length = head.lines().find_map(|line| {
                            line.to_ascii_lowercase()
                                .strip_prefix("content-length: ")
                                .and_then(|n| n.parse().ok())
                        });
                        if body.len() >= length.unwrap_or(0) {
                            let _ = request_sender.send((head.to_owned(), body.to_owned())).await;
                            let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n\r\n{{}}");
                            let _ = socket.write_all(answer.as_bytes()).await;
                            bytes.clear();
                            continue;
                        }
                    }
                    match socket.read_buf(&mut bytes).await {
                        Ok(1..) => {}
                        _ => return,
                    }
                }
            });
        }
    });
    (address, request_receiver)
}

fn settings(endpoint: String) -> Settings {
    let headers = [("authorization".to_owned(), "Bearer hush".to_owned())].into();
    Settings { endpoint, headers, service_name: "mine".into() }
}

async fn with_deadline<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("in time")
}

#[tokio::test]
async fn exporter_sends_spans_and_metrics_as_otlp() {
    let (address, mut requests) = receiver(200).await;
    let (watcher, exporter) = Exporter::start(&settings(address), Arc::new(FixedClock)).expect("settings");
    turn().iter().for_each(|envelope| watcher.queue_event(envelope));
    drop(watcher);
    with_deadline(exporter.wait_finished()).await;
    let (head, body) = with_deadline(requests.recv()).await.expect("traces");
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert!(head.to_ascii_lowercase().contains("authorization: bearer hush"), "{head}");
    let body: Value = serde_json::from_str(&body).expect("json");
    let resource = &body["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(resource, &json!({"key": "service.name", "value": {"stringValue": "mine"}}));
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
    assert_eq!(spans.len(), 4);
    assert_eq!((&spans[0]["kind"], &spans[0]["status"]["code"]), (&json!(3), &json!(2)));
    assert_eq!(spans[1]["startTimeUnixNano"], "1500000000");
    assert_eq!(spans[1]["spanId"].as_str().map(str::len), Some(16));

    let (head, body) = with_deadline(requests.recv()).await.expect("metrics");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1"), "{head}");
    let body: Value = serde_json::from_str(&body).expect("json");
    let metrics = body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().expect("metrics");
    assert_eq!(metrics[0]["name"], "gen_ai.client.token.usage");
    assert_eq!(metrics[1]["name"], "gen_ai.client.operation.duration");
    let point = &metrics[0]["histogram"]["dataPoints"][0];
    let buckets = point["bucketCounts"].as_array().expect("buckets");
    assert_eq!((point["count"].as_str(), buckets.len()), (Some("2"), 15), "{point}");
    assert_eq!(point["sum"], 150.0);
}

#[tokio::test]
async fn failing_telemetry_receiver_blocks_nothing() {
    let (failing, _heard) = receiver(500).await;
    for endpoint in [failing, "http://127.0.0.1:1".to_owned()] {
        let (watcher, exporter) =
            Exporter::start(&settings(endpoint), Arc::new(FixedClock)).expect("settings");
        // Far more than the queue can hold: the watcher never blocks.
        for _ in 0..2_000 {
            turn().iter().for_each(|envelope| watcher.queue_event(envelope));
        }
        drop(watcher);
        with_deadline(exporter.wait_finished()).await;
    }
}

#[test]
fn invalid_telemetry_settings_are_refused_without_secret() {
    for (endpoint, header, word) in [
        ("localhost:4318", "fine", "endpoint"),
        ("ftp://host", "fine", "endpoint"),
        ("http://host:4318", "hush\nhush", "authorization"),
    ] {
        let mut wrong = settings(endpoint.into());
        wrong.headers.insert("authorization".into(), header.into());
        let why = Exporter::check(&wrong).expect_err("it is wrong");
        assert!(why.contains(word) && !why.contains("hush"), "{why}");
        assert!(!format!("{wrong:?}").contains("hush"), "{wrong:?}");
    }
    assert_eq!(Exporter::check(&settings("https://host/base/".into())), Ok(()));
}
