//! Tests of the transcript, with events as received on the wire.

use serde_json::{Value, json};

use crate::ui::render::*;

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
fn render_events(transcript: &mut Transcript, events: &[Value]) -> String {
    let mut paper = String::new();
    for body in events {
        for piece in transcript.render_event(&event(body.clone())) {
            match piece {
                OutputPiece::Text(text) => paper.push_str(&text),
                OutputPiece::Break if paper.is_empty() || paper.ends_with('\n') => {}
                OutputPiece::Break => paper.push('\n'),
                OutputPiece::Line(line) => {
                    paper.push_str(&line.plain());
                    paper.push('\n');
                }
                OutputPiece::Folded { shown, .. } => {
                    for line in shown {
                        paper.push_str(&line.plain());
                        paper.push('\n');
                    }
                }
            }
        }
    }
    paper
}

const CALL: &str = "call_0190f2a4-0000-7000-8000-000000000003";
const ASK: &str = "perm_0190f2a4-0000-7000-8000-000000000004";

fn check(events: &[Value], expected: &str) {
    assert_eq!(render_events(&mut Transcript::with_input(), events), expected);
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
    let message = item("user_message", "completed", "first\nsecond");
    check(std::slice::from_ref(&message), "› first\n  second\n");
    assert_eq!(render_events(&mut Transcript::default(), &[message]), "");
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
        "I look.\n● Bash sh test.sh · failed  1.5 s\n  │ expected a\n  └ exit code 1\n",
    );
}

#[test]
fn consecutive_reads_are_one_line_with_names() {
    let requested = |call: &str, tool: &str, input: Value| json!({"type": "tool.requested", "call_id": call, "tool": tool, "input": input});
    let done = |call: &str, tool: &str, detail: Value| {
        json!({"type": "tool.completed", "call_id": call, "tool": tool, "status": "completed",
               "output": "text", "detail": detail, "duration_ms": 120})
    };
    let second = CALL.replace("0003", "0009");
    let file = |path: &str| json!({"file_path": path});
    check(
        &[
            requested(CALL, "Read", file("a")),
            requested(&second, "Read", file("b")),
            done(&second, "Read", Value::Null),
            done(CALL, "Read", Value::Null),
            requested(CALL, "Grep", json!({"pattern": "unwrap"})),
            done(CALL, "Grep", json!({"matches": 4})),
            json!({"type": "message.text_delta", "index": 0, "text": "Found."}),
        ],
        "● Read b, a · Grep unwrap (4 hits)  360 ms\nFound.",
    );
}

#[test]
fn output_shows_its_end_and_counts_what_is_hidden() {
    let output = (1..=60).map(|n| format!("line {n}\n")).collect::<String>();
    let ended = |status: &str, code: i64| {
        [
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "make"}}),
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": status,
                   "output": output, "detail": {"exit_code": code}, "duration_ms": 8100}),
        ]
    };
    check(
        &ended("completed", 0),
        "● Bash make  8.1 s\n  │ line 58\n  │ line 59\n  │ line 60\n  └ + 57 lines\n",
    );
    let mut transcript = Transcript::default().with_pager();
    let shown = render_events(&mut transcript, &ended("failed", 101));
    assert!(shown.starts_with("● Bash make · exit 101  8.1 s\n  │ line 53\n"), "{shown}");
    assert!(shown.ends_with("  │ line 60\n  └ + 52 lines · Ctrl-O\n"), "{shown}");
}

#[test]
fn approved_edit_keeps_its_diff_and_its_answer() {
    let change = json!({"type": "file.changed", "call_id": CALL, "path": "/w/a", "added": 1, "removed": 1,
                        "diff": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"});
    check(
        &[
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Edit", "input": {"file_path": "a"}}),
            json!({"type": "permission.resolved", "request_id": ASK, "call_id": CALL, "decision": "allow",
                   "scope": "once", "by": "answer", "origin": {"client": "agentctl", "uid": 0}}),
            change,
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Edit", "status": "completed",
                   "output": "done", "duration_ms": 3}),
        ],
        "● Edit a +1 −1\n  └ allowed once by you\n    1 -a\n    1 +b\n",
    );
}

