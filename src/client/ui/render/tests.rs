//! Tests of the transcript, with events as received on the wire.

use serde_json::{Value, json};

use crate::client::ui::render::*;

fn event(body: Value) -> Envelope {
    let mut whole = json!({
        "seq": 1, "at_ms": 0,
        "session_id": "ses_0190f2a4-0000-7000-8000-000000000000",
        "turn_id": "turn_0190f2a4-0000-7000-8000-000000000001",
        "item_id": "item_0190f2a4-0000-7000-8000-000000000002",
    });
    whole.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    serde_json::from_value(whole).expect("an event")
}

fn item(kind: &str, status: &str, text: &str) -> Value {
    json!({"type": "message.completed", "item": {
        "item_id": "item_0190f2a4-0000-7000-8000-000000000002",
        "turn_id": "turn_0190f2a4-0000-7000-8000-000000000001",
        "kind": kind, "status": status, "first_seq": 1, "last_seq": 2, "text": text}})
}

/// The output after the events.
fn shown(transcript: &mut Transcript, events: &[Value]) -> String {
    let mut paper = String::new();
    for body in events {
        for piece in transcript.on(&event(body.clone())) {
            match piece {
                Piece::Text(text) => paper.push_str(&text),
                Piece::Break if paper.is_empty() || paper.ends_with('\n') => {}
                Piece::Break => paper.push('\n'),
                Piece::Line(line) => {
                    paper.push_str(&line.plain());
                    paper.push('\n');
                }
            }
        }
    }
    paper
}

const CALL: &str = "call_0190f2a4-0000-7000-8000-000000000003";
const ASK: &str = "perm_0190f2a4-0000-7000-8000-000000000004";

fn check(events: &[Value], expected: &str) {
    assert_eq!(shown(&mut Transcript::with_input(), events), expected);
}

#[test]
fn streamed_text_and_item_are_shown_once() {
    check(
        &[
            json!({"type": "message.text_delta", "index": 0, "text": "Hel"}),
            json!({"type": "message.text_delta", "index": 0, "text": "lo \u{1b}[1m"}),
            item("assistant_message", "completed", "Hello \u{1b}[1m there"),
        ],
        "Hello ⟦ESC⟧[1m there\n",
    );
    check(&[item("assistant_message", "completed", "whole")], "whole\n");
    check(
        &[
            json!({"type": "message.text_delta", "index": 0, "text": "par"}),
            item("assistant_message", "interrupted", "par"),
        ],
        "par\n  (the answer was cut short)\n",
    );
}

#[test]
fn user_input_is_shown_only_from_other_clients() {
    let said = item("user_message", "completed", "first\nsecond");
    check(std::slice::from_ref(&said), "› first\n  second\n");
    assert_eq!(shown(&mut Transcript::default(), &[said]), "");
}

#[test]
fn tool_call_is_shown_from_request_to_result() {
    check(
        &[
            json!({"type": "message.text_delta", "index": 0, "text": "I look."}),
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "sh test.sh"}}),
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "failed",
                   "output": "expected a\nexit code 1\n", "duration_ms": 1500}),
        ],
        "I look.\n● Bash sh test.sh\n  └ failed (1.5 s): expected a · exit code 1\n",
    );
}

#[test]
fn results_of_parallel_calls_name_their_call() {
    let second = CALL.replace("0003", "0009");
    let asked = |call: &str, path: &str| json!({"type": "tool.requested", "call_id": call, "tool": "Read", "input": {"file_path": path}});
    let done = |call: &str| {
        json!({"type": "tool.completed", "call_id": call, "tool": "Read", "status": "completed",
               "output": "text", "duration_ms": 0})
    };
    check(
        &[asked(CALL, "a"), asked(&second, "b"), done(&second), done(CALL), asked(CALL, "c"), done(CALL)],
        "● Read a\n● Read b\n  └ Read b done\n  └ Read a done\n● Read c\n  └ done\n",
    );
}

