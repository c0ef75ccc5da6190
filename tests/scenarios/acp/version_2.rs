//! Version 2 of the protocol, behind `--experimental-v2`. Its official schema judges every line.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::editor::{Editor, updates};
use super::schema::Schema;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

const BRIDGE: [&str; 3] = ["acp", "--no-start", "--experimental-v2"];

async fn start(daemon: &TestDaemon, capabilities: Value) -> Editor {
    let mut editor = Editor::spawn(daemon, &BRIDGE);
    let info = json!({"name": "tests", "version": "1"});
    let params = json!({"protocolVersion": 2, "info": info, "capabilities": capabilities});
    assert_eq!(editor.call("initialize", params).await["protocolVersion"], 2);
    editor
}

async fn with_session(daemon: &TestDaemon) -> (Editor, String) {
    let mut editor = start(daemon, json!({})).await;
    let session = editor.new_session(&daemon.workspace()).await;
    (editor, session)
}

fn of_kind(updates: &[Value], kind: &str) -> Vec<Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).cloned().collect()
}

/// Waits until a session was idle this many times, and returns the last such update.
async fn idle(editor: &Editor, session: &str, times: usize) -> Value {
    editor
        .wait("the end of a turn", |seen| {
            let states = of_kind(&updates(seen, session), "state_update");
            states.into_iter().filter(|update| update["state"] == "idle").nth(times - 1)
        })
        .await
}

/// Closes the bridge and lets the schema judge its lines.
async fn judge(daemon: &TestDaemon, editors: Vec<Editor>) {
    let schema = Schema::load(daemon).await;
    for mut editor in editors {
        let sent = std::mem::take(&mut editor.sent);
        let received = editor.close().await;
        if let Some(schema) = &schema {
            schema.judge(&sent, &received);
        }
    }
}

#[tokio::test]
async fn version_two_is_answered_only_if_allowed_and_asked_for() {
    let daemon = TestDaemon::start().await;
    let info = json!({"name": "tests", "version": "1"});
    let mut plain = Editor::spawn(&daemon, &["acp", "--no-start"]);
    let first = plain.call("initialize", json!({"protocolVersion": 2, "info": info})).await;
    assert_eq!(first["protocolVersion"], 1, "the flag is off");
    plain.close().await;
    for version in [json!(1), json!("2"), Value::Null] {
        let mut editor = Editor::spawn(&daemon, &BRIDGE);
        let params = json!({"protocolVersion": version, "clientCapabilities": {}});
        assert_eq!(editor.call("initialize", params).await, first, "{version}");
        editor.close().await;
    }
    let mut editor = Editor::spawn(&daemon, &BRIDGE);
    let error = editor.refused("initialize", json!({"protocolVersion": 0, "info": info})).await;
    assert_eq!((&error["code"], &error["data"]["supported"]), (&json!(-32022), &json!([1, 2])));
    let error = editor.refused("initialize", json!({"protocolVersion": 2})).await;
    assert_eq!(error["code"], -32602);
    let reply = editor.call("initialize", json!({"protocolVersion": 3, "info": info})).await;
    assert_eq!((&reply["protocolVersion"], &reply["info"]["name"]), (&json!(2), &json!("agentd")));
    assert_eq!(reply["capabilities"]["session"]["mcp"], json!({"stdio": {}, "http": {}}));
    for method in ["session/load", "session/set_mode", "authenticate", "auth/login", "terminal/cancel"] {
        assert_eq!(editor.refused(method, json!({})).await["code"], -32601, "{method}");
    }
    editor.close().await;
}

