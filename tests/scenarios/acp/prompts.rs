//! Prompts: their updates, ends, queue, cancelling, steering, content and commands.

use serde_json::{Value, json};

use super::editor::{Editor, updates};
use crate::support::daemon::TestDaemon;
use crate::support::model_server::{Gate, Step};

#[tokio::test]
async fn all_updates_precede_the_reply_to_their_prompt() {
    let daemon = TestDaemon::start().await;
    let pieces: Vec<String> = (0..1_000).map(|n| format!("{n} ")).collect();
    daemon.models.push(Step::pieces(pieces.clone()).thinking("I count."));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let id = editor.prompt(&session, "count").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(editor.text(&session, "agent_message_chunk"), pieces.concat());
    assert_eq!(editor.text(&session, "agent_thought_chunk"), "I count.");
    assert_eq!(editor.text(&session, "user_message_chunk"), "", "the editor shows its own input");
    let lines = editor.close().await;
    let reply = lines.iter().position(|line| line["id"] == id).expect("the reply");
    let is_text = |update: &Value| update["sessionUpdate"] == "agent_message_chunk";
    assert!(!updates(&lines[reply..], &session).iter().any(is_text), "no text after the reply");
}

#[tokio::test]
async fn texts_around_tool_call_have_two_message_ids() {
    let daemon = TestDaemon::start().await;
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).say("I look."));
    daemon.models.push(Step::text("I saw it."));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let id = editor.prompt(&session, "look").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let found = editor.updates(&session);
    let of_kind = |kind: &'static str| found.iter().filter(move |update| update["sessionUpdate"] == kind);
    let mut ids: Vec<&Value> = of_kind("agent_message_chunk").map(|update| &update["messageId"]).collect();
    ids.dedup();
    assert_eq!(ids.len(), 2, "{found:#?}");
    let call = of_kind("tool_call").next().expect("a call");
    assert_eq!(
        (&call["status"], &call["kind"], &call["name"]),
        (&json!("pending"), &json!("search"), &json!("LS"))
    );
    let states: Vec<&Value> =
        of_kind("tool_call_update").map(|update| &update["status"]).filter(|it| !it.is_null()).collect();
    assert_eq!(states, ["in_progress", "completed"]);
    assert!(
        found
            .iter()
            .any(|update| update["sessionUpdate"] == "session_info_update" && update["title"] == "look")
    );
    editor.close().await;
}

#[tokio::test]
async fn cancel_in_stream_tool_or_request_ends_prompt_and_next_one_works() {
    let daemon = TestDaemon::builder().config("[retry]\nbase_ms = 30000").start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let gate = Gate::new();
    for case in ["stream", "tool", "request", "retry"] {
        let first = match case {
            "stream" => Step::text("one two three").hold_after(1, &gate),
            "retry" => Step::error(529, "overloaded_error", "too much"),
            _ => Step::calls([("Bash", json!({"command": "echo begun && sleep 1000"}))]),
        };
        daemon.models.push(first);
        let before = daemon.models.requests().len();
        let id = editor.prompt(&session, case).await;
        match case {
            "stream" => gate.wait_reached().await,
            "retry" => _ = daemon.models.wait_for_requests(before + 1).await,
            "tool" => {
                let asked = editor.asked(0).await;
                editor.choose(&asked, "allow_once").await;
                daemon.tool_processes_reach(|count| count > 0).await;
            }
            _ => _ = editor.asked(1).await,
        }
        editor.cancel(&session).await;
        editor.cancel(&session).await;
        assert_eq!(editor.stop_reason(id).await, "cancelled", "{case}");
        daemon.models.push(Step::text("next"));
        let id = editor.prompt(&session, "go on").await;
        assert_eq!(editor.stop_reason(id).await, "end_turn", "after {case}");
    }
    let asked = editor.asked(1).await;
    let withdrawn =
        |line: &Value| line["method"] == "$/cancel_request" && line["params"]["requestId"] == asked["id"];
    let lines = editor.close().await;
    assert!(lines.iter().any(withdrawn), "the open request was withdrawn");
}

#[tokio::test]
async fn cancel_while_idle_does_not_touch_next_prompt() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    for _ in 0..5 {
        daemon.models.push(Step::text("done"));
        editor.cancel(&session).await;
        let id = editor.prompt(&session, "work").await;
        assert_eq!(editor.stop_reason(id).await, "end_turn");
    }
    editor.cancel("ses_nothing").await;
    editor.close().await;
}

