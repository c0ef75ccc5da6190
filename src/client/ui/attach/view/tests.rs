//! Screens as users see them, at 80×24 and 120×40. `AGENTD_BLESS=1` writes the files again.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::wire::ReceivedEvent;
use crate::fake_daemon::{CALL, ITEM, SESSION, TURN, permission_requested, text_delta, turn_completed};
use crate::resolve_id::sample;
use crate::terminal::style::StyledLine;
use crate::ui::attach::app::{App, ClientSetup};
use crate::ui::attach::view::view;
use crate::ui::screen_files::{SIZES, check_lines};
use types::session::SessionView;
use types::time::Timestamp;

/// The wall clock of all screens, in milliseconds.
const NOW: i64 = 20_000;

fn app(columns: usize, rows: usize) -> App {
    let session: SessionView = serde_json::from_value(sample(SESSION, "fix login")).expect("a session");
    let mut app =
        App::new(SessionView { number: 12, cwd: "/w/shop".into(), ..session }, ClientSetup::default());
    app.set_environment((columns, rows), Timestamp(NOW));
    app.progress.context = Some((12_000, Some(200_000)));
    app.progress.usd_micros = Some(40_000);
    app
}

fn feed(app: &mut App, at_ms: i64, body: Value) {
    let mut event =
        json!({"seq": 9, "session_id": SESSION, "turn_id": TURN, "item_id": ITEM, "at_ms": at_ms});
    event.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    let raw = RawValue::from_string(event.to_string()).expect("json");
    app.on_event(&ReceivedEvent::parse(&raw).expect("an event"));
}

fn state(app: &mut App, state: &str) {
    feed(app, 6_000, json!({"type": "session.status", "state": state, "requires": null}));
    feed(app, 6_000, json!({"type": "turn.phase", "phase": "model_call"}));
}

fn add_user_message(app: &mut App, text: &str) {
    feed(
        app,
        5_000,
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN, "kind": "user_message",
            "status": "completed", "first_seq": 1, "last_seq": 2, "text": text}}),
    );
}

/// Advances the time until a request accepts keys.
fn wait_until_answerable(app: &mut App) -> Instant {
    let start = Instant::now();
    app.update(start);
    app.update(start + Duration::from_secs(2));
    start + Duration::from_secs(2)
}

/// The end of the scrollback and the view below it, on a terminal of this size.
fn screen(app: &mut App) -> Vec<String> {
    let mut lines: Vec<String> = app.take_history().iter().map(StyledLine::plain).collect();
    lines.extend(view(app).rows.iter().map(StyledLine::plain));
    lines.split_off(lines.len().saturating_sub(app.rows))
}

/// Compares a screen at both sizes with its file.
fn check(name: &str, prepare: impl Fn(&mut App)) {
    for (columns, rows) in SIZES {
        let mut app = app(columns, rows);
        prepare(&mut app);
        check_lines(name, (columns, rows), &screen(&mut app));
    }
}

const ANSWER: &str = "# Why load fails\n\nThe loader panics on a missing file, see `src/lib.rs:3`. Return the error, so \
                      that the caller can decide:\n1. Return `io::Result<String>` instead of calling unwrap()\n2. \
                      Handle it in main\n   - print the path\n\n```rust\nfn load(path: &str) -> \
                      std::io::Result<String> {\n    std::fs::read_to_string(path)\n}\n```\n\n| file | change | lines \
                      |\n|---|---|--:|\n| src/lib.rs | return the error | 3 |\n";

fn call(app: &mut App, tool: &str, input: Value, output: &str, more: Value) {
    feed(app, 6_000, json!({"type": "tool.requested", "call_id": CALL, "tool": tool, "input": input}));
    let mut ended = json!({"type": "tool.completed", "call_id": CALL, "tool": tool, "status": "completed",
        "output": output, "duration_ms": 120});
    ended.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    feed(app, 7_000, ended);
}

#[test]
fn streaming_markdown_screen_matches_fixture() {
    check("markdown", |app| {
        add_user_message(app, "the tests fail; find out why");
        state(app, "running");
        call(app, "Read", json!({"file_path": "src/lib.rs"}), "x", json!({}));
        call(app, "Read", json!({"file_path": "src/main.rs"}), "x", json!({}));
        call(app, "Grep", json!({"pattern": "unwrap"}), "x", json!({"detail": {"matches": 4}}));
        let output = (1..=44).map(|n| format!("line {n} of the test\n")).collect::<String>();
        let failed = json!({"status": "failed", "detail": {"exit_code": 101}, "duration_ms": 8_100});
        call(app, "Bash", json!({"command": "cargo test --lib"}), &output, failed);
        feed(app, 9_000, text_delta(ANSWER));
    });
}