#[tokio::test]
async fn turn_with_edit_and_command_is_shown_live_and_replayed() {
    let daemon = TestDaemon::start().await;
    daemon.write("a b.txt", "one\ntwo\n");
    let path = daemon.workspace().join("a b.txt");
    let (mut editor, session) = with_session(&daemon).await;
    let todos =
        json!({"todos": [{"content": "change it", "status": "in_progress", "activeForm": "Changing it"}]});
    let edit = json!({"file_path": path, "old_string": "two", "new_string": "2"});
    daemon.models.push(
        Step::calls([("Read", json!({"file_path": path})), ("TodoWrite", todos)])
            .say("I read.")
            .thinking("Hm."),
    );
    daemon.models.push(Step::calls([("Edit", edit)]));
    daemon.models.push(Step::calls([("Bash", json!({"command": "echo hello; exit 3"}))]));
    daemon.models.push(Step::text("All done."));
    let id = editor.prompt(&session, "change it").await;
    let message = editor.reply(id).await["result"]["messageId"].clone();
    assert!(message.is_string(), "the reply comes while the turn runs");
    let asked = editor.asked(0).await["params"].clone();
    let call = &asked["subject"]["toolCall"];
    assert_eq!((&asked["subject"]["type"], &call["status"]), (&json!("tool_call"), &json!("pending")));
    assert!(asked["title"].as_str().is_some_and(|title| title.contains("a b.txt")), "{asked}");
    assert!(asked["description"].is_string(), "{asked}");
    let diff = &call["content"][0];
    assert_eq!(diff["changes"], json!([{"operation": "modify", "path": path, "fileType": "text"}]));
    let shown = path.display();
    let patch = format!(
        "diff --git {shown} {shown}\n--- {shown}\t\n+++ {shown}\t\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );
    assert_eq!(diff["patch"], json!({"format": "git_patch", "text": patch}));
    for number in 0..2 {
        let asked = editor.asked(number).await;
        editor.choose(&asked, "allow_once").await;
    }
    assert_eq!(idle(&editor, &session, 1).await["stopReason"], "end_turn");
    let live = editor.updates(&session);
    let states: Vec<Value> = of_kind(&live, "state_update").iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["running", "requires_action", "running", "requires_action", "running", "idle"]);
    assert_eq!(of_kind(&live, "user_message")[0]["messageId"], message);
    assert_eq!(of_kind(&live, "plan_update")[0]["plan"]["entries"][0]["status"], "in_progress");
    let output: Vec<u8> = of_kind(&live, "terminal_output_chunk")
        .iter()
        .flat_map(|chunk| BASE64_STANDARD.decode(chunk["data"].as_str().expect("text")).expect("base64"))
        .collect();
    assert_eq!(String::from_utf8_lossy(&output), "hello\n");
    let exits = of_kind(&live, "terminal_update");
    assert_eq!(exits.last().expect("an end")["exitStatus"]["exitCode"], 3);
    assert!(live.iter().all(|update| update["sessionUpdate"] != "tool_call" && update["_meta"].is_null()));
    let can_cancel = |update: &&Value| update["capabilities"]["cancel"].is_object();
    assert_eq!(live.iter().filter(can_cancel).count(), 4, "each call while it runs");

    let mut second = start(&daemon, json!({})).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace()});
    let resumed = second.call("session/resume", place.clone()).await;
    assert!(resumed["modes"].is_null() && resumed["configOptions"][0]["configId"] == "mode", "{resumed}");
    let shown = second.updates(&session);
    assert_eq!(shown[0]["state"], "idle");
    assert!(of_kind(&shown, "user_message").is_empty() && of_kind(&shown, "replay_complete").is_empty());
    let before = second.updates(&session).len();
    let mut whole = place.clone();
    whole["replayFrom"] = json!({"type": "start"});
    let id = second.request("session/resume", whole).await;
    assert!(second.reply(id).await["error"].is_null());
    let lines = second.messages();
    let reply =
        lines.iter().position(|line| line["id"] == id && line["method"].is_null()).expect("the reply");
    let replayed = updates(&lines[..reply], &session).split_off(before);
    let last: Vec<&Value> = replayed.iter().rev().take(2).collect();
    assert_eq!((&last[0]["state"], &last[1]["sessionUpdate"]), (&json!("idle"), &json!("replay_complete")));
    assert_eq!(of_kind(&replayed, "replay_complete").len(), 1);
    let texts = |updates: &[Value]| -> String {
        let chunks = of_kind(updates, "agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    };
    assert_eq!((texts(&replayed).as_str(), texts(&live)), ("I read.All done.", texts(&replayed)));
    assert_eq!(of_kind(&replayed, "user_message"), of_kind(&live, "user_message"));
    for wrong in [json!({"type": "message", "messageId": message}), json!("start")] {
        let mut params = place.clone();
        params["replayFrom"] = wrong;
        assert_eq!(second.refused("session/resume", params).await["code"], -32602);
    }
    let listed = second.call("session/list", json!({})).await;
    assert_eq!(listed["sessions"][0]["sessionId"], json!(session));
    judge(&daemon, vec![editor, second]).await;
}

#[tokio::test]
async fn cancelled_prompts_and_calls_end_as_the_editor_asked() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = with_session(&daemon).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three").hold_after(1, &gate));
    let running = editor.prompt(&session, "count").await;
    gate.wait_reached().await;
    let queued = editor.prompt(&session, "later").await;
    assert!(editor.reply(running).await["result"]["messageId"].is_string());
    editor.cancel(&session).await;
    assert_eq!(editor.reply(queued).await["error"]["code"], -32800, "it was not inserted");
    assert_eq!(idle(&editor, &session, 1).await["stopReason"], "cancelled");
    // One call is cancelled, and the turn continues.
    daemon.models.push(Step::calls([("Bash", json!({"command": "echo begun && sleep 1000"}))]));
    daemon.models.push(Step::text("I see."));
    let prompt = json!([{"type": "text", "text": "sleep"}]);
    let keyed = json!({"sessionId": session, "prompt": prompt, "idempotencyKey": "k1"});
    let first = editor.call("session/prompt", keyed.clone()).await;
    let asked = editor.asked(0).await;
    editor.choose(&asked, "allow_once").await;
    daemon.tool_processes_reach(|count| count > 0).await;
    let call = asked["params"]["subject"]["toolCall"]["toolCallId"].clone();
    let wanted = json!({"sessionId": session, "toolCallId": call});
    assert_eq!(editor.call("tool_call/cancel", wanted.clone()).await, json!({}));
    assert_eq!(idle(&editor, &session, 2).await["stopReason"], "end_turn");
    let ended = |update: &Value| update["toolCallId"] == call && update["status"] == "cancelled";
    editor.update(&session, "tool_call_update", ended).await;
    assert_eq!(editor.refused("tool_call/cancel", wanted).await["code"], -32602);
    // A repeated prompt has its first reply, and no effect.
    assert_eq!(editor.call("session/prompt", keyed.clone()).await, first);
    assert_eq!(of_kind(&editor.updates(&session), "user_message").len(), 2);
    let mut second = start(&daemon, json!({})).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace()});
    second.call("session/resume", place).await;
    assert_eq!(second.call("session/prompt", keyed.clone()).await, first, "on another connection");
    for wrong in [json!(""), json!(7), json!("x".repeat(256))] {
        let mut params = keyed.clone();
        params["idempotencyKey"] = wrong;
        assert_eq!(editor.refused("session/prompt", params).await["code"], -32602);
    }
    judge(&daemon, vec![editor, second]).await;
}

