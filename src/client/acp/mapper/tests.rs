use serde_json::{Value, json};

use super::*;

const SESSION: &str = "ses_0190f2a4-0000-7000-8000-000000000000";
const TURN: &str = "turn_0190f2a4-0000-7000-8000-000000000001";
const ITEM: &str = "item_0190f2a4-0000-7000-8000-000000000002";
const CALL: &str = "call_0190f2a4-0000-7000-8000-000000000003";

struct Case {
    mapper: Mapper,
    seq: u64,
}

impl Case {
    fn with(features: Features) -> Self {
        let mut case = Self { mapper: Mapper::new(features, Choices::default(), String::new()), seq: 0 };
        case.map(
            json!({"type": "session.created", "cwd": "/w", "title": "", "model": "a/b", "mode": "default"}),
        );
        case
    }

    fn new() -> Self {
        Self::with(Features::default())
    }

    fn map_from(&mut self, event: Value, origin: InputOrigin) -> Vec<Value> {
        self.seq += 1;
        let mut envelope = event;
        envelope["seq"] = self.seq.into();
        envelope["session_id"] = SESSION.into();
        envelope["turn_id"] = TURN.into();
        envelope["item_id"] = ITEM.into();
        envelope["at_ms"] = 1_795_219_200_000_i64.into();
        let envelope: Envelope = serde_json::from_value(envelope).expect("an event");
        let updates = self.mapper.map(&envelope, origin);
        updates.iter().map(|update| serde_json::to_value(update).expect("JSON")).collect()
    }

    fn map(&mut self, event: Value) -> Vec<Value> {
        self.map_from(event, InputOrigin::Other)
    }

    /// Maps events and joins the text of the chunks of this kind.
    fn text(&mut self, events: impl IntoIterator<Item = Value>, kind: &str) -> String {
        let updates: Vec<Value> = events.into_iter().flat_map(|event| self.map(event)).collect();
        let chunks = updates.iter().filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }
}

fn delta(text: &str) -> Value {
    json!({"type": "message.text_delta", "index": 0, "text": text})
}

fn message(kind: &str, content: Value) -> Value {
    json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN, "kind": kind,
        "status": "completed", "first_seq": 1, "last_seq": 2, "text": "typed", "content": content}})
}

fn answer(text: &str) -> Value {
    message("assistant_message", json!([{"type": "text", "text": text}]))
}

fn result(subtype: &str, errors: Value) -> Value {
    json!({"type": "turn.completed", "result": {"subtype": subtype, "text": "", "stop_reason": null, "usage": {},
        "usage_by_model": {}, "cost_usd_micros": 0, "duration_ms": 1, "model_ms": 1, "tools_ms": 1,
        "permission_ms": 1, "model_calls": 1, "permission_denials": [], "errors": errors}})
}

fn requested(tool: &str, input: Value) -> Value {
    json!({"type": "tool.requested", "call_id": CALL, "tool": tool, "input": input})
}

fn started() -> Value {
    json!({"type": "tool.started", "call_id": CALL, "tool": "Bash", "allowed_by": "x", "read_only": false})
}

fn completed(status: &str, output: &str) -> Value {
    json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": status, "output": output,
        "detail": {"exit_code": 3}, "duration_ms": 1})
}

