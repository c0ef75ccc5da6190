//! Metrics of a daemon: each number rises with the events that it counts, and `GET /metrics` returns the same
//! numbers in the format of Prometheus. Neither contains texts of sessions. Also tests
//! `[telemetry]` with a receiver.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::bash;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

const PRICE: &str = "[model.\"scripted/model\"]\nprice = { input = 2.0, output = 10.0, cache_read = 0.2, \
                     cache_write = 2.5 }\n";
const FAST_RETRIES: &str = "[retry]\nbase_ms = 1\nmax_ms = 1\n";
/// A word of the conversation that the metrics must not contain.
const SECRET_WORD: &str = "heliotrope";

/// The page of `GET /metrics`, with its samples by their full name. Asserts the rules of the format
/// (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
async fn page(daemon: &TestDaemon) -> (BTreeMap<String, f64>, String) {
    let mut raw = daemon.raw().await;
    raw.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let answer = String::from_utf8(raw.read_rest().await).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let head = head.to_ascii_lowercase();
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    assert!(body.ends_with('\n'));
    (samples(body), body.to_owned())
}

fn samples(body: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        !name.starts_with(|first: char| first.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
    };
    let mut found = BTreeMap::new();
    let mut families: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut helped, mut family) = ("", "");
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => {
                assert!(is_name(name) && name.starts_with("agentd_") && !help.trim().is_empty(), "{line}");
                helped = name;
            }
            ["#", "TYPE", name, kind] => {
                assert_eq!(*name, helped, "a type follows its help: {line}");
                assert!(families.insert(name, kind).is_none(), "a family is defined twice: {line}");
                assert_eq!(*kind == "counter", name.ends_with("_total"), "{line}");
                assert!(matches!(*kind, "counter" | "gauge"), "{line}");
                family = name;
            }
            _ => {
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("a sample: {line:?}"));
                let (bare, labels) = name.split_once('{').unwrap_or((name, "}"));
                assert_eq!(bare, family, "a sample follows the type of its family: {line}");
                let labels = labels.strip_suffix('}').expect("labels end");
                for label in labels.split(',').filter(|label| !label.is_empty()) {
                    let (key, text) = label.split_once('=').expect("a label");
                    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                    assert!(is_name(key) && text.is_some_and(is_name), "{line}");
                }
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("a number: {line}"));
                assert!(value >= 0.0 && value.is_finite(), "{line}");
                assert!(found.insert(name.to_owned(), value).is_none(), "a sample is repeated: {line}");
            }
        }
    }
    assert!(families.len() > 15, "{families:?}");
    found
}

async fn numbers(daemon: &TestDaemon) -> Value {
    daemon.client("reader").await.call("daemon.metrics", json!({})).await
}

/// The increase of the number at a JSON pointer.
fn growth(before: &Value, after: &Value, at: &str) -> u64 {
    let read =
        |value: &Value| value.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("{at}: {value}"));
    read(after).checked_sub(read(before)).unwrap_or_else(|| panic!("{at} fell"))
}