#[tokio::test]
async fn queued_prompts_get_one_reply_each_when_cancelled() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let mut ids = vec![editor.prompt(&session, "first").await];
    gate.wait_reached().await;
    for text in ["second", "third"] {
        ids.push(editor.prompt(&session, text).await);
    }
    editor.cancel(&session).await;
    for id in &ids {
        assert_eq!(editor.stop_reason(*id).await, "cancelled");
    }
    daemon.models.push(Step::text("done"));
    let last = editor.prompt(&session, "fourth").await;
    assert_eq!(editor.stop_reason(last).await, "end_turn");
    assert_eq!(daemon.models.requests().len(), 2, "the queued prompts did not run");
    let lines = editor.close().await;
    for id in ids {
        assert_eq!(lines.iter().filter(|line| line["id"] == id).count(), 1);
    }
}

#[tokio::test]
async fn busy_prompt_waits_and_is_answered() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("first answer").hold_after(1, &gate));
    daemon.models.push(Step::text("second answer"));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let first = editor.prompt(&session, "one").await;
    gate.wait_reached().await;
    let second = editor.prompt(&session, "two").await;
    gate.open();
    assert_eq!(editor.stop_reason(first).await, "end_turn");
    assert_eq!(editor.stop_reason(second).await, "end_turn");
    assert_eq!(editor.text(&session, "agent_message_chunk"), "first answersecond answer");
    assert_eq!(editor.text(&session, "user_message_chunk"), "");
    editor.close().await;
}

#[tokio::test]
async fn cancel_leaves_other_session_and_other_prompt_alone() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    let (mut editor, one) = Editor::with_session(&daemon).await;
    let two = editor.new_session(&daemon.workspace()).await;
    daemon.models.set_fallback({
        let gate = gate.clone();
        move |_| Step::text("one two").hold_after(1, &gate)
    });
    let ids = [editor.prompt(&one, "x").await, editor.prompt(&two, "y").await];
    daemon.models.wait_for_requests(2).await;
    editor.cancel(&one).await;
    assert_eq!(editor.stop_reason(ids[0]).await, "cancelled");
    gate.open();
    assert_eq!(editor.stop_reason(ids[1]).await, "end_turn");
    // A prompt can also be cancelled by the id of its request.
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let id = editor.prompt(&one, "z").await;
    gate.wait_reached().await;
    editor.notify("$/cancel_request", json!({ "requestId": id })).await;
    assert_eq!(editor.stop_reason(id).await, "cancelled");
    editor.close().await;
}

#[tokio::test]
async fn provider_error_reaches_the_prompt_in_its_words() {
    let daemon = TestDaemon::builder().config("[retry]\nattempts = 2\nbase_ms = 1").start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    for (status, kind, words) in [
        (401, "authentication_error", "the key is wrong"),
        (400, "invalid_request_error", "the request is odd"),
        (529, "overloaded_error", "too much for today"),
    ] {
        daemon.models.set_fallback(move |_| Step::error(status, kind, words));
        let id = editor.prompt(&session, "work").await;
        let reply = editor.reply(id).await;
        let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{reply}"));
        assert!(message.contains(words), "{message}");
        assert_eq!(reply["error"]["code"], -32603);
    }
    daemon.models.set_fallback(|_| Step::text("done"));
    let id = editor.prompt(&session, "again").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    daemon.models.push(Step::text("cut").stop("max_tokens"));
    daemon.models.set_fallback(|_| Step::text("cut").stop("max_tokens"));
    let id = editor.prompt(&session, "long").await;
    assert_eq!(editor.stop_reason(id).await, "max_tokens");
    editor.close().await;
}

#[tokio::test]
async fn commands_follow_the_reply_and_are_answered_visibly() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let listed = editor.update(&session, "available_commands_update", |_| true).await;
    let names: Vec<&str> = listed["availableCommands"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert!(names.contains(&"context") && names.iter().all(|name| !name.starts_with('/')), "{names:?}");
    let id = editor.prompt(&session, "/context").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert!(!editor.text(&session, "agent_message_chunk").is_empty());
    let prompt = json!([{"type": "text", "text": "/contxt"}]);
    let error = editor.refused("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    assert!(
        error["code"] == -32602 && error["message"].as_str().expect("text").contains("/context"),
        "{error}"
    );
    // A command is answered at once, also while a turn waits.
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let turn = editor.prompt(&session, "work").await;
    gate.wait_reached().await;
    let id = editor.prompt(&session, "/status").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    gate.open();
    assert_eq!(editor.stop_reason(turn).await, "end_turn");
    // A heading is no note, and a path is no command.
    for text in ["# Heading", "/usr/bin/env is missing"] {
        daemon.models.push(Step::text("I see."));
        let id = editor.prompt(&session, text).await;
        assert_eq!(editor.stop_reason(id).await, "end_turn");
    }
    let lines = editor.close().await;
    let reply = lines.iter().position(|line| line["result"]["sessionId"] == session).expect("the reply");
    assert!(updates(&lines[..reply], &session).is_empty(), "no update before the editor knows the session");
    assert_eq!(daemon.models.requests().len(), 3);
}