#[tokio::test]
async fn close_stops_the_work_and_is_followed_by_silence() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = with_session(&daemon).await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three").hold_after(1, &gate));
    editor.prompt(&session, "count").await;
    gate.wait_reached().await;
    let queued = editor.prompt(&session, "later").await;
    let close = json!({ "sessionId": session });
    let id = editor.request("session/close", close.clone()).await;
    assert_eq!(editor.reply(id).await["result"], json!({}));
    assert_eq!(editor.reply(queued).await["error"]["code"], -32800);
    let lines = editor.messages();
    let reply = lines.iter().position(|line| line["id"] == id).expect("the reply");
    let states = of_kind(&updates(&lines[..reply], &session), "state_update");
    assert_eq!(states.last().expect("a state")["stopReason"], "cancelled");
    assert_eq!(editor.call("session/close", close).await, json!({}), "it is closed already");
    // The daemon has the session still, and another client may use it.
    let other = daemon.client("other").await;
    daemon.models.push(Step::text("unseen"));
    other.call("session.submit", json!({"session_id": session, "input": "go on"})).await;
    let waited = other.call("session.wait", json!({"session_id": session, "until": ["idle"]})).await;
    assert_eq!(waited["result"]["text"], "unseen");
    let place = json!({"sessionId": session, "cwd": daemon.workspace()});
    let error = editor
        .refused("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}))
        .await;
    assert_eq!(error["code"], -32002);
    assert!(updates(&editor.messages()[reply..], &session).is_empty(), "{:#?}", editor.messages());
    editor.call("session/resume", place).await;
    daemon.models.push(Step::text("again"));
    editor.prompt(&session, "more").await;
    editor.answered(&session, "again").await;
    judge(&daemon, vec![editor]).await;
}

