//! Invalid input of clients: the error says what to fix, the connection stays open, and other clients
//! are not affected.

use serde_json::{Value, json};

use crate::support::client::Refusal;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};
use crate::support::raw::RawConnection;

/// Sends a line and expects an error with this code and kind for this id; the connection stays open.
async fn check(raw: &mut RawConnection, line: &str, id: Value, code: i64, kind: &str) -> Refusal {
    let reply = raw.send_and_receive(line).await;
    let refusal = Refusal::from_error(&reply["error"]);
    assert_eq!((refusal.code, refusal.kind.as_str()), (code, kind), "{line} → {reply}");
    assert_eq!(reply.get("id"), Some(&id), "{line} → {reply}");
    let still_there = raw.send_and_receive(r#"{"jsonrpc":"2.0","id":"ping","method":"daemon.hello"}"#).await;
    assert_eq!(still_there["id"], "ping");
    refusal
}

fn call(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

#[tokio::test]
async fn malformed_request_is_answered_with_specific_error() {
    let daemon = TestDaemon::start().await;
    let mut raw = daemon.raw().await;
    for (line, id, code, kind) in [
        ("nonsense", Value::Null, -32700, "parse_error"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"#, Value::Null, -32700, "parse_error"),
        (r#"{"jsonrpc":"2.0","id":1}"#, json!(1), -32600, "invalid_request"),
        (r#"{"id":1,"method":"daemon.status"}"#, json!(1), -32600, "invalid_request"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"daemon.status"}"#, json!(1), -32600, "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, json!(1), -32600, "invalid_request"),
        (
            r#"{"jsonrpc":"2.0","id":{"a":1},"method":"daemon.status"}"#,
            Value::Null,
            -32600,
            "invalid_request",
        ),
        ("[]", Value::Null, -32600, "invalid_request"),
        ("17", Value::Null, -32600, "invalid_request"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"daemon.dance"}"#, json!(1), -32601, "method_not_found"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"session"}"#, json!(1), -32601, "method_not_found"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session.get","params":["ses_1"]}"#,
            json!(1),
            -32602,
            "invalid_params",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session.get","params":5}"#,
            json!(1),
            -32600,
            "invalid_request",
        ),
    ] {
        check(&mut raw, line, id, code, kind).await;
    }
}

#[tokio::test]
async fn invalid_parameter_is_named_by_path() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let id = session.id.as_str();
    let mut raw = daemon.raw().await;
    for (method, params, path) in [
        ("session.create", json!({"cwd": 5}), "cwd"),
        ("session.create", json!({"cwd": "relative/path"}), "cwd"),
        ("session.create", json!({"cwd": daemon.path("nowhere")}), "cwd"),
        ("session.create", json!({"cwd": daemon.path("config.toml")}), "cwd"),
        ("session.create", json!({"cwd": daemon.workspace(), "mode": "reckless"}), "mode"),
        ("session.create", json!({"cwd": daemon.workspace(), "model": "no-slash"}), "model"),
        ("session.create", json!({"cwd": daemon.workspace(), "model": "missing/model"}), "model"),
        ("session.create", json!({"cwd": daemon.workspace(), "model": "scripted/a\nINFO forged"}), "model"),
        ("session.create", json!({"cwd": daemon.workspace(), "model": "scripted/a\u{202e}"}), "model"),
        (
            "session.create",
            json!({"cwd": daemon.workspace(), "model": format!("scripted/{}", "x".repeat(300))}),
            "model",
        ),
        (
            "session.create",
            json!({"cwd": daemon.workspace(), "budgets": {"model_calls": "three"}}),
            "budgets.model_calls",
        ),
        ("session.create", json!({"cwd": daemon.workspace(), "session_id": "mine"}), "session_id"),
        ("session.get", json!({"session_id": "ses_1"}), "session_id"),
        ("session.get", json!({"session_id": "turn_0190f2a4-0000-7000-8000-000000000000"}), "session_id"),
        ("session.submit", json!({"session_id": id, "input": 5}), "input"),
        ("session.submit", json!({"session_id": id, "input": "  "}), "input"),
        ("session.submit", json!({"session_id": id, "input": []}), "input"),
        ("session.submit", json!({"session_id": id, "input": [{"type": "text", "text": 5}]}), "input[0]"),
        ("session.submit", json!({"session_id": id, "input": "x", "when_busy": "shout"}), "when_busy"),
        ("session.subscribe", json!({"session_id": id, "after_seq": -1}), "after_seq"),
        ("session.events", json!({"session_id": id, "cursor": "page two"}), "cursor"),
        ("session.list", json!({"states": ["happy"]}), "states[0]"),
        ("session.approve", json!({"request_id": "perm_", "decision": "allow"}), "request_id"),
    ] {
        let line = call(method, params.clone());
        let refusal = check(&mut raw, &line, json!(7), -32602, "invalid_params").await;
        assert_eq!(refusal.data["path"], json!(path), "{method} {params}: {refusal:?}");
    }
    for (method, params, field) in [
        ("session.get", json!({}), "session_id"),
        ("session.create", json!({}), "cwd"),
        ("session.submit", json!({"session_id": id}), "input"),
    ] {
        let refusal = check(&mut raw, &call(method, params), json!(7), -32602, "invalid_params").await;
        assert!(refusal.message.contains(field), "{method}: {refusal:?}");
    }
    assert_eq!(session.view().await["state"], "idle");
    assert_eq!(daemon.models.requests().len(), 0);
}

#[tokio::test]
async fn unsupported_parameter_is_refused_and_not_ignored() {
    let daemon = TestDaemon::start().await;
    let mut raw = daemon.raw().await;
    let request_id = "ask_0190f2a4-0000-7000-8000-000000000000";
    for (method, params, path) in [("session.answer", json!({"request_id": request_id, "text": "x"}), "text")]
    {
        let line = call(method, params.clone());
        let refusal = check(&mut raw, &line, json!(7), -32602, "unsupported").await;
        assert_eq!(refusal.data["path"], json!(path), "{method} {params}: {refusal:?}");
    }
    assert_eq!(daemon.models.requests().len(), 0);
}

#[tokio::test]
async fn unknown_id_is_not_found_and_malformed_invalid() {
    let daemon = TestDaemon::start().await;
    let alice = daemon.client("alice").await;
    let unknown = "ses_0190f2a4-0000-7000-8000-000000000000";
    for (method, more) in [
        ("session.get", json!({})),
        ("session.submit", json!({"input": "x"})),
        ("session.abort", json!({})),
        ("session.kill", json!({})),
        ("session.delete", json!({})),
        ("session.subscribe", json!({})),
        ("session.events", json!({})),
        ("session.items", json!({})),
        ("permission.list", json!({})),
    ] {
        for (id, code) in [(unknown, -32002), ("ses_x", -32602)] {
            let mut params = more.clone();
            params["session_id"] = json!(id);
            let refusal = alice.refused(method, params).await;
            assert_eq!((method, id, refusal.code), (method, id, code));
        }
    }
    let session = alice.create(&daemon).await;
    let mut seen = session.follow().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    session.submit("go").await;
    seen.text_of(1).await;
    let call_id = "call_0190f2a4-0000-7000-8000-000000000000";
    assert_eq!(session.refused("abort", json!({"call_id": call_id})).await.code, -32002);
    let turn_id = "turn_0190f2a4-0000-7000-8000-000000000000";
    assert_eq!(session.refused("abort", json!({"turn_id": turn_id})).await.code, -32011);
    gate.open();
    seen.turn_ends("success").await;
}

#[tokio::test]
async fn request_ids_are_returned_unchanged() {
    let daemon = TestDaemon::start().await;
    let mut raw = daemon.raw().await;
    for id in ["1", "-7", "1.50", "0.1e3", "12345678901234567890123", r#""a \"b\"""#, r#""""#, "null"] {
        raw.line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"session.list"}}"#)).await;
        let reply = raw.next_text().await.expect("an answer");
        assert!(reply.contains(&format!(r#""id":{id}"#)), "{id} → {reply}");
    }
    // A notification never gets a reply; the next reply belongs to the next request.
    raw.line(r#"{"jsonrpc":"2.0","method":"daemon.dance"}"#).await;
    raw.line(r#"{"jsonrpc":"2.0","method":"daemon.hello","params":{"name":"quiet"}}"#).await;
    assert_eq!(raw.send_and_receive(r#"{"jsonrpc":"2.0","id":1,"method":"daemon.hello"}"#).await["id"], 1);
}

#[tokio::test]
async fn batch_request_is_answered_with_one_array() {
    let daemon = TestDaemon::start().await;
    let mut raw = daemon.raw().await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "session.list"},
        {"jsonrpc": "2.0", "method": "daemon.hello", "params": {"name": "in a batch"}},
        {"jsonrpc": "2.0", "id": "b", "method": "daemon.dance"},
        5,
        {"jsonrpc": "2.0", "id": "c", "method": "daemon.status"},
    ]);
    let reply = raw.send_and_receive(batch).await;
    let parts = reply.as_array().expect("a list");
    let ids: Vec<_> = parts.iter().map(|part| part["id"].clone()).collect();
    assert_eq!(ids, [json!("a"), json!("b"), Value::Null, json!("c")]);
    assert_eq!(parts[1]["error"]["code"], -32601);
    assert_eq!(parts[2]["error"]["code"], -32600);
    assert!(parts[3]["result"]["pid"].is_u64());
}

#[tokio::test]
async fn observer_can_read_but_not_change_sessions() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let onlooker = daemon.anonymous_client().await;
    onlooker.call("daemon.hello", json!({"name": "onlooker", "role": "observer"})).await;
    let his = onlooker.join(&session);
    let mut seen = his.follow().await;
    for (verb, more) in [
        ("submit", json!({"input": "x"})),
        ("abort", json!({})),
        ("kill", json!({})),
        ("delete", json!({})),
        ("approve", json!({"request_id": "perm_0190f2a4-0000-7000-8000-000000000000", "decision": "allow"})),
        ("create", json!({"cwd": daemon.workspace()})),
    ] {
        let refusal = his.refused(verb, more).await;
        assert_eq!((verb, refusal.code, refusal.kind.as_str()), (verb, -32000, "not_authorised"));
    }
    let refusal = onlooker.refused("daemon.shutdown", json!({})).await;
    assert_eq!(refusal.code, -32000);
    daemon.models.push(Step::text("Hello."));
    session.submit("hello").await;
    seen.turn_ends("success").await;
    assert_eq!(his.items().await.len(), 2);
    let refusal = onlooker.refused("daemon.hello", json!({"role": "tool"})).await;
    assert_eq!(refusal.code, -32602, "no client may request the role `tool`");
}

#[tokio::test]
async fn unsupported_protocol_version_is_refused_with_supported_one() {
    let daemon = TestDaemon::start().await;
    let anonymous = daemon.anonymous_client().await;
    let hello = anonymous.call("daemon.hello", json!({})).await;
    let served = hello["protocol_version"].as_u64().expect("a version");
    assert_eq!(
        anonymous.call("daemon.hello", json!({"protocol_version": served})).await["role"],
        "controller"
    );
    let refusal = anonymous.refused("daemon.hello", json!({"protocol_version": served + 1})).await;
    assert_eq!((refusal.code, &refusal.data["supported"]), (-32016, &json!([served])));
}

#[tokio::test]
async fn unknown_parameter_is_refused_with_path() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let alice = &session.client;
    let id = &session.id;
    for (method, params, path) in [
        ("session.submit", json!({"session_id": id, "input": "x", "saefmode": true}), "saefmode"),
        (
            "session.submit",
            json!({"session_id": id, "input": "x", "budgets": {"dollars": 1}}),
            "budgets.dollars",
        ),
        (
            "session.submit",
            json!({"session_id": id, "input": "x", "tools": {"allowed": []}}),
            "tools.allowed",
        ),
        (
            "session.submit",
            json!({"session_id": id, "input": [{"type": "text", "text": "x", "lang": "en"}]}),
            "input[0].lang",
        ),
        (
            "session.submit",
            json!({"session_id": id, "input": [{"type": "image", "data": "", "url": "x"}]}),
            "input[0].url",
        ),
        ("session.get", json!({"session_id": id, "verbose": null}), "verbose"),
        ("daemon.status", json!({"x": 1}), "x"),
        (
            "session.approve",
            json!({"answers": [{"request_id": id, "decison": "allow"}]}),
            "answers[0].request_id",
        ),
    ] {
        let refusal = alice.refused(method, params.clone()).await;
        let found = (refusal.code, refusal.kind.as_str(), &refusal.data["path"]);
        assert_eq!(found, (-32602, "invalid_params", &json!(path)), "{method} {params}: {refusal:?}");
    }
    let refusal =
        alice.refused("session.submit", json!({"session_id": id, "input": "x", "modle": "m"})).await;
    assert_eq!(refusal.data["nearest"], "model");
    assert!(refusal.message.contains("did you mean `model`?"), "{}", refusal.message);
    for name in ["safe_mode", "system_prompt", "append_system_prompt", "additional_dirs", "fallback_model"] {
        let mut params = json!({"session_id": id, "input": "x"});
        params[name] = json!(7);
        let refusal = alice.refused("session.submit", params).await;
        assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!(name)));
    }
    // The error shortens a long name. A parameter that the daemon does not support may be null.
    let mut long = json!({"session_id": id, "input": "x"});
    long["a".repeat(1 << 20)] = json!(1);
    let refusal = alice.refused("session.submit", long).await;
    assert!(refusal.message.len() < 400 && refusal.data["path"].as_str().expect("a path").len() < 80);
    let nested = json!({"answers": [{"foo": 1}]});
    assert_eq!(alice.refused("session.approve", nested).await.data["path"], "answers[0].foo");
    let key = json!({"session_id": id, "idempotency_key": "k".repeat(300)});
    assert_eq!(alice.refused("session.abort", key).await.data["path"], "idempotency_key");
    alice.call("session.get", json!({"session_id": id})).await;
    let nulls = json!({"session_id": id, "title": "t", "safe_mode": null, "output_schema": null});
    alice.call("session.update", nulls).await;
    assert_eq!(session.items().await.len(), 0, "no refused input was stored");
}

#[tokio::test]
async fn empty_or_null_parameters_are_accepted() {
    let daemon = TestDaemon::start().await;
    let session = daemon.client("alice").await.create(&daemon).await;
    let alice = &session.client;
    for params in [json!([]), Value::Null, json!({})] {
        assert!(alice.call("daemon.status", params.clone()).await["pid"].is_u64(), "{params}");
    }
    let view = alice.call("session.get", json!([session.id])).await;
    assert_eq!(view["session"]["session_id"], session.id.as_str());
    daemon.models.push(Step::text("Hello."));
    let mut seen = session.follow().await;
    let submitted = alice.call("session.submit", json!([session.id, "hello", null, null, "k"])).await;
    seen.turn_ends("success").await;
    let named = json!({"session_id": session.id, "input": "hello", "idempotency_key": "k"});
    assert_eq!(alice.call("session.submit", named).await, submitted, "the fifth parameter is the key");

    let refusal = alice.refused("session.get", json!([session.id, 2])).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!("[1]")));
    let refusal = alice.refused("session.get", json!([true])).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!("session_id")));
    let refusal = alice.refused("session.get", json!([])).await;
    assert_eq!((refusal.kind.as_str(), &refusal.data["path"]), ("invalid_params", &json!("session_id")));

    let document = alice.call("rpc.discover", json!({})).await;
    let submit =
        document["methods"].as_array().expect("methods").iter().find(|it| it["name"] == "session.submit");
    let names: Vec<&str> = submit.expect("a method")["params"]
        .as_array()
        .expect("params")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names[..5], ["session_id", "input", "when_busy", "expected_turn_id", "idempotency_key"]);
    assert_eq!(submit.expect("a method")["paramStructure"], "either");
}
