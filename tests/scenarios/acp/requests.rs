//! Decisions of the user: permission requests and questions, wherever they are answered.

use serde_json::{Value, json};

use super::editor::Editor;
use crate::support::daemon::TestDaemon;
use crate::support::model_server::Step;

fn edit(new: &str) -> Step {
    Step::calls([("Write", json!({"file_path": "notes.txt", "content": new}))])
}

#[tokio::test]
async fn allowed_edit_shows_its_diff_and_is_pending_until_answered() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    for (old, new) in [(None, "one\ntwo\n"), (Some("one\ntwo\n"), "one\n2\n")] {
        let path = daemon.workspace().join("notes.txt");
        daemon.models.push(match old {
            None => edit(new),
            Some(_) => {
                Step::calls([("Edit", json!({"file_path": path, "old_string": "two", "new_string": "2"}))])
            }
        });
        daemon.models.push(Step::text("done"));
        let id = editor.prompt(&session, "write").await;
        let number = usize::from(old.is_some());
        let asked = editor.asked(number).await;
        let call = &asked["params"]["toolCall"];
        assert_eq!((&call["status"], &call["kind"]), (&json!("pending"), &json!("edit")));
        let diff = call["content"]
            .as_array()
            .expect("content")
            .iter()
            .find(|it| it["type"] == "diff")
            .expect("a diff");
        assert_eq!(diff["oldText"], old.map_or(Value::Null, Value::from));
        assert_eq!(diff["newText"], new);
        assert_eq!(diff["path"], path.to_str().expect("text"));
        let states: Vec<Value> = editor
            .updates(&session)
            .into_iter()
            .filter(|update| update["toolCallId"] == call["toolCallId"])
            .map(|update| update["status"].clone())
            .filter(|status| !status.is_null())
            .collect();
        assert_eq!(states, ["pending"], "nothing runs before the answer");
        let kinds: Vec<&Value> = asked["params"]["options"]
            .as_array()
            .expect("options")
            .iter()
            .map(|option| &option["kind"])
            .collect();
        assert!(
            kinds.contains(&&json!("allow_always")) && kinds.contains(&&json!("reject_once")),
            "{kinds:?}"
        );
        editor.choose(&asked, "allow_once").await;
        assert_eq!(editor.stop_reason(id).await, "end_turn");
        assert_eq!(daemon.read("notes.txt"), new);
        let done =
            |update: &Value| update["toolCallId"] == call["toolCallId"] && update["status"] == "completed";
        let last = editor.update(&session, "tool_call_update", done).await;
        assert!(last["content"].as_array().expect("content").iter().any(|it| it["type"] == "diff"), "{last}");
    }
    editor.close().await;
}

#[tokio::test]
async fn answer_other_than_offered_allow_option_denies_and_turn_goes_on() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let selected = |option: &str| json!({"outcome": {"outcome": "selected", "optionId": option}});
    let answers = [
        Some(selected("deny")),
        Some(selected("allow")),
        Some(selected("session:9")),
        Some(json!({"outcome": {"outcome": "cancelled"}})),
        Some(json!({})),
        None,
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        daemon.models.push(edit("no"));
        daemon.models.push(Step::text("I see."));
        let id = editor.prompt(&session, "write").await;
        let asked = editor.asked(number).await;
        match answer {
            Some(answer) => editor.answer(&asked, answer).await,
            None => {
                let error = json!({"code": -32603, "message": "no"});
                editor.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
            }
        }
        assert_eq!(editor.stop_reason(id).await, "end_turn");
        assert_eq!(daemon.read("notes.txt"), "");
        let call = asked["params"]["toolCall"]["toolCallId"].clone();
        editor
            .update(&session, "tool_call_update", |it| it["toolCallId"] == call && it["status"] == "failed")
            .await;
    }
    editor.close().await;
}

#[tokio::test]
async fn request_answered_elsewhere_is_withdrawn() {
    let daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(edit("yes"));
    daemon.models.push(Step::text("done"));
    let id = editor.prompt(&session, "write").await;
    let asked = editor.asked(0).await;
    let other = daemon.client("other").await;
    let pending = other.call("permission.list", json!({ "session_id": session })).await;
    let request = &pending["requests"][0]["request_id"];
    other.call("session.approve", json!({"request_id": request, "decision": "allow"})).await;
    editor
        .wait("the withdrawal", |seen| {
            let is_it = |line: &Value| {
                line["method"] == "$/cancel_request" && line["params"]["requestId"] == asked["id"]
            };
            seen.iter().any(is_it).then_some(())
        })
        .await;
    // The late answer has no effect.
    editor.answer(&asked, json!({"outcome": {"outcome": "cancelled"}})).await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    assert_eq!(daemon.read("notes.txt"), "yes");
    editor.close().await;
}