#[test]
fn approved_diff_is_not_shown_again() {
    let changed = json!({"type": "file.changed", "call_id": CALL, "path": "/w/a", "added": 1, "removed": 1,
                         "diff": "@@ -1 +1 @@\n-a\n+b\n"});
    check(std::slice::from_ref(&changed), "  └ changed /w/a +1 −1\n    @@ -1 +1 @@\n    -a\n    +b\n");
    let mut transcript = Transcript::default();
    transcript.diff_was_shown(CALL.parse().expect("an id"));
    assert_eq!(shown(&mut transcript, &[changed]), "  └ changed /w/a +1 −1\n");
}

#[test]
fn permission_answer_names_answering_client() {
    let asked = json!({"type": "permission.requested", "request_id": ASK, "call_id": CALL, "tool": "Bash",
        "input": {"command": "make"}, "summary": "run make", "subject": {"kind": "bash", "command": "make"},
        "reason": "asks", "suggestions": ["Bash(make)"], "read_only": false});
    let answered = |more: Value| {
        let mut body = json!({"type": "permission.resolved", "request_id": ASK, "call_id": CALL,
            "decision": "allow", "scope": "once", "by": "answer", "origin": {"client": "nvim\n", "uid": 0}});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    check(&[asked.clone(), answered(json!({}))], "  └ Bash make allowed once by nvim⟦LF⟧\n");
    check(
        &[asked.clone(), answered(json!({"scope": "session", "grant": "Bash(make)"}))],
        "  └ Bash make allowed for the session: Bash(make) by nvim⟦LF⟧\n",
    );
    check(
        &[asked.clone(), answered(json!({"decision": "deny", "feedback": "use ninja"}))],
        "  └ Bash make denied by nvim⟦LF⟧: use ninja\n",
    );
    check(
        &[asked, answered(json!({"decision": "deny", "by": "abort", "origin": null}))],
        "  └ Bash make no longer asked\n",
    );
}

#[test]
fn turn_end_shows_result_and_cost() {
    let result = |subtype: &str, errors: Value| {
        json!({"type": "turn.completed", "result": {
            "subtype": subtype, "text": "", "stop_reason": null,
            "usage": {"input_tokens": 900, "output_tokens": 300}, "usage_by_model": {},
            "cost_usd_micros": null, "duration_ms": 2300, "model_ms": 1, "tools_ms": 1, "permission_ms": 0,
            "model_calls": 2, "permission_denials": [], "errors": errors}})
    };
    let error = json!({"type": "error", "kind": "no_key", "message": "set ANTHROPIC_API_KEY"});
    let ended = result("llm_error", json!([{"kind": "no_key", "message": "set ANTHROPIC_API_KEY"}]));
    check(
        &[error, ended],
        "  no_key: set ANTHROPIC_API_KEY\n─ llm error · 2.3 s · 2 model calls · 1.2k tokens · ?\n",
    );
    check(&[result("success", json!([]))], "─ done · 2.3 s · 2 model calls · 1.2k tokens · ?\n");
    check(
        &[result("llm_error", json!([{"kind": "no_key", "message": "set ANTHROPIC_API_KEY"}]))],
        "  no_key: set ANTHROPIC_API_KEY\n─ llm error · 2.3 s · 2 model calls · 1.2k tokens · ?\n",
    );
}

#[test]
fn technical_events_are_not_rendered() {
    check(
        &[
            json!({"type": "session.attached", "clients": 2}),
            json!({"type": "turn.phase", "phase": "model_call", "step": 1}),
            json!({"type": "session.status", "state": "running"}),
            json!({"type": "message.thinking_delta", "index": 0, "text": "hm"}),
        ],
        "",
    );
}

#[test]
fn thinking_is_shown_once_before_text() {
    let thought = |text: &str| json!({"type": "message.thinking_delta", "index": 0, "text": text});
    let mut completed = item("assistant_message", "completed", "Yes.");
    completed["item"]["content"] =
        json!([{"type": "thinking", "text": "Is it?\n\nIt is."}, {"type": "text", "text": "Yes."}]);
    let said = json!({"type": "message.text_delta", "index": 1, "text": "Yes."});
    let shown = "  ┊ Is it?\n  ┊ It is.\nYes.\n";
    // While it streams, and for a client that attaches later and gets the complete text.
    check(&[thought("Is "), thought("it?\n\nIt is."), said, completed.clone()], shown);
    check(&[completed], shown);
}
