//! The beginning of a connection, wrong lines, and its end.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::scenarios::agentctl::DaemonStopper;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn initialize_answers_version_one_whatever_was_asked() {
    let daemon = TestDaemon::start().await;
    for version in [json!(0), json!(1), json!(2), json!(3), json!(99), json!("1"), Value::Null] {
        let mut editor = Editor::spawn(&daemon, &["acp"]);
        let early = editor.refused("session/list", json!({})).await;
        assert_eq!(early["code"], -32600);
        let params = if version.is_null() { json!({}) } else { json!({ "protocolVersion": version }) };
        let reply = editor.call("initialize", params).await;
        assert_eq!((&reply["protocolVersion"], &reply["authMethods"]), (&json!(1), &json!([])), "{version}");
        assert_eq!(reply["agentCapabilities"]["loadSession"], true);
        assert_eq!(reply["agentCapabilities"]["sessionCapabilities"]["close"], Value::Null);
        assert_eq!(editor.refused("initialize", json!({"protocolVersion": 1})).await["code"], -32600);
        assert_eq!(editor.refused("authenticate", json!({"methodId": "x"})).await["code"], -32602);
        editor.close().await;
    }
}

#[tokio::test]
async fn wrong_line_gets_error_and_next_request_works() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let before = editor.messages().len();
    let long = format!("{{\"id\":1,\"method\":\"{}\"}}\n", "x".repeat(20 << 20));
    let lines: [&[u8]; 8] = [
        b"\xff\xfe\n",
        b"not JSON\n",
        b"{\"id\":\n",
        b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\"}]\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"session/list\"}\n",
        long.as_bytes(),
        b"\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"nothing\",\"result\":{}}\n",
    ];
    for line in lines {
        editor.write(line).await;
    }
    // Without an id these have no effect, and unknown ones are ignored.
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "hi"}]});
    editor.notify("session/prompt", prompt).await;
    editor.notify("no/such", json!({})).await;
    editor.notify("$/cancel_request", json!({"requestId": 77})).await;
    for id in ["null", "-3", "1.50", "\"a\"", "\"a\"", "7"] {
        editor.write(format!("{{\"id\":{id},\"method\":\"session/list\"}}\n").as_bytes()).await;
    }
    let listed =
        |seen: &[Value]| seen.iter().filter(|message| message["result"]["sessions"].is_array()).count();
    editor.wait("six lists", |seen| (listed(seen) == 6).then_some(())).await;
    let errors: Vec<Value> = editor.messages()[before..]
        .iter()
        .filter(|message| !message["error"].is_null())
        .map(|message| message["error"]["code"].clone())
        .collect();
    assert_eq!(errors, [-32700, -32700, -32700, -32600, -32600, -32600].map(Value::from));
    assert_eq!(editor.refused("no/such", json!({})).await["code"], -32601);
    assert_eq!(editor.refused("session/close", json!({ "sessionId": session })).await["code"], -32601);
    assert_eq!(editor.refused("session/prompt", Value::Null).await["code"], -32602);
    let lines = editor.close().await;
    assert!(lines.iter().all(|line| line["jsonrpc"] == "2.0"), "{lines:#?}");
    assert_eq!(daemon.models.requests().len(), 0, "the prompt without an id did not run");
}

#[tokio::test]
async fn end_of_input_detaches_and_turn_goes_on() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three").hold_after(1, &gate));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    editor.prompt(&session, "count").await;
    gate.wait_reached().await;
    let lines = editor.close().await;
    assert!(lines.iter().all(|line| line["error"].is_null()), "{lines:#?}");
    gate.open();
    let client = daemon.client("other").await;
    let waited = client.call("session.wait", json!({"session_id": session, "until": ["idle"]})).await;
    assert_eq!(waited["result"]["text"], "one two three");
}

#[tokio::test]
async fn absent_daemon_is_started_or_named_in_the_reply() {
    let daemon = TestDaemon::builder().build().await;
    let mut editor = Editor::spawn(&daemon, &["acp", "--no-start"]);
    for _ in 0..2 {
        let error = editor.refused("initialize", json!({"protocolVersion": 1})).await;
        assert!(error["message"].as_str().expect("text").contains("agentctl daemon start"), "{error}");
    }
    editor.close().await;
    let _stopper = DaemonStopper(&daemon);
    let mut editor = Editor::spawn(&daemon, &["acp"]);
    assert_eq!(editor.call("initialize", json!({"protocolVersion": 1})).await["protocolVersion"], 1);
    assert_eq!(editor.call("session/list", json!({})).await["sessions"], json!([]));
    editor.close().await;
}

#[tokio::test]
async fn session_folder_must_be_absolute_and_exist() {
    let daemon = TestDaemon::start().await;
    let mut editor = Editor::start(&daemon).await;
    daemon.write("file", "");
    let workspace = daemon.workspace();
    for wrong in [json!("relative"), json!(workspace.join("none")), json!(workspace.join("file")), json!(4)] {
        let error = editor.refused("session/new", json!({"cwd": wrong, "mcpServers": []})).await;
        assert_eq!(error["code"], -32602, "{wrong}: {error}");
        if let Some(path) = wrong.as_str() {
            assert!(error["message"].as_str().expect("text").contains(path), "{error}");
        }
    }
    assert_eq!(editor.refused("session/new", json!({"mcpServers": []})).await["code"], -32602);
    let folder = workspace.join("with blank, ä");
    std::fs::create_dir(&folder).expect("made");
    std::os::unix::fs::symlink(&folder, workspace.join("link")).expect("linked");
    for cwd in [&folder, &workspace.join("link")] {
        // An editor may leave the servers out.
        let made = editor.call("session/new", json!({ "cwd": cwd })).await;
        assert!(made["sessionId"].as_str().expect("an id").starts_with("ses_"));
    }
    let listed = editor.call("session/list", json!({ "cwd": workspace.join("link") })).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2), "{listed}");
    editor.close().await;
}

#[tokio::test]
async fn one_connection_serves_many_sessions() {
    let daemon = TestDaemon::start().await;
    let mut editor = Editor::start(&daemon).await;
    let mut sessions = Vec::new();
    for _ in 0..40 {
        sessions.push(editor.new_session(&daemon.workspace()).await);
    }
    daemon.models.set_fallback(|_| Step::text("done"));
    let mut prompts = Vec::new();
    for session in &sessions {
        prompts.push(editor.prompt(session, "work").await);
    }
    for id in prompts {
        assert_eq!(editor.stop_reason(id).await, "end_turn");
    }
    for session in &sessions {
        assert_eq!(editor.text(session, "agent_message_chunk"), "done");
    }
    editor.close().await;
}