#[test]
fn change_of_call_that_began_earlier_follows_its_line() {
    let request = json!({"type": "permission.requested", "request_id": ASK, "call_id": CALL, "tool": "Edit",
        "input": {"file_path": "a"}, "summary": "edit a", "subject": {"kind": "bash", "command": "x"},
        "reason": "asks", "suggestions": [], "read_only": false});
    let change = json!({"type": "file.changed", "call_id": CALL, "path": "/w/a", "added": 1, "removed": 1,
                        "diff": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"});
    let completed = json!({"type": "tool.completed", "call_id": CALL, "tool": "Edit", "status": "completed",
                           "output": "done", "duration_ms": 3});
    check(&[change.clone(), completed.clone()], "● Edit /w/a +1 −1\n    1 -a\n    1 +b\n");
    check(&[request, change, completed], "● Edit a +1 −1\n    1 -a\n    1 +b\n");
}

#[test]
fn words_for_the_model_are_not_shown_to_the_user() {
    check(
        &[
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "make"}}),
            json!({"type": "permission.resolved", "request_id": ASK, "call_id": CALL, "decision": "deny",
                   "scope": "once", "feedback": "use ninja", "by": "answer", "origin": {"client": "agentctl", "uid": 0}}),
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "denied",
                   "output": "The user denied it. Do not repeat it.", "duration_ms": 0}),
        ],
        "● Bash make · denied\n  └ denied by you: use ninja\n",
    );
}