#[tokio::test]
async fn pending_request_comes_back_after_bridge_and_daemon_are_killed() {
    let mut daemon = TestDaemon::start().await;
    let (mut editor, session) = Editor::with_session(&daemon).await;
    daemon.models.push(edit("yes"));
    daemon.models.push(Step::text("done"));
    editor.prompt(&session, "write").await;
    let first = editor.asked(0).await;
    editor.kill().await;
    let mut editor = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    editor.call("session/load", place).await;
    let again = editor.asked(0).await;
    assert_eq!(again["params"]["toolCall"], first["params"]["toolCall"]);
    assert_eq!(editor.text(&session, "user_message_chunk"), "write");
    // A resume shows no history, but the request.
    let mut third = Editor::start(&daemon).await;
    let place = json!({"sessionId": session, "cwd": daemon.workspace(), "mcpServers": []});
    third.call("session/resume", place).await;
    assert_eq!(third.asked(0).await["params"], again["params"]);
    assert_eq!(third.text(&session, "user_message_chunk"), "");
    third.kill().await;
    daemon.crash_and_restart().await;
    editor.choose(&again, "allow_once").await;
    editor.answered(&session, "done").await;
    assert_eq!(daemon.read("notes.txt"), "yes");
    let asked = editor
        .close()
        .await
        .into_iter()
        .filter(|line| line["method"] == "session/request_permission")
        .count();
    assert_eq!(asked, 1, "the editor showed it once");
}

#[tokio::test]
async fn open_request_of_one_session_does_not_block_another() {
    let daemon = TestDaemon::start().await;
    let (mut editor, one) = Editor::with_session(&daemon).await;
    let two = editor.new_session(&daemon.workspace()).await;
    daemon.models.push(edit("yes"));
    let open = editor.prompt(&one, "write").await;
    let asked = editor.asked(0).await;
    daemon.models.push(Step::text("done"));
    let id = editor.prompt(&two, "talk").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let mut second = Editor::start(&daemon).await;
    let place = json!({"sessionId": one, "cwd": daemon.workspace(), "mcpServers": []});
    second.call("session/load", place).await;
    let same = second.asked(0).await;
    assert_eq!(same["params"]["toolCall"]["toolCallId"], asked["params"]["toolCall"]["toolCallId"]);
    daemon.models.push(Step::text("done"));
    second.choose(&same, "allow_once").await;
    assert_eq!(editor.stop_reason(open).await, "end_turn");
    second.close().await;
    editor.close().await;
}

#[tokio::test]
async fn question_of_model_is_a_form_or_a_list_of_options() {
    let daemon = TestDaemon::start().await;
    let questions = json!({"questions": [{"question": "Which colour?", "header": "Colour",
        "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]}]});
    for has_forms in [true, false] {
        let capabilities = if has_forms { json!({"elicitation": {"form": {}}}) } else { json!({}) };
        let mut editor = Editor::start_with(&daemon, capabilities).await;
        let session = editor.new_session(&daemon.workspace()).await;
        daemon.models.push(Step::calls([("AskUser", questions.clone())]));
        daemon.models.push(Step::text("done"));
        let id = editor.prompt(&session, "ask").await;
        let asked = editor.asked(0).await;
        if has_forms {
            assert_eq!(asked["method"], "elicitation/create");
            assert_eq!(
                asked["params"]["requestedSchema"]["properties"]["question1"]["oneOf"][1]["const"],
                "blue"
            );
            editor.answer(&asked, json!({"action": "accept", "content": {"question1": "blue"}})).await;
        } else {
            let options = &asked["params"]["options"];
            assert_eq!((&options[1]["name"], &options[2]["kind"]), (&json!("blue"), &json!("reject_once")));
            let outcome = json!({"outcome": "selected", "optionId": options[1]["optionId"]});
            editor.answer(&asked, json!({ "outcome": outcome })).await;
        }
        assert_eq!(editor.stop_reason(id).await, "end_turn");
        let requests = daemon.models.requests();
        let result = requests.last().expect("a request").tool_results().concat_text();
        assert!(result.contains("blue"), "{result}");
        editor.close().await;
    }
}

#[tokio::test]
async fn trust_is_asked_once_and_session_works_without_it() {
    let daemon = TestDaemon::start().await;
    daemon.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "true"}}}"#);
    let (mut editor, session) = Editor::with_session(&daemon).await;
    let asked = editor.asked(0).await;
    let options = asked["params"]["options"].as_array().expect("options");
    assert!(options.iter().all(|option| option["kind"] != "allow_always"), "{options:?}");
    daemon.models.push(Step::text("done"));
    let id = editor.prompt(&session, "work").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn", "before the answer");
    editor.choose(&asked, "allow_once").await;
    let other = daemon.client("other").await;
    let cwd = daemon.workspace();
    let trusted = || async { other.call("workspace.status", json!({ "cwd": cwd })).await["trusted"].clone() };
    while trusted().await != true {
        tokio::task::yield_now().await;
    }
    let next = editor.new_session(&daemon.workspace()).await;
    daemon.models.push(Step::text("done"));
    let id = editor.prompt(&next, "work").await;
    assert_eq!(editor.stop_reason(id).await, "end_turn");
    let asked = editor
        .close()
        .await
        .into_iter()
        .filter(|line| line["method"] == "session/request_permission")
        .count();
    assert_eq!(asked, 1);
}

trait ConcatText {
    fn concat_text(&self) -> String;
}

impl ConcatText for Vec<(String, String)> {
    fn concat_text(&self) -> String {
        self.iter().map(|(_, text)| text.as_str()).collect()
    }
}