#[tokio::test]
async fn steering_reaches_running_turn_or_starts_one() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::calls([("LS", json!({"path": "."}))]).hold(&gate));
    daemon.models.push(Step::text("with it"));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let id = editor.prompt(&session, "work").await;
    gate.wait_reached().await;
    let steer = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let reply = editor.call("_session/steering", steer("use io::Error")).await;
    assert_eq!(reply["outcome"], "injected");
    gate.open();
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let requests = daemon.models.requests();
    assert!(requests[1].body.to_string().contains("use io::Error"));
    let mut opted = steer("later");
    opted["_meta"] = json!({"steering": {"idleBehavior": "promptRequired"}});
    assert_eq!(editor.call("_session/steering", opted).await["outcome"], "promptRequired");
    daemon.models.push(Step::text("new"));
    assert_eq!(editor.call("_session/steering", steer("begin")).await["outcome"], "startedNewTurn");
    editor.answered(&session, "new").await;
    assert_eq!(editor.text(&session, "user_message_chunk"), "", "the editor shows its own inputs");
    editor.close().await;
}

#[tokio::test]
async fn prompt_content_reaches_the_model_or_is_named() {
    let daemon = TestDaemon::start().await;
    let lines: String = (1..40).map(|n| format!("content of line {n}\n")).collect();
    daemon.write("a file.txt", &lines);
    let uri = format!("file://{}/a%20file.txt", daemon.workspace().display());
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let cases = [
        (
            json!({"type": "resource_link", "uri": format!("{uri}#L10:20"), "name": "a file.txt"}),
            "lines 10 to 20",
        ),
        (json!({"type": "resource_link", "uri": uri, "name": "a file.txt"}), "content of line 15"),
        (
            json!({"type": "resource_link", "uri": "file:///none/x.rs", "name": "x.rs"}),
            "could not be attached",
        ),
        (
            json!({"type": "resource_link", "uri": "zed:///agent/thread/1", "name": "thread"}),
            "zed:///agent/thread/1",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///w/buffer.rs", "text": "fn unsaved() {}"}}),
            "fn unsaved() {}",
        ),
        (
            json!({"type": "resource", "resource": {"uri": "file:///w/buffer.rs", "text": "x"}}),
            "maybe not saved",
        ),
    ];
    for (block, expected) in cases {
        daemon.models.push(Step::text("seen"));
        let id = editor.request("session/prompt", json!({"sessionId": session, "prompt": [block]})).await;
        assert_eq!(editor.stop_reason(id).await, "end_turn", "{block}");
        let requests = daemon.models.requests();
        let last = requests.last().expect("a request").messages().last().expect("a message").to_string();
        assert!(last.contains(expected), "{expected}: {last}");
    }
    let audio = json!([{"type": "audio", "data": "", "mimeType": "audio/wav"}]);
    for prompt in [json!([]), json!([{"type": "text", "text": " "}]), audio] {
        let error = editor.refused("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
        assert_eq!(error["code"], -32602, "{prompt}");
    }
    let prompt = json!([{"type": "text", "text": "x"}]);
    for unknown in ["nope", "ses_0190f2a4-0000-7000-8000-000000000000"] {
        let error = editor.refused("session/prompt", json!({"sessionId": unknown, "prompt": prompt})).await;
        assert_eq!(error["code"], -32002);
    }
    editor.close().await;
}

#[tokio::test]
async fn usage_plan_and_settings_are_shown() {
    let daemon =
        TestDaemon::builder().config("[model.\"scripted/model\"]\ncontext_window = 200000").start().await;
    let todos = json!({"todos": [{"content": "Run", "status": "in_progress"}, {"content": "End", "status": "pending"}]});
    daemon.models.push(Step::calls([("TodoWrite", todos)]).usage(100, 5));
    daemon.models.push(Step::text("done").usage(300, 7));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let id = editor.prompt(&session, "plan").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let found = editor.updates(&session);
    let plan = found.iter().find(|update| update["sessionUpdate"] == "plan").expect("a plan");
    assert_eq!(plan["entries"].as_array().map(Vec::len), Some(2));
    let used: Vec<&Value> = found
        .iter()
        .filter(|update| update["sessionUpdate"] == "usage_update")
        .map(|update| &update["used"])
        .collect();
    assert_eq!(used, [105, 307], "the fill of the window, not a sum");
    let reply = editor
        .call("session/set_config_option", json!({"sessionId": session, "configId": "mode", "value": "plan"}))
        .await;
    let mode = |options: &Value| {
        let options = options.as_array().expect("options").clone();
        options.into_iter().find(|option| option["id"] == "mode").expect("a mode")["currentValue"].clone()
    };
    assert_eq!(mode(&reply["configOptions"]), "plan");
    editor.update(&session, "current_mode_update", |update| update["currentModeId"] == "plan").await;
    editor.call("session/set_mode", json!({"sessionId": session, "modeId": "accept_edits"})).await;
    for (method, params) in [
        ("session/set_mode", json!({"sessionId": session, "modeId": "bypass"})),
        ("session/set_mode", json!({"sessionId": session, "modeId": ""})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": "no/such"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "x", "value": true})),
    ] {
        assert_eq!(editor.refused(method, params).await["code"], -32602, "{method}");
    }
    // Another client changes it, and another bridge resumes it.
    let params = json!({"session_id": session, "mode": "default", "title": "renamed"});
    daemon.client("other").await.call("session.update", params).await;
    editor.update(&session, "session_info_update", |update| update["title"] == "renamed").await;
    editor
        .update(&session, "config_option_update", |update| mode(&update["configOptions"]) == "default")
        .await;
    let mut second = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    let resumed = second.call("session/resume", place).await;
    assert_eq!(resumed["modes"]["currentModeId"], "default");
    assert_eq!(mode(&resumed["configOptions"]), "default");
    assert_eq!(second.text(&session, "agent_message_chunk"), "", "a resume shows no history");
    second.close().await;
    editor.close().await;
}

#[tokio::test]
async fn command_output_is_shown_while_it_runs() {
    let daemon = TestDaemon::start().await;
    for has_terminal in [false, true] {
        let mut editor =
            Editor::start_with(&daemon, json!({"_meta": {"terminal_output": has_terminal}})).await;
        let session = editor.new_session(&daemon.workspace()).await;
        let go = daemon.workspace().join(format!("go{has_terminal}"));
        let command =
            format!("echo first; until [ -e {} ]; do sleep 0.01; done; echo last; exit 3", go.display());
        daemon
            .models
            .push(Step::calls([("Bash", json!({"command": command, "description": "Does nothing"}))]));
        daemon.models.push(Step::text("done"));
        let id = editor.prompt(&session, "run").await;
        let asked = editor.asked(0).await;
        assert_eq!(asked["params"]["toolCall"]["title"], command.as_str());
        editor.choose(&asked, "allow_once").await;
        let part = |update: &Value| update.to_string().contains("first\\n") && update["status"].is_null();
        editor.update(&session, "tool_call_update", part).await;
        std::fs::write(&go, "").expect("written");
        assert_eq!(editor.stop_reason(id).await, "end_turn");
        let last = editor.update(&session, "tool_call_update", |update| update["status"] == "failed").await;
        assert_eq!(
            last["_meta"]["terminal_exit"]["exit_code"],
            if has_terminal { json!(3) } else { Value::Null }
        );
        assert_eq!(last["content"][0]["type"], if has_terminal { "terminal" } else { "content" });
        let info = |update: &Value| update["_meta"]["terminal_info"]["terminal_id"].is_string();
        assert_eq!(editor.updates(&session).iter().any(info), has_terminal);
        editor.close().await;
    }
}

#[tokio::test]
async fn prompt_of_archived_session_restores_it() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(Step::text("one two"));
    let id = editor.prompt(&session, "first words").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    for _ in 0..2 {
        editor.call("session/delete", json!({ "sessionId": session })).await;
    }
    editor.call("session/delete", json!({"sessionId": "ses_0190f2a4-0000-7000-8000-000000000000"})).await;
    assert_eq!(editor.call("session/list", json!({})).await["sessions"], json!([]));
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    editor.call("session/load", place).await;
    assert_eq!(editor.text(&session, "user_message_chunk"), "first words");
    daemon.models.push(Step::text("again"));
    let id = editor.prompt(&session, "more").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let listed = editor.call("session/list", json!({})).await;
    assert_eq!(
        (&listed["sessions"][0]["title"], &listed["sessions"][0]["sessionId"]),
        (&json!("first words"), &json!(session))
    );
    assert!(listed["sessions"][0]["updatedAt"].as_str().expect("a time").ends_with('Z'));
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let running = editor.prompt(&session, "long").await;
    gate.wait_reached().await;
    assert_eq!(editor.refused("session/delete", json!({ "sessionId": session })).await["code"], -32012);
    gate.open();
    editor.stop_reason(running).await;
    editor.close().await;
}