#[test]
fn permission_answer_names_answering_client() {
    let request = json!({"type": "permission.requested", "request_id": ASK, "call_id": CALL, "tool": "Bash",
        "input": {"command": "make"}, "summary": "run make", "subject": {"kind": "bash", "command": "make"},
        "reason": "asks", "suggestions": ["Bash(make)"], "read_only": false});
    let answered = |more: Value| {
        let mut body = json!({"type": "permission.resolved", "request_id": ASK, "call_id": CALL,
            "decision": "allow", "scope": "once", "by": "answer", "origin": {"client": "nvim\n", "uid": 0}});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    check(&[request.clone(), answered(json!({}))], "  └ Bash make allowed once by nvim⟦LF⟧\n");
    check(
        &[request.clone(), answered(json!({"scope": "session", "grant": "Bash(make)"}))],
        "  └ Bash make allowed for the session: Bash(make) by nvim⟦LF⟧\n",
    );
    check(
        &[request.clone(), answered(json!({"decision": "deny", "feedback": "use ninja"}))],
        "  └ Bash make denied by nvim⟦LF⟧: use ninja\n",
    );
    // The client is only the one that could not ask.
    for by in ["no_approver", "timeout"] {
        let origin = json!({"client": "agentctl", "uid": 0});
        check(
            &[request.clone(), answered(json!({"decision": "deny", "by": by, "origin": origin}))],
            "  └ Bash make denied for want of an answer\n",
        );
    }
    check(
        &[request, answered(json!({"decision": "deny", "by": "abort", "origin": null}))],
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
        "  no_key: set ANTHROPIC_API_KEY\n■ failed: no key or model is configured · 2.3 s · 2 model calls · 1.2k tokens · cost unknown\n",
    );
    check(&[result("success", json!([]))], "─ done · 2.3 s · 2 model calls · 1.2k tokens · cost unknown\n");
    let mut waited = result("success", json!([]));
    (waited["result"]["duration_ms"], waited["result"]["permission_ms"]) = (json!(648_000), json!(645_000));
    check(
        &[waited],
        "─ done · 3.0 s (+10 min 45 s waiting for you) · 2 model calls · 1.2k tokens · cost unknown\n",
    );
    let stopping = json!({"type": "turn.aborting", "origin": {"client": "agentctl", "uid": 0}});
    check(
        &[stopping, result("aborted", json!([]))],
        "  stopping…\n■ stopped by you · 2.3 s · 2 model calls · 1.2k tokens · cost unknown\n",
    );
    check(
        &[result("llm_error", json!([{"kind": "no_key", "message": "set ANTHROPIC_API_KEY"}]))],
        "  no_key: set ANTHROPIC_API_KEY\n■ failed: no key or model is configured · 2.3 s · 2 model calls · 1.2k tokens · cost unknown\n",
    );
}

#[test]
fn facts_of_command_are_aligned_in_view_with_pager() {
    let status = json!({"type": "command.completed", "name": "status", "arguments": "",
        "text": "State: idle\nTokens: 5"});
    let shown = render_events(&mut Transcript::default().with_pager(), &[status]);
    assert_eq!(shown, "  State   idle\n  Tokens  5\n");
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
    let text_delta = json!({"type": "message.text_delta", "index": 1, "text": "Yes."});
    let shown = "  ┊ Is it?\n  ┊ It is.\nYes.\n";
    // The output is the same while the thinking streams, and for a client that attaches later and gets the
    // complete text.
    check(&[thought("Is "), thought("it?\n\nIt is."), text_delta, completed.clone()], shown);
    check(&[completed], shown);
}

fn retry(attempt: u32, reason: &str) -> Value {
    json!({"type": "retry", "attempt": attempt, "max": 10, "delay_ms": 2_000, "reason": reason, "kind": "overloaded"})
}

#[test]
fn failed_attempts_are_one_line_that_counts() {
    let heartbeat = json!({"type": "heartbeat", "reason": "overloaded", "attempt": 1, "remaining_ms": 1_000});
    let failed = |count: u32| -> Vec<Value> {
        (1..=count).flat_map(|attempt| [retry(attempt, "overloaded"), heartbeat.clone()]).collect()
    };
    let answer = item("assistant_message", "completed", "Hi");
    let cases = [
        (
            1,
            "  one attempt failed: overloaded\nHi\n",
            "  attempt 1 of 10 failed, next in 2.0 s: overloaded\nHi\n",
        ),
        (
            9,
            "  9 attempts failed: overloaded\nHi\n",
            "  attempt 1 of 10 failed, next in 2.0 s: overloaded\n  9 attempts failed: overloaded\nHi\n",
        ),
    ];
    for (count, repainted, printed) in cases {
        let events = [failed(count), vec![answer.clone()]].concat();
        assert_eq!(render_events(&mut Transcript::default().with_pager(), &events), repainted);
        check(&events, printed);
    }
    let error = json!({"type": "error", "kind": "overloaded", "message": "overloaded (tried 10 times)"});
    let ended = render_events(&mut Transcript::default().with_pager(), &[failed(9), vec![error]].concat());
    assert_eq!(ended, "  overloaded: overloaded (tried 10 times)\n", "the reason is shown once");
    let mut transcript = Transcript::default().with_pager();
    render_events(&mut transcript, &failed(4));
    let line = transcript.retry_line().map(|line| line.plain());
    assert_eq!(line.as_deref(), Some("  attempt 4 of 10 failed, next in 2.0 s: overloaded"));
    render_events(&mut transcript, &[json!({"type": "message.text_delta", "index": 0, "text": "H"})]);
    assert_eq!(transcript.retry_line(), None, "the model answers");
    check(
        &[retry(1, "no route"), retry(2, "overloaded"), answer],
        "  attempt 1 of 10 failed, next in 2.0 s: no route\n  attempt 2 of 10 failed, next in 2.0 s: overloaded\n  \
         2 attempts failed: overloaded\nHi\n",
    );
}

#[test]
fn own_shell_command_in_an_input_is_one_line() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let command = "I ran this command myself: `cargo test` (exit code 1). Its output:\n```\nfailed\n```";
    let cases = [
        (vec![text(command), text("fix it")], "› ! cargo test (exit code 1)\n  fix it\n"),
        // The daemon joins texts.
        (vec![text(&format!("{command}\nfix it"))], "› ! cargo test (exit code 1)\n  fix it\n"),
        (vec![text("one"), text("two")], "› one\n  two\n"),
        (vec![text("I ran this command myself: no")], "› I ran this command myself: no\n"),
    ];
    for (content, expected) in cases {
        let whole: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
        let mut message = item("user_message", "completed", &whole.join("\n"));
        message["item"]["content"] = json!(content);
        check(&[message], expected);
    }
}

#[test]
fn call_that_began_before_the_client_attached_is_named_by_its_request() {
    let request = json!({"type": "permission.requested", "request_id": ASK, "call_id": CALL, "tool": "Bash",
        "input": {"command": "make"}, "summary": "run make", "subject": {"kind": "bash", "command": "make"},
        "reason": "asks", "suggestions": [], "read_only": false});
    let done = json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "completed",
        "output": "built\n", "duration_ms": 1});
    check(&[request, done.clone()], "● Bash make\n  └ built\n");
    check(&[done], "● Bash\n  └ built\n");
}