#[test]
fn text_of_message_is_sent_once_however_it_arrives() {
    let whole = "one two é";
    let ways = [
        vec![answer(whole)],
        vec![delta("one "), delta("two é"), answer(whole)],
        vec![delta("one "), answer(whole)],
        vec![delta(""), answer(whole)],
        vec![answer(whole), delta(whole)],
        vec![delta("one "), answer(whole), result("success", json!([])), delta("one ")],
    ];
    for events in ways {
        assert_eq!(Case::new().text(events.clone(), "agent_message_chunk"), whole, "{events:?}");
    }
    let blocks = json!([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let thought = json!({"type": "message.thinking_delta", "index": 0, "text": "h"});
    let events = [thought, delta("a"), message("assistant_message", blocks)];
    assert_eq!(Case::new().text(events.clone(), "agent_message_chunk"), "ab");
    assert_eq!(Case::new().text(events, "agent_thought_chunk"), "hm");
    // What was shown cannot be changed, so that other text is another message.
    let mut case = Case::new();
    let first = case.map(delta("other"))[0]["messageId"].clone();
    let restated = case.map(answer("new"));
    assert_ne!(restated[0]["messageId"], first);
}

#[test]
fn discarded_answer_is_named_and_not_merged_with_the_next() {
    let mut case = Case::new();
    case.map(delta("half"));
    let note = case.map(json!({"type": "message.tombstone", "reason": "model_switched"}));
    assert!(note[0]["content"]["text"].as_str().expect("text").contains("does not count"), "{note:?}");
    assert_ne!(note[0]["messageId"], ITEM);
    assert_eq!(
        Case::new().map(json!({"type": "message.tombstone", "reason": "output_limit"})),
        Vec::<Value>::new()
    );
}

#[test]
fn input_is_shown_as_typed_unless_the_editor_sent_it() {
    let content = json!([{"type": "text", "text": "typed"}, {"type": "text", "text": "added by a hook"}]);
    let input = message("user_message", content);
    assert_eq!(Case::new().text([input.clone()], "user_message_chunk"), "typed");
    assert_eq!(Case::new().map_from(input, InputOrigin::ThisClient), Vec::<Value>::new());
    let command = json!({"type": "command.completed", "name": "mode", "arguments": "plan", "text": "done"});
    assert_eq!(Case::new().text([command.clone()], "user_message_chunk"), "/mode plan");
    let own = Case::new().map_from(command, InputOrigin::ThisClient);
    assert_eq!((own.len(), &own[0]["content"]["text"]), (1, &json!("done")));
    assert_eq!(Case::new().map(message("notice", json!([]))), Vec::<Value>::new(), "a text for the model");
}

#[test]
fn every_call_has_exactly_one_end() {
    for status in ["completed", "failed", "denied", "cancelled", "unknown"] {
        let mut case = Case::new();
        let first = case.map(requested("Bash", json!({"command": "x"})));
        assert_eq!((&first[0]["status"], &first[0]["kind"]), (&json!("pending"), &json!("execute")));
        assert_eq!(case.map(started())[0]["status"], "in_progress");
        let end = case.map(completed(status, "out"));
        let expected = if status == "completed" { "completed" } else { "failed" };
        assert_eq!(end[0]["status"], expected);
        assert_eq!(case.map(result("success", json!([]))), Vec::<Value>::new(), "{status}");
    }
    let mut case = Case::new();
    case.map(requested("Bash", json!({"command": "x"})));
    let end = case.map(result("aborted", json!([])));
    assert_eq!((end.len(), &end[0]["status"]), (1, &json!("failed")));
}

#[test]
fn output_is_shown_while_command_runs_and_stays_short() {
    let mut case = Case::new();
    case.map(requested("Bash", json!({"command": "x"})));
    case.map(started());
    let progress =
        |text: &str| json!({"type": "tool.progress", "call_id": CALL, "stream": "stdout", "text": text});
    let shown = case.map(progress("```\nfirst\n"));
    assert!(
        shown[0]["content"][0]["content"]["text"].as_str().expect("text").starts_with("````\n"),
        "{shown:?}"
    );
    let mut last = Vec::new();
    for _ in 0..100 {
        last = case.map(progress(&"é".repeat(500)));
    }
    assert!(last[0].to_string().len() < 20_000);
    case.map(completed("completed", "all"));
    assert_eq!(case.map(progress("from the background")), Vec::<Value>::new());

    let mut case = Case::with(Features { terminal_output: true, ..Features::default() });
    case.map(requested("Bash", json!({"command": "x"})));
    let begun = case.map(started());
    assert_eq!(begun[0]["content"], json!([{"type": "terminal", "terminalId": CALL}]));
    assert_eq!(begun[0]["_meta"]["terminal_info"], json!({"terminal_id": CALL, "cwd": "/w"}));
    assert_eq!(case.map(progress("a"))[0]["_meta"]["terminal_output"]["data"], "a");
    let end = case.map(completed("failed", "a"));
    assert_eq!(end[0]["_meta"]["terminal_exit"]["exit_code"], 3);
    assert_eq!(end[0]["_meta"]["terminal_output"], Value::Null, "the output is there already");
}

#[test]
fn version_two_takes_text_back_and_follows_background_commands() {
    let features = Features { version: Version::V2, terminal_output: true, ..Features::default() };
    let mut case = Case::with(features);
    case.map(delta("half"));
    let taken = case.map(json!({"type": "message.tombstone", "reason": "model_switched"}));
    assert_eq!(taken, [json!({"sessionUpdate": "agent_message", "messageId": ITEM, "content": []})]);
    case.map(delta("other"));
    let restated = case.map(message("assistant_message", json!([{"type": "text", "text": "new"}])));
    assert_eq!(restated[0]["content"], json!([{"type": "text", "text": "new"}]));

    let mut case = Case::with(features);
    let background = |state: &str| json!({"type": "tool.background", "call_id": CALL, "bash_id": "bash_1", "state": state});
    let progress = json!({"type": "tool.progress", "call_id": CALL, "stream": "stdout", "text": "later"});
    case.map(requested("Bash", json!({"command": "x"})));
    case.map(started());
    case.map(background("running"));
    let end = case.map(completed("completed", "it runs"));
    assert_eq!(end[0]["_meta"]["terminal_exit"], Value::Null, "its command runs");
    assert_eq!(case.map(progress.clone())[0]["_meta"]["terminal_output"]["data"], "later");
    let mut over = background("exited");
    over["output_bytes"] = 5.into();
    over["duration_ms"] = 1.into();
    over["exit_code"] = 2.into();
    assert_eq!(case.map(over)[0]["_meta"]["terminal_exit"]["exit_code"], 2);
    assert_eq!(case.map(progress), Vec::<Value>::new());
}

#[test]
fn state_is_told_once_for_each_change() {
    let status = |state: &str| json!({"type": "session.status", "state": state});
    let events = || {
        [
            json!({"type": "turn.started"}),
            status("running"),
            status("requires_action"),
            status("running"),
            result("llm_error", json!([{"kind": "server", "message": "it is down"}])),
            status("idle"),
            json!({"type": "command.completed", "name": "mode", "arguments": "plan", "text": "done"}),
        ]
    };
    let mut case = Case::with(Features { version: Version::V2, ..Features::default() });
    let updates: Vec<Value> = events().into_iter().flat_map(|event| case.map(event)).collect();
    let states: Vec<&Value> =
        updates.iter().map(|update| &update["state"]).filter(|it| !it.is_null()).collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle", "running", "idle"]);
    let failed = updates.iter().find(|update| update["stopReason"] == "error").expect("the end of the turn");
    assert_eq!(failed["error"]["message"], "it is down");
    let mut case = Case::new();
    let updates: Vec<Value> = events().into_iter().flat_map(|event| case.map(event)).collect();
    assert!(updates.iter().all(|update| update["sessionUpdate"] != "state_update"), "{updates:?}");
}

#[test]
fn changed_file_is_shown_as_diff_at_the_end() {
    let mut case = Case::new();
    case.map(requested("Edit", json!({"file_path": "/w/f"})));
    case.map(json!({"type": "file.changed", "call_id": CALL, "path": "/w/f", "added": 1, "removed": 1,
        "diff": "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"}));
    let end = case.map(completed("completed", "edited"));
    let diff = json!({"type": "diff", "path": "/w/f", "oldText": "x\n", "newText": "y\n"});
    assert_eq!(end[0]["content"], json!([diff]));
}

#[test]
fn notices_need_the_capability_except_failed_servers() {
    let notices = Features { notices: true, compaction: true, ..Features::default() };
    let events = [
        json!({"type": "notice", "kind": "k", "text": "t"}),
        json!({"type": "retry", "attempt": 1, "max": 3, "delay_ms": 1500, "reason": "r"}),
        json!({"type": "model.switched", "from": "a/b", "to": "c/d", "reason": "overloaded"}),
        json!({"type": "compact.started", "stage": "autocompact", "trigger": "auto", "tokens_before": 9}),
    ];
    for event in events {
        assert_eq!(Case::new().map(event.clone()), Vec::<Value>::new(), "{event}");
        let kind = Case::with(notices).map(event)[0]["sessionUpdate"].clone();
        assert!(kind == "notice" || kind == "compaction_update", "{kind}");
    }
    let failed = json!({"type": "mcp.status", "server": "s", "state": "failed", "error": "no program"});
    assert!(Case::new().text([failed.clone()], "agent_message_chunk").contains("no program"));
    assert_eq!(Case::with(notices).map(failed)[0]["severity"], "error");
    let mut case = Case::with(notices);
    let id = case.map(
        json!({"type": "compact.started", "stage": "autocompact", "trigger": "auto", "tokens_before": 9}),
    )[0]["compactionId"]
        .clone();
    let end = case.map(json!({"type": "compact.completed", "stage": "autocompact", "trigger": "auto",
        "tokens_before": 9, "tokens_after": 3}));
    assert_eq!((&end[0]["compactionId"], &end[0]["status"]), (&id, &json!("completed")));
}

#[test]
fn usage_is_the_last_request_and_cost_a_sum() {
    let answered = |tokens: u64, cost: Value, window: Value| {
        let mut event = answer("x");
        event["usage"] = json!({"input_tokens": tokens, "output_tokens": 1});
        event["cost_usd_micros"] = cost;
        event["model_snapshot"] = json!({ "context_window": window });
        event
    };
    let mut case = Case::new();
    let usage =
        |updates: Vec<Value>| updates.into_iter().find(|update| update["sessionUpdate"] == "usage_update");
    assert_eq!(usage(case.map(answered(9, json!(500_000), Value::Null))), None, "the window is not known");
    let shown = usage(case.map(answered(20, json!(1_000_000), json!(100)))).expect("usage");
    assert_eq!((&shown["used"], &shown["size"]), (&json!(21), &json!(100)));
    assert_eq!(shown["cost"], json!({"amount": 1.5, "currency": "USD"}));
    let shown = usage(case.map(answered(30, Value::Null, json!(100)))).expect("usage");
    assert_eq!((&shown["used"], &shown["cost"]), (&json!(31), &Value::Null), "a price is not known");
}

#[test]
fn failed_turn_of_another_client_is_told() {
    let failed = || result("llm_error", json!([{"kind": "server", "message": "the provider is down"}]));
    assert!(Case::new().text([failed()], "agent_message_chunk").contains("the provider is down"));
    assert_eq!(Case::new().map_from(failed(), InputOrigin::ThisClient), Vec::<Value>::new());
    assert_eq!(Case::new().map(result("aborted", json!([]))), Vec::<Value>::new());
}

#[test]
fn request_of_sub_agent_is_a_call_with_an_end() {
    let request = |kind: &str| {
        json!({"type": kind, "request_id": "perm_0190f2a4-0000-7000-8000-000000000004", "call_id": CALL,
            "child_session_id": SESSION, "tool": "Bash", "input": {"command": "make"}, "summary": "make",
            "subject": {"kind": "bash", "command": "make"}, "reason": "r", "suggestions": [], "read_only": false,
            "decision": "deny", "scope": "once", "by": "answer"})
    };
    let mut case = Case::new();
    let shown = case.map(request("permission.requested"));
    assert_eq!(shown[0]["title"], "Sub-agent: make");
    let end = case.map(request("permission.resolved"));
    assert_eq!((&end[0]["toolCallId"], &end[0]["status"]), (&shown[0]["toolCallId"], &json!("failed")));
}

#[test]
fn changed_settings_are_sent_once() {
    let mut case = Case::new();
    let updates = case.map(json!({"type": "session.updated", "mode": "plan", "title": "new"}));
    let kinds: Vec<&Value> = updates.iter().map(|update| &update["sessionUpdate"]).collect();
    assert_eq!(kinds, ["current_mode_update", "config_option_update", "session_info_update"]);
    assert_eq!(updates[2]["updatedAt"], "2026-11-21T00:00:00Z");
    assert_eq!(case.map(json!({"type": "session.updated", "mode": "plan"})), Vec::<Value>::new());
    assert_eq!(iso_time(Timestamp(1_795_219_200_000 + 54_359_999)), "2026-11-21T15:05:59Z");
}
