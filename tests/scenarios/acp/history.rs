//! Sessions that began elsewhere or outlived an editor: load, resume, list, and a daemon that restarts.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::support::daemon::TestDaemon;
use crate::support::mcp_server::McpScript;
use crate::support::model_server::{Gate, Step};

/// What an editor shows of a conversation: messages and tool calls, merged by their ids.
fn shown(updates: &[Value]) -> Vec<Value> {
    let mut entries: Vec<Value> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().expect("a kind");
        if kind.ends_with("_chunk") {
            let id = json!([kind, update["messageId"]]);
            let text = update["content"]["text"].as_str().expect("text");
            match entries.iter_mut().find(|entry| entry["id"] == id) {
                Some(entry) => {
                    entry["text"] = format!("{}{text}", entry["text"].as_str().expect("text")).into()
                }
                None => entries.push(json!({"id": id, "text": text})),
            }
        } else if kind == "tool_call" {
            let mut entry = update.clone();
            entry["id"] = update["toolCallId"].clone();
            entries.push(entry);
        } else if kind == "tool_call_update" {
            let id = &update["toolCallId"];
            let entry = entries.iter_mut().find(|entry| entry["id"] == *id).expect("the call came first");
            for (field, value) in update.as_object().expect("fields") {
                entry[field] = value.clone();
            }
        }
    }
    for entry in &mut entries {
        entry.as_object_mut().expect("fields").remove("sessionUpdate");
    }
    entries
}

#[tokio::test]
async fn loaded_session_looks_as_it_did_live() {
    let daemon = TestDaemon::start().await;
    daemon.write("a.txt", "one\ntwo\n");
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let path = daemon.workspace().join("a.txt");
    daemon
        .models
        .push(Step::calls([("Read", json!({"file_path": path}))]).say("I read.").thinking("Let me see."));
    let edit = json!({"file_path": path, "old_string": "two", "new_string": "2"});
    daemon.models.push(Step::calls([("Edit", edit), ("Bash", json!({"command": "echo hello; exit 1"}))]));
    daemon.models.push(Step::text("All done."));
    let id = editor.prompt(&session, "change it").await;
    for number in 0..2 {
        let asked = editor.asked(number).await;
        editor.choose(&asked, if number == 0 { "allow_once" } else { "reject_once" }).await;
    }
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let live = shown(&editor.updates(&session));
    let mut second = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    let loaded = second.call("session/load", place.clone()).await;
    assert_eq!(loaded["modes"]["currentModeId"], "default");
    let mut replayed = shown(&second.updates(&session));
    let input = replayed.remove(0);
    assert_eq!((&input["text"], &input["id"][0]), (&json!("change it"), &json!("user_message_chunk")));
    assert_eq!(replayed, live);
    // In one bridge, a second load shows the same once more, and the session continues.
    let before = second.updates(&session).len();
    second.call("session/load", place).await;
    let again: Vec<Value> = second.updates(&session).split_off(before);
    assert_eq!(shown(&again)[1..], live);
    daemon.models.push(Step::text("And on."));
    let id = second.prompt(&session, "more").await;
    assert_eq!(second.stop_reason(id).await, "end_turn");
    assert!(editor.text(&session, "user_message_chunk").contains("more"), "another client's input is shown");
    editor.answered(&session, "on.").await;
    second.close().await;
    editor.close().await;
}

#[tokio::test]
async fn load_leaves_out_what_was_rewound() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    for text in ["first", "second"] {
        daemon.models.push(Step::text(&format!("{text} answer")));
        let id = editor.prompt(&session, text).await;
        editor.stop_reason(id).await;
    }
    let other = daemon.client("other").await;
    let items =
        other.call("session.items", json!({"session_id": session, "kinds": ["assistant_message"]})).await;
    let first = &items["items"][0]["item_id"];
    other.call("session.rewind", json!({"session_id": session, "item_id": first})).await;
    editor.answered(&session, "no longer part of it.").await;
    let mut second = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    second.call("session/load", place).await;
    assert_eq!(second.text(&session, "agent_message_chunk"), "first answer");
    assert_eq!(second.text(&session, "user_message_chunk"), "first");
    second.close().await;
    editor.close().await;
}

#[tokio::test]
async fn servers_of_editor_are_used_or_named() {
    let daemon = TestDaemon::start().await;
    let script = McpScript::new(&daemon, "own");
    let entry = script.entry();
    let env: Vec<Value> = entry["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let servers = json!([
        {"name": "own", "command": entry["command"], "args": entry["args"], "env": env},
        {"name": "broken", "command": "/none/program", "args": [], "env": []},
        {"type": "sse", "name": "old", "url": "http://127.0.0.1:1/", "headers": []},
    ]);
    let mut editor = Editor::start(&daemon).await;
    let made = editor.call("session/new", json!({"cwd": daemon.workspace(), "mcpServers": servers})).await;
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    daemon.models.push(Step::calls([("mcp__own__echo", json!({"text": "from the server"}))]));
    daemon.models.push(Step::text("done"));
    let id = editor.prompt(&session, "call it").await;
    let asked = editor.asked(0).await;
    assert_eq!(asked["params"]["toolCall"]["title"], "own: echo");
    editor.choose(&asked, "allow_once").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let end = editor.update(&session, "tool_call_update", |update| update["status"] == "completed").await;
    assert!(end["content"].to_string().contains("from the server"), "{end}");
    let text = editor.text(&session, "agent_message_chunk");
    assert!(text.contains("MCP server old") && text.contains("MCP server broken failed"), "{text}");
    editor.close().await;
}

