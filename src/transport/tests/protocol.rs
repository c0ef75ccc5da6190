//! Tests of JSON-RPC 2.0, strictly by the specification, over lines.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::*;

fn kind(reply: &Value) -> &str {
    assert!(reply["error"]["data"]["retryable"].is_boolean(), "{reply}");
    assert!(reply["error"]["message"].is_string(), "{reply}");
    reply["error"]["data"]["kind"].as_str().unwrap()
}

#[tokio::test]
async fn request_ids_are_echoed_byte_for_byte() {
    let fixture = ServerFixture::new();
    let ids = [
        "1",
        "0",
        "-1",
        "1.5",
        "1.0",
        "-0.0",
        "1e2",
        "1E+400",
        "123456789012345678901234567890",
        "null",
        "\"\"",
        "\"x\"",
        r#""\u00fc\/""#,
        "\"ü\"",
    ];
    for method in ["echo", "later", "no_such"] {
        for id in ids {
            let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":[]}}"#);
            let answer = fixture.exchange(call.as_bytes()).await;
            assert!(answer.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"#)), "{answer}");
        }
    }
}

#[tokio::test]
async fn method_results_are_returned_unchanged() {
    let fixture = ServerFixture::new();
    let params = json!({"text": "ü\n\"", "deep": [[{"a": null}]], "n": -1.5});
    for method in ["echo", "later"] {
        let reply = fixture.connect().await.call(method, params.clone()).await;
        assert_eq!(reply, json!({"jsonrpc": "2.0", "id": 1, "result": params}));
    }
    let reply = fixture.lines(r#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#).await;
    assert_eq!(reply, [json!({"jsonrpc": "2.0", "id": 1, "result": null})]);
}

#[tokio::test]
async fn every_error_contains_its_kind() {
    let fixture = ServerFixture::new();
    let cases = [
        ("nonsense", -32700, "parse_error", Value::Null),
        (r#"{"jsonrpc":"2.0","id":7,"method":"echo""#, -32700, "parse_error", Value::Null),
        ("7", -32600, "invalid_request", Value::Null),
        ("{}", -32600, "invalid_request", Value::Null),
        ("[]", -32600, "invalid_request", Value::Null),
        (r#"{"jsonrpc":"2.0","id":{},"method":"echo"}"#, -32600, "invalid_request", Value::Null),
        (r#"{"jsonrpc":"2.0","id":7,"method":5}"#, -32600, "invalid_request", json!(7)),
        (r#"{"id":7,"method":"echo"}"#, -32600, "invalid_request", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"echo","params":"x"}"#, -32600, "invalid_request", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"no_such"}"#, -32601, "method_not_found", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"typed","params":["x"]}"#, -32602, "invalid_params", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"panic"}"#, -32603, "internal", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"panic_later"}"#, -32603, "internal", json!(7)),
        (r#"{"jsonrpc":"2.0","id":7,"method":"settled"}"#, -32014, "not_pending", json!(7)),
    ];
    // All lines go over one connection, and none of them ends it.
    let mut client = fixture.connect().await;
    for (line, code, word, id) in cases {
        client.send(format!("{line}\n")).await;
        let reply = client.next().await;
        assert_eq!(reply["error"]["code"], code, "{line} gave {reply}");
        assert_eq!(kind(&reply), word, "{line} gave {reply}");
        assert_eq!(reply["id"], id, "{line} gave {reply}");
        assert_eq!(reply["jsonrpc"], "2.0");
    }
    let reply = client.call("settled", json!([])).await;
    assert_eq!(reply["error"]["data"]["by"], "client-1");
    assert_eq!(client.call("echo", json!([1])).await["result"], json!([1]));
}

#[tokio::test]
async fn notifications_run_but_are_not_answered() {
    let fixture = ServerFixture::new();
    fixture.record.gate.0.add_permits(2);
    let text = [
        r#"{"jsonrpc":"2.0","method":"wait"}"#,
        r#"{"jsonrpc":"2.0","method":"no_such"}"#,
        r#"{"jsonrpc":"2.0","method":"panic"}"#,
        r#"{"jsonrpc":"2.0","method":"typed","params":["x"]}"#,
        r#"[{"jsonrpc":"2.0","method":"wait"},{"jsonrpc":"2.0","method":"echo"}]"#,
    ];
    assert_eq!(fixture.lines(text.join("\n")).await, [] as [Value; 0]);
    assert_eq!(fixture.record.ended.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn batch_calls_are_answered_in_one_array() {
    let fixture = ServerFixture::new();
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"later","params":["a"]},
        {"jsonrpc":"2.0","method":"echo"}, 5,
        {"jsonrpc":"2.0","id":"two","method":"echo","params":["b"]},
        {"jsonrpc":"2.0","id":3,"method":"panic_later"},
        {"jsonrpc":"2.0","id":null,"method":"no_such"}]"#;
    let replies = fixture.lines(batch.replace('\n', " ")).await;
    assert_eq!(replies.len(), 1);
    let replies = replies[0].as_array().unwrap();
    assert_eq!(replies.len(), 5, "{replies:?}");
    assert_eq!(replies[0], json!({"jsonrpc": "2.0", "id": 1, "result": ["a"]}));
    assert_eq!((&replies[1]["id"], kind(&replies[1])), (&Value::Null, "invalid_request"));
    assert_eq!(replies[2], json!({"jsonrpc": "2.0", "id": "two", "result": ["b"]}));
    assert_eq!((&replies[3]["id"], kind(&replies[3])), (&json!(3), "internal"));
    assert_eq!((&replies[4]["id"], kind(&replies[4])), (&Value::Null, "method_not_found"));
}

#[tokio::test]
async fn slow_call_does_not_block_other_calls() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    client.begin(1, "wait", json!(["slow"])).await;
    client.begin(2, "later", json!(["quick"])).await;
    assert_eq!(client.next().await["id"], 2);
    client.begin(3, "echo", json!(["quick"])).await;
    assert_eq!(client.next().await["id"], 3);
    fixture.record.gate.0.add_permits(1);
    assert_eq!(client.next().await, json!({"jsonrpc": "2.0", "id": 1, "result": ["slow"]}));
}

#[tokio::test]
async fn peer_credentials_are_known_per_connection() {
    let fixture = ServerFixture::new();
    let (mut one, mut two) = (fixture.connect().await, fixture.connect().await);
    let first = one.call("who", json!([])).await["result"].clone();
    let second = two.call("who", json!([])).await["result"].clone();
    assert_eq!(first["uid"], nix::unistd::geteuid().as_raw());
    assert_eq!(first["pid"], std::process::id());
    assert_ne!(first["id"], second["id"]);
    assert_eq!(first["name"], format!("client-{}", first["id"]));
    one.call("name", json!(["editor"])).await;
    assert_eq!(one.call("who", json!([])).await["result"]["name"], "editor");
    assert_eq!(two.call("who", json!([])).await["result"]["name"], second["name"]);
}

#[tokio::test]
async fn unusual_chunks_and_line_ends_are_accepted() {
    let fixture = ServerFixture::new();
    let mut client = fixture.connect().await;
    for byte in b"\r\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\r\n" {
        client.send([*byte]).await;
    }
    assert_eq!(client.next().await["id"], 1);

    let mut client = fixture.connect().await;
    client.send(b"\0\xff\xfe\x80 blob \x01\n").await;
    assert_eq!(kind(&client.next().await), "parse_error");
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}\n").await;
    assert_eq!(kind(&client.next().await), "parse_error");
    assert_eq!(client.call("echo", json!([])).await["id"], 1);

    // A word that could have become HTTP, and one that could have become a header.
    for word in ["Garbage", "Po", "Cont", "HELO x"] {
        let replies =
            fixture.lines(format!("{word}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}}")).await;
        assert_eq!(kind(&replies[0]), "parse_error", "{word}");
        assert_eq!(replies[1]["id"], 1, "{word}");
    }
}

#[tokio::test]
async fn random_bytes_do_not_stop_server() {
    let fixture = ServerFixture::new();
    let mut state = 0x2545_f491_4f6c_dd1du64;
    for round in 0..50 {
        let blob: Vec<u8> = (0..200 * round)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        let mut socket = fixture.raw().await;
        // The daemon may close the connection during the transfer.
        let _ = with_deadline("sending", socket.write_all(&blob)).await;
        let _ = socket.shutdown().await;
        let _ = with_deadline("the end", socket.read_to_end(&mut vec![])).await;
    }
    assert_eq!(fixture.connect().await.call("echo", json!([])).await["id"], 1);
}