#[tokio::test]
async fn metrics_count_events_and_rpc_equals_http_page() {
    let daemon = TestDaemon::builder()
        .provider("api_key_env = \"THE_KEY\"")
        .environment("THE_KEY", "sk-heliotrope")
        .config(PRICE)
        .config(FAST_RETRIES)
        .start()
        .await;
    let alice = daemon.client("alice").await;
    let session = alice.create_with(&daemon, json!({"title": SECRET_WORD})).await;
    let mut seen = session.follow().await;
    let (before, (page_before, _)) = (numbers(&daemon).await, page(&daemon).await);
    assert_eq!((&before["turns_started"], &before["model_calls"]), (&json!(0), &json!(0)), "{before}");

    // The model server refuses a request, breaks off an answer, requests two calls and then answers. The user denies
    // one of the calls.
    daemon.models.push(Step::error(529, "overloaded_error", "busy"));
    daemon.models.push(Step::text("half an answer").usage(40, 4).break_off("api_error", "oops"));
    daemon.models.push(Step::calls([("LS", json!({"path": "."})), bash("touch heliotrope")]).usage(100, 10));
    daemon.models.push(Step::text("Heliotrope it is.").usage(200, 20));
    session.submit(SECRET_WORD).await;
    let asked = seen.wait_for("permission.requested").await;
    session.answer(&asked, json!({"decision": "deny"})).await;
    let result = seen.turn_ends("success").await;

    let after = numbers(&daemon).await;
    for (at, by) in [
        ("/turns_started", 1),
        ("/turns_completed/success", 1),
        ("/turns_completed/aborted", 0),
        ("/slow_turns", 0),
        ("/model_calls", 3),
        ("/lost_attempts", 1),
        ("/retries", 2),
        ("/tool_calls/completed", 1),
        ("/tool_calls/denied", 1),
        ("/tool_calls/failed", 0),
        ("/permission_requests", 1),
        ("/unpriced_calls", 0),
        ("/errors", 0),
        ("/database_write_errors", 0),
    ] {
        assert_eq!(growth(&before, &after, at), by, "{at}: {after}");
    }
    // The result of the turn, the ledger and the metrics are computed from the same records.
    for (at, own) in [
        ("/model_calls", "/model_calls"),
        ("/usage/input_tokens", "/usage/input_tokens"),
        ("/usage/output_tokens", "/usage/output_tokens"),
        ("/cost_usd_micros", "/cost_usd_micros"),
        ("/turn_ms", "/duration_ms"),
        ("/model_ms", "/model_ms"),
        ("/tools_ms", "/tools_ms"),
        ("/permission_ms", "/permission_ms"),
    ] {
        let told = result.pointer(own).and_then(Value::as_u64).unwrap_or_else(|| panic!("{own}: {result}"));
        assert_eq!(growth(&before, &after, at), told, "{at}");
    }
    assert!(growth(&before, &after, "/database_writes") > 5);
    assert_eq!((&after["sessions_loaded"], &after["subscribers"]), (&json!(1), &json!(1)));

    // A turn of a model without a price, a turn that fails, and a turn that the client aborts.
    daemon.models.push(Step::text("Done."));
    session.submit_with(json!({"input": "go", "model": "scripted/other"})).await;
    seen.turn_ends("success").await;
    daemon.models.push(Step::error(400, "invalid_request_error", "no"));
    session.submit("go").await;
    seen.turn_ends("llm_error").await;
    let gate = crate::support::model_server::Gate::new();
    daemon.models.push(Step::text("never").hold(&gate));
    session.submit("go").await;
    gate.wait_reached().await;
    session.call("abort", json!({})).await;
    seen.turn_ends("aborted").await;
    let last = numbers(&daemon).await;
    for (at, by) in [
        ("/turns_started", 3),
        ("/turns_completed/success", 1),
        ("/turns_completed/llm_error", 1),
        ("/turns_completed/aborted", 1),
        ("/unpriced_calls", 1),
        ("/errors", 1),
    ] {
        assert_eq!(growth(&after, &last, at), by, "{at}: {last}");
    }

    let (page_after, text) = page(&daemon).await;
    assert_eq!(page_before.keys().collect::<Vec<_>>(), page_after.keys().collect::<Vec<_>>(), "no new names");
    for (name, value) in &page_before {
        let is_counter = name.split('{').next().is_some_and(|bare| bare.ends_with("_total"));
        assert!(!is_counter || *value <= page_after[name], "{name} fell");
    }
    for (name, at, unit) in [
        ("agentd_turns_started_total", "/turns_started", 1.0),
        ("agentd_turns_completed_total{result=\"success\"}", "/turns_completed/success", 1.0),
        ("agentd_turns_completed_total{result=\"llm_error\"}", "/turns_completed/llm_error", 1.0),
        ("agentd_turn_seconds_total{part=\"model\"}", "/model_ms", 1e3),
        ("agentd_turn_seconds_total{part=\"waiting\"}", "/permission_ms", 1e3),
        ("agentd_model_calls_total", "/model_calls", 1.0),
        ("agentd_lost_attempts_total", "/lost_attempts", 1.0),
        ("agentd_retries_total", "/retries", 1.0),
        ("agentd_tokens_total{type=\"input\"}", "/usage/input_tokens", 1.0),
        ("agentd_tokens_total{type=\"output\"}", "/usage/output_tokens", 1.0),
        ("agentd_cost_usd_total", "/cost_usd_micros", 1e6),
        ("agentd_unpriced_calls_total", "/unpriced_calls", 1.0),
        ("agentd_tool_calls_total{status=\"completed\"}", "/tool_calls/completed", 1.0),
        ("agentd_tool_calls_total{status=\"denied\"}", "/tool_calls/denied", 1.0),
        ("agentd_permission_requests_total", "/permission_requests", 1.0),
        ("agentd_errors_total", "/errors", 1.0),
        ("agentd_sessions_loaded", "/sessions_loaded", 1.0),
    ] {
        let told = last.pointer(at).and_then(Value::as_f64).expect("a number");
        let shown = page_after.get(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert!((shown * unit - told).abs() < 1e-6, "{name}: {shown} is not {told}");
    }
    for text in [text, last.to_string()] {
        assert!(
            !text.to_lowercase().contains(SECRET_WORD) && !text.contains("ses_"),
            "metrics contain session text: {text}"
        );
    }
    daemon.models.assert_no_breach();
}

#[tokio::test]
async fn tool_processes_cannot_read_metrics() {
    const SCRIPT: &str = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(30)\n\
                        s.connect(sys.argv[1])\ns.sendall(b'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n\
                        text = b''\nwhile True:\n    more = s.recv(65536)\n    if not more:\n        break\n    \
                        text += more\nprint(text.decode())\n";
    let daemon = TestDaemon::builder().config("[permissions]\nallow = [\"Bash(sh look.sh)\"]").start().await;
    daemon.write("look.py", SCRIPT);
    daemon.write("look.sh", &format!("python3 look.py {}", daemon.socket().display()));
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::calls([bash("sh look.sh")]));
    daemon.models.push(Step::text("Done."));
    session.submit("look").await;
    let done = seen.wait_for("tool.completed").await;
    let output = done["output"].as_str().expect("text");
    assert!(output.contains("404 Not Found") && !output.contains("agentd_turns"), "{output}");
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn unknown_key_of_telemetry_is_refused() {
    let daemon = TestDaemon::builder().config("[telemetry]\nendpiont = \"http://localhost:1\"").build().await;
    let refused = daemon.run_until_exit().await;
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(78) && message.contains("endpoint"), "{message}");
}

#[tokio::test]
async fn log_lines_of_turn_carry_spans_of_its_phases_and_calls() {
    let mut daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).usage(100, 10).cache_read(60));
    daemon.models.push(Step::text("Done."));
    session.submit("go").await;
    let mut seen = session.follow().await;
    seen.turn_ends("success").await;
    assert_eq!(numbers(&daemon).await["prompt_cache_hits"], 1);
    let turn = seen.events_of("turn.started")[0]["turn_id"].as_str().expect("a turn").to_owned();
    daemon.stop().await;
    let log = daemon.log();
    let turn = format!("turn{{session={} turn={turn}}}", session.id);
    for span in [
        "phase{phase=\"model_call\" step=1}:model_call{model=scripted/model}: session::actor::effects::model_calls: close",
        "phase{phase=\"tool_execution\" step=1}:tool_call{tool=\"LS\" call=call_",
        "phase{phase=\"model_call\" step=2}:model_call{model=scripted/model}",
        "phase{phase=\"result\" step=2}: session::actor::turn_spans: close time.busy=",
    ] {
        assert!(log.contains(&format!("{turn}:{span}")), "{span} in {log}");
    }
}