const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -2,4 +2,4 @@\n \n-fn load(path: &str) -> String {\n-    \
                    std::fs::read_to_string(path).unwrap()\n+fn load(path: &str) -> std::io::Result<String> {\n+    \
                    std::fs::read_to_string(path)\n }\n";

fn edit_request() -> Value {
    let mut request = permission_requested();
    let body = json!({"tool": "Edit", "input": {"file_path": "src/lib.rs", "old_string": "a", "new_string": "b"},
        "diff": DIFF, "reason": "the call changes a file", "suggestions": ["Edit(src/lib.rs)", "Edit(src/**)"],
        "cwd": "/w/shop", "subject": {"kind": "edit", "path": {"path": "/w/shop/src/lib.rs", "in_workspace": true,
        "sensitivity": "ordinary"}}});
    request.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    request
}

#[test]
fn edit_request_screen_matches_fixture() {
    check("request", |app| {
        add_user_message(app, "return the error");
        state(app, "requires_action");
        feed(app, 16_000, edit_request());
        wait_until_answerable(app);
    });
}

#[test]
fn several_requests_screen_matches_fixture() {
    check("requests", |app| {
        state(app, "requires_action");
        for (nth, command) in ["cargo publish --dry-run", "touch a2", "touch a3"].iter().enumerate() {
            let mut request = permission_requested();
            request["request_id"] = json!(format!("perm_0190f2a4-0000-7000-8000-00000000000{nth}"));
            request["call_id"] = json!(format!("call_0190f2a4-0000-7000-8000-00000000000{nth}"));
            request["input"] = json!({"command": command});
            request["subject"] = json!({"kind": "bash", "command": command});
            request["suggestions"] = json!([format!("Bash({command})")]);
            feed(app, 11_000, request);
        }
        wait_until_answerable(app);
    });
}

#[test]
fn queue_screen_matches_fixture() {
    check("queue", |app| {
        add_user_message(app, "run the tests");
        state(app, "running");
        feed(app, 7_000, json!({"type": "turn.phase", "phase": "tool_execution"}));
        feed(
            app,
            8_000,
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "cargo test"}}),
        );
        let prepared = json!({"call_id": CALL, "tool": "Bash", "allowed_by": "rule", "read_only": false,
            "type": "tool.started"});
        feed(app, 8_000, prepared);
        feed(
            app,
            9_000,
            json!({"type": "tool.progress", "call_id": CALL, "stream": "stdout", "text": "test store::reopen ... ok\n"}),
        );
        feed(
            app,
            9_000,
            json!({"type": "todo.updated", "todos": [
            {"content": "Read it", "status": "completed"},
            {"content": "Fix it", "status": "in_progress", "active_form": "Fixing it"},
            {"content": "Test it", "status": "pending"}]}),
        );
        feed(
            app,
            9_000,
            json!({"type": "turn.steered", "input": [{"type": "text", "text": "use io::Error, not anyhow"}]}),
        );
        feed(
            app,
            9_000,
            json!({"type": "turn.queued", "input": [{"type": "text", "text": "then write the changelog"}]}),
        );
    });
}

#[test]
fn approved_edit_and_end_of_turn_match_fixture() {
    check("approved", |app| {
        add_user_message(app, "return the error");
        feed(
            app,
            6_000,
            json!({"type": "tool.requested", "call_id": CALL, "tool": "Edit", "input": {"file_path": "src/lib.rs"}}),
        );
        feed(app, 6_000, edit_request());
        feed(
            app,
            7_000,
            json!({"type": "permission.resolved", "request_id": crate::fake_daemon::ASK, "call_id": CALL,
            "decision": "allow", "scope": "once", "by": "answer", "origin": {"client": "agentctl", "uid": 0}}),
        );
        feed(
            app,
            8_000,
            json!({"type": "file.changed", "call_id": CALL, "path": "/w/shop/src/lib.rs", "added": 2, "removed": 2, "diff": DIFF}),
        );
        feed(
            app,
            8_000,
            json!({"type": "tool.completed", "call_id": CALL, "tool": "Edit", "status": "completed",
            "output": "done", "duration_ms": 3}),
        );
        feed(app, 9_000, turn_completed("success"));
    });
}

#[test]
fn narrow_terminal_stays_readable() {
    let mut app = app(20, 12);
    state(&mut app, "requires_action");
    feed(&mut app, 16_000, edit_request());
    let now = wait_until_answerable(&mut app);
    feed(&mut app, 9_000, text_delta(ANSWER));
    for code in [KeyCode::Char('?'), KeyCode::Esc, KeyCode::Char('x')] {
        app.on_input(&Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), now);
        let shown = view(&app);
        assert!(shown.rows.len() < 12, "{}", shown.rows.len());
        assert!(
            shown.rows.iter().all(|row| row.width() <= 20),
            "{:#?}",
            shown.rows.iter().map(StyledLine::plain).collect::<Vec<_>>()
        );
        assert!(shown.cursor.0 < shown.rows.len());
    }
}

#[test]
fn plan_screen_matches_fixture() {
    let plan = "# Return the error\n\n`load` panics on a missing file.\n\n1. Change `src/lib.rs`:\n\n   ```rust\n   fn \
                load(path: &str) -> io::Result<String>\n   ```\n\n2. Handle it in **main**\n\n| file | lines \
                |\n|---|--:|\n| src/lib.rs | 3 |\n";
    check("plan", |app| {
        add_user_message(app, "return the error");
        state(app, "requires_action");
        let mut request = permission_requested();
        (request["kind"], request["tool"]) = (json!("plan"), json!("ExitPlanMode"));
        (request["input"], request["suggestions"]) = (json!({"plan": plan}), json!([]));
        feed(app, 16_000, request);
        wait_until_answerable(app);
    });
}

#[test]
fn question_screen_matches_fixture() {
    let questions = json!([
        {"question": "Which error type should `load` return?", "header": "Error type", "options": [
            {"label": "io::Error", "description": "the caller sees the file system's own error, without a new type"},
            {"label": "a type of its own", "description": "names the path, but every caller must know it, and the crate \
             gets one more public type that it has to keep"}]},
        {"question": "Which files may change?", "multi_select": true, "options": [{"label": "src"}, {"label": "tests"}]},
    ]);
    check("question", |app| {
        add_user_message(app, "return the error");
        state(app, "requires_action");
        feed(
            app,
            16_000,
            json!({"type": "question.requested", "request_id": "ask_0190f2a4-0000-7000-8000-000000000009",
                "kind": "question", "text": "Which?", "tool": "AskUser", "options": [], "questions": questions}),
        );
        wait_until_answerable(app);
    });
}