#[tokio::test]
async fn questions_options_commands_and_failures_fit_the_schema() {
    let daemon = TestDaemon::builder().config("[retry]\nattempts = 1\nbase_ms = 1").start().await;
    daemon.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "true"}}}"#);
    let questions = json!({"questions": [{"question": "Which colour?", "header": "Colour",
        "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}]});
    let mut editors = Vec::new();
    for has_forms in [true, false] {
        let capabilities = if has_forms { json!({"elicitation": {"form": {}}}) } else { json!({}) };
        let mut editor = start(&daemon, capabilities).await;
        let session = editor.new_session(&daemon.workspace()).await;
        let trust = editor.asked(0).await;
        assert!(
            trust["params"]["subject"].is_null() && trust["params"]["description"].is_string(),
            "{trust}"
        );
        daemon.models.push(Step::calls([("AskUser", questions.clone())]));
        daemon.models.push(Step::text("done"));
        editor.prompt(&session, "ask").await;
        let asked = editor.asked(1).await;
        if has_forms {
            assert_eq!(asked["method"], "elicitation/create");
            editor.answer(&asked, json!({"action": "accept", "content": {"question1": "blue"}})).await;
        } else {
            assert_eq!(
                (&asked["params"]["title"], &asked["params"]["subject"]),
                (&json!("Which colour?"), &Value::Null)
            );
            let outcome =
                json!({"outcome": "selected", "optionId": asked["params"]["options"][1]["optionId"]});
            editor.answer(&asked, json!({ "outcome": outcome })).await;
        }
        assert_eq!(idle(&editor, &session, 1).await["stopReason"], "end_turn");
        // Options: the mode is one of them.
        let plan = json!({"sessionId": session, "configId": "mode", "type": "id", "value": "plan"});
        let options = editor.call("session/set_config_option", plan.clone()).await;
        assert_eq!(
            (&options["configOptions"][0]["category"], &options["configOptions"][0]["currentValue"]),
            (&json!("mode"), &json!("plan"))
        );
        let mut wrong = plan;
        wrong["type"] = "boolean".into();
        assert_eq!(editor.refused("session/set_config_option", wrong).await["code"], -32602);
        editor.update(&session, "config_option_update", |_| true).await;
        let commands = editor.update(&session, "available_commands_update", |_| true).await;
        assert_eq!(commands["availableCommands"][0]["type"], "command");
        // A command is a message with an id, and has the states of a turn.
        let id = editor.prompt(&session, "/context").await;
        let message = editor.reply(id).await["result"]["messageId"].clone();
        editor.update(&session, "user_message", |update| update["messageId"] == message).await;
        assert_eq!(idle(&editor, &session, 2).await["stopReason"], "end_turn");
        // A failure is a state; the prompt was accepted.
        daemon.models.set_fallback(|_| Step::error(400, "invalid_request_error", "the request is odd"));
        let id = editor.prompt(&session, "fail").await;
        assert!(editor.reply(id).await["result"]["messageId"].is_string());
        let end = idle(&editor, &session, 3).await;
        assert_eq!(end["stopReason"], "error");
        assert!(end["error"]["message"].as_str().is_some_and(|text| text.contains("odd")), "{end}");
        editors.push(editor);
    }
    judge(&daemon, editors).await;
}