#[tokio::test]
async fn telemetry_exports_turn_spans_without_content() {
    let receiver = crate::support::model_server::ModelServer::start().await;
    let config = format!(
        "{PRICE}{FAST_RETRIES}[telemetry]\nendpoint = \"{}\"\nservice_name = \"mine\"\nheaders_env = {{ x-tenant = \"TENANT\" }}\n",
        receiver.url()
    );
    let mut daemon = TestDaemon::builder()
        .provider("api_key_env = \"THE_KEY\"")
        .environment("THE_KEY", "sk-heliotrope")
        .environment("TENANT", "hush")
        .config(&config)
        .start()
        .await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let mut seen = session.follow().await;
    daemon.models.push(Step::error(529, "overloaded_error", "busy with heliotrope"));
    daemon
        .models
        .push(Step::calls([("LS", json!({"path": "heliotrope"}))]).thinking("Heliotrope? ").usage(100, 10));
    daemon.models.push(Step::text("Heliotrope it is.").usage(200, 20));
    session.submit(SECRET_WORD).await;
    let result = seen.turn_ends("success").await;
    // The daemon sends its last spans and metrics before it exits.
    daemon.stop().await;
    let heard = receiver.requests();
    let of = |path: &str| -> Vec<Value> {
        heard.iter().filter(|request| request.path == path).map(|request| request.body.clone()).collect()
    };
    let (traces, metrics) = (of("/v1/traces"), of("/v1/metrics"));
    assert!(!traces.is_empty() && !metrics.is_empty(), "{heard:?}");
    assert!(heard.iter().all(|request| request.header("x-tenant") == Some("hush")));
    let spans: Vec<&Value> = traces
        .iter()
        .flat_map(|body| body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans"))
        .collect();
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).count();
    assert_eq!(
        (named("chat model"), named("execute_tool LS"), named("invoke_agent agentd")),
        (3, 1, 1),
        "{spans:#?}"
    );
    let turn = spans.iter().find(|span| span["name"] == "invoke_agent agentd").expect("the turn");
    let cost = turn["attributes"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["key"] == "agentd.turn.cost_usd");
    let cost = cost.and_then(|one| one["value"]["doubleValue"].as_f64()).expect("a cost");
    assert!((cost * 1e6 - result["cost_usd_micros"].as_f64().expect("a cost")).abs() < 1e-6, "{cost}");
    let all = json!([traces, metrics]).to_string().to_lowercase();
    assert!(!all.contains(SECRET_WORD) && !all.contains("hush"), "{all}");
    assert!(!daemon.log().contains("hush"));
}