#[tokio::test]
async fn unknown_session_is_not_found_and_none_is_created() {
    let daemon = TestDaemon::start().await;
    let mut editor = Editor::start(&daemon).await;
    for id in ["nope", "", "ses_0190f2a4-0000-7000-8000-000000000000"] {
        let place = json!({"sessionId": id, "cwd": daemon.workspace(), "mcpServers": []});
        for method in ["session/load", "session/resume"] {
            assert_eq!(editor.refused(method, place.clone()).await["code"], -32002, "{method} {id}");
        }
    }
    assert_eq!(editor.call("session/list", json!({})).await["sessions"], json!([]));
    assert_eq!(editor.refused("session/list", json!({"cursor": "x"})).await["code"], -32602);
    editor.close().await;
}

#[tokio::test]
async fn load_in_running_turn_shows_the_text_once() {
    let daemon = TestDaemon::start().await;
    let gate = Gate::new();
    daemon.models.push(Step::text("one two three four").hold_after(2, &gate));
    let (mut editor, session) = Editor::with_session(&daemon).await;
    editor.prompt(&session, "count").await;
    editor.answered(&session, "two ").await;
    let mut second = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    second.call("session/load", place).await;
    assert_eq!(second.text(&session, "agent_message_chunk"), "one two ");
    gate.open();
    second.answered(&session, "four").await;
    assert_eq!(second.text(&session, "agent_message_chunk"), "one two three four");
    second.close().await;
    editor.close().await;
}

#[tokio::test]
async fn prompt_stays_open_while_daemon_is_killed_and_restarted() {
    let mut daemon = TestDaemon::start().await;
    let gate = Gate::new();
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(Step::text("lost words").hold_after(1, &gate));
    daemon.models.push(Step::text("the answer"));
    let id = editor.prompt(&session, "work").await;
    gate.wait_reached().await;
    daemon.crash_and_restart().await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert!(editor.text(&session, "agent_message_chunk").ends_with("the answer"));
    daemon.models.push(Step::text("more"));
    let id = editor.prompt(&session, "again").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    editor.close().await;
}

#[tokio::test]
async fn running_command_gets_one_end_after_daemon_is_killed() {
    let mut daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(Step::calls([("Bash", json!({"command": "echo begun && sleep 1000"}))]));
    daemon.models.push(Step::text("I see."));
    let id = editor.prompt(&session, "run").await;
    let asked = editor.asked(0).await;
    editor.choose(&asked, "allow_once").await;
    daemon.tool_processes_reach(|count| count > 0).await;
    daemon.crash_and_restart().await;
    // The outcome is unknown, so that the user decides how to go on.
    let question = editor.asked(1).await;
    editor.choose(&question, "allow_once").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let call = &asked["params"]["toolCall"]["toolCallId"];
    let ends = editor
        .updates(&session)
        .into_iter()
        .filter(|it| it["toolCallId"] == *call && it["status"] == "failed");
    assert_eq!(ends.count(), 1);
    editor.close().await;
}

#[tokio::test]
async fn prompt_of_other_client_reaches_the_editor() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(Step::calls([("Write", json!({"file_path": "x", "content": "y"}))]));
    daemon.models.push(Step::text("done"));
    let other = daemon.client("other").await;
    other.call("session.submit", json!({"session_id": session, "input": "from elsewhere"})).await;
    editor.update(&session, "user_message_chunk", |it| it["content"]["text"] == "from elsewhere").await;
    let asked = editor.asked(0).await;
    editor.choose(&asked, "allow_once").await;
    editor.answered(&session, "done").await;
    assert_eq!(daemon.read("x"), "y");
    // A prompt that another client removes from the queue is over.
    let gate = Gate::new();
    daemon.models.push(Step::text("one two").hold_after(1, &gate));
    let first = editor.prompt(&session, "first").await;
    gate.wait_reached().await;
    let second = editor.prompt(&session, "second").await;
    let queue = loop {
        let found = other.call("session.queue.list", json!({ "session_id": session })).await;
        if let Some(turn) = found["queue"].get(0) {
            break turn["turn_id"].clone();
        }
    };
    other.call("session.queue.remove", json!({"session_id": session, "turn_id": queue})).await;
    assert_eq!(editor.stop_reason(second).await, "cancelled");
    gate.open();
    assert_eq!(editor.stop_reason(first).await, "end_turn");
    editor.close().await;
}

#[tokio::test]
async fn session_list_covers_folders_and_hides_none_of_the_others() {
    let daemon = TestDaemon::start().await;
    let mut editor = Editor::start(&daemon).await;
    daemon.write("inner/x", "");
    for folder in ["", "inner"] {
        let session = editor.new_session(&daemon.workspace().join(folder)).await;
        daemon.models.push(Step::text("done"));
        let id = editor.prompt(&session, &format!("in {folder:?}")).await;
        editor.stop_reason(id).await;
    }
    let count = |listed: Value| listed["sessions"].as_array().map_or(0, Vec::len);
    assert_eq!(count(editor.call("session/list", json!({})).await), 2);
    let inner = daemon.workspace().join("inner");
    let listed = editor.call("session/list", json!({ "cwd": inner })).await;
    assert_eq!(listed["sessions"][0]["title"], "in \"inner\"");
    assert_eq!(listed["sessions"][0]["_meta"]["_agentd"]["state"], "idle");
    assert_eq!(count(listed), 1);
    editor.close().await;
}
