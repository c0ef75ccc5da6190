//! Tests of the attach view without a terminal: events and keys in, screens and effects out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::fake::{ASK, ITEM, SESSION, TURN, asks, resolved, says};
use crate::client::resolve_id::sample;
use crate::client::ui::attach::app::*;
use crate::client::ui::attach::view::view;
use crate::types::permission::{Decision, Scope};

fn app() -> App {
    App::new(serde_json::from_value(sample(SESSION, "fix it")).expect("a session"), Vec::new())
}

fn feed_at(app: &mut App, body: Value, now: Instant) {
    let mut event = json!({"seq": 1, "session_id": SESSION, "turn_id": TURN, "item_id": ITEM, "at_ms": 0});
    event.as_object_mut().expect("an object").extend(body.as_object().expect("an object").clone());
    let raw = RawValue::from_string(event.to_string()).expect("json");
    app.on_event(&Received::parse(&raw).expect("an event"));
    app.update(now);
}

/// Handles an event long after the previous one; requests appear and accept keys.
fn feed(app: &mut App, body: Value) {
    let later = now();
    feed_at(app, body, later);
    app.update(later + PAUSE);
}

/// Longer than any delay of a request.
const PAUSE: Duration = Duration::from_secs(2);

/// A time after all earlier times.
fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    static PAUSES: AtomicU32 = AtomicU32::new(0);
    *START.get_or_init(Instant::now) + PAUSE * PAUSES.fetch_add(3, Ordering::Relaxed)
}

fn state(app: &mut App, state: &str) {
    feed(app, json!({"type": "session.status", "state": state, "requires": null}));
}

/// Types slowly; `^x` is Ctrl-X, `~` Alt-Enter.
fn keys(app: &mut App, typed: &str) -> Vec<Effect> {
    keys_with(app, typed, || {
        let later = now();
        (later, later + PAUSE)
    })
}

/// Types; each key comes at the second time, after updates at both times.
fn keys_with(app: &mut App, typed: &str, mut times: impl FnMut() -> (Instant, Instant)) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut chars = typed.chars();
    while let Some(c) = chars.next() {
        let key = match c {
            '\n' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
            '~' => KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
            '\u{1b}' => KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
            '^' => KeyEvent::new(KeyCode::Char(chars.next().expect("a letter")), KeyModifiers::CONTROL),
            c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
        };
        let (before, at) = times();
        app.update(before);
        app.update(at);
        effects.extend(app.on_input(&Input::Key(key), at));
    }
    effects
}

fn same(found: &[Effect], expected: &[Effect]) {
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}

fn rows(app: &App, columns: usize, height: usize) -> Vec<String> {
    view(app, columns, height).rows.iter().map(Line::plain).collect()
}

fn history(app: &mut App, columns: usize) -> Vec<String> {
    app.take_history(columns).iter().map(Line::plain).collect()
}

#[test]
fn finished_lines_move_to_history_and_last_line_grows() {
    let mut app = app();
    feed(&mut app, says("first\nsec"));
    feed(&mut app, says("ond"));
    assert_eq!(history(&mut app, 40), ["first"]);
    assert_eq!(
        rows(&app, 60, 24),
        [
            "second",
            "─ idle · 0190f2a4-0000 · fix it · demo/replay · default",
            "› ",
            "Enter sends · Alt-Enter new line · Ctrl-D detaches",
        ]
    );
    feed(
        &mut app,
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN,
        "kind": "assistant_message", "status": "completed", "first_seq": 1, "last_seq": 2, "text": "first\nsecond"}}),
    );
    assert_eq!(history(&mut app, 40), ["second"]);
    assert_eq!(app.tail, "");
}

#[test]
fn long_paragraph_keeps_only_its_end_in_viewport() {
    let mut app = app();
    feed(&mut app, says("one two three four five six seven eight"));
    assert_eq!(history(&mut app, 10), ["one two", "three four"]);
    assert_eq!(app.tail, "five six seven eight");
}

#[test]
fn single_key_answers_only_with_empty_input() {
    let check = |typed: &str, expected: Option<(Decision, Scope)>| {
        let mut app = app();
        feed(&mut app, asks());
        let found = keys(&mut app, typed).into_iter().find_map(|effect| match effect {
            Effect::Approve(params) => Some((params.decision.expect("a decision"), params.scope)),
            _ => None,
        });
        assert_eq!(found, expected, "{typed:?}");
    };
    check("y", Some((Decision::Allow, Scope::Once)));
    check("S\n", Some((Decision::Allow, Scope::Session)));
    check("p\n", Some((Decision::Allow, Scope::Project)));
    for unconfirmed in ["s", "p", "ss", "py", "p\u{1b}\n", "s^u\n"] {
        check(unconfirmed, None);
    }
    check("p\u{1b}y", Some((Decision::Allow, Scope::Once)));
    check("n", Some((Decision::Deny, Scope::Once)));
    check("hey", None);
    check("fbecause y\n", Some((Decision::Deny, Scope::Once)));
    check("f\u{1b}y", Some((Decision::Allow, Scope::Once)));
    let mut idle = app();
    same(&keys(&mut idle, "yes\n"), &[Effect::Submit("yes".into())]);
}

/// Types prose with 120 ms between two keys; the first key comes this long after the request.
fn prose_after(app: &mut App, typed: &str, mut at: Instant) -> Vec<Effect> {
    keys_with(app, typed, || {
        let before = at;
        at += Duration::from_millis(120);
        (before, before)
    })
}

#[test]
fn typed_prose_stays_a_draft_and_answers_no_request() {
    for first_key in [0, 200, 900, 1_300] {
        for prose in ["please be careful", "from b", "abc", "say yes"] {
            let mut app = app();
            let start = now();
            app.on_input(&Input::Key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)), start);
            feed_at(&mut app, asks(), start);
            let shown = |app: &App| rows(app, 60, 24).iter().any(|row| row.starts_with("▌ May Bash"));
            assert!(!shown(&app), "the user has just pressed a key");
            let effects = prose_after(&mut app, prose, start + Duration::from_millis(first_key));
            assert!(effects.is_empty(), "{prose:?}: {effects:?}");
            assert_eq!(app.editor.text(), prose, "typed {first_key} ms after the request");
            assert_eq!(shown(&app), first_key >= 1_000, "{first_key}");
            app.update(now());
            assert!(shown(&app) && app.editor.text() == prose, "it appears, and the draft stays");
        }
    }
}

#[test]
fn input_draft_is_restored_after_answer() {
    let mut app = app();
    keys(&mut app, "a draft");
    feed(&mut app, asks());
    assert!(rows(&app, 100, 24).iter().any(|row| row.starts_with("Esc puts your text aside")));
    let sent = keys(&mut app, "\u{1b}y");
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
    feed(&mut app, resolved("allow"));
    assert_eq!(app.editor.text(), "a draft");
}

#[test]
fn answer_key_before_prompt_is_active_is_dropped() {
    let mut app = app();
    let start = now();
    feed_at(&mut app, asks(), start);
    assert!(rows(&app, 60, 24).contains(&"▌ …".to_owned()), "shown, without its keys");
    assert!(prose_after(&mut app, "y", start + Duration::from_millis(100)).is_empty());
    app.update(start + PAUSE);
    assert!(app.editor.is_empty() && app.requests.len() == 1);
    let sent = prose_after(&mut app, "y", start + PAUSE);
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
}

#[test]
fn lasting_grant_requires_confirmation_and_shows_undo() {
    let mut app = app();
    feed(&mut app, asks());
    history(&mut app, 100);
    assert!(keys(&mut app, "s").is_empty());
    let shown = rows(&app, 100, 24);
    let asked = "▌ allow for the session: Bash(make)  Enter confirms  Esc goes back";
    assert!(shown.contains(&asked.to_owned()), "{shown:?}");
    assert!(matches!(keys(&mut app, "\n").as_slice(), [Effect::Approve(_)]));
    let mut answer = resolved("allow");
    (answer["scope"], answer["grant"]) = (json!("session"), json!("Bash(make)"));
    feed(&mut app, answer.clone());
    let undo = format!("agentctl rules rm --session {SESSION} 'Bash(make)'");
    assert_eq!(history(&mut app, 100).last(), Some(&undo));
    // The same event in a history is not an answer of this client.
    feed(&mut app, answer);
    assert!(!history(&mut app, 100).contains(&undo));
}

#[test]
fn abort_key_requires_confirmation_for_requests_and_questions() {
    let mut app = app();
    feed(&mut app, asks());
    assert!(keys(&mut app, "a").is_empty());
    same(&keys(&mut app, "\n"), &[Effect::Abort]);
    feed(
        &mut app,
        json!({"type": "question.requested", "request_id": "ask_0190f2a4-0000-7000-8000-000000000006",
            "kind": "unknown_outcome", "text": "Did it?", "tool": "Bash", "input": {"command": "make"},
            "options": ["continue", "abort"]}),
    );
    assert!(keys(&mut app, "a").is_empty());
    assert!(
        matches!(keys(&mut app, "\n").as_slice(), [Effect::Answer(params)] if params.choice.as_deref() == Some("abort"))
    );
}

#[test]
fn number_keys_choose_between_two_answers() {
    let mut app = app();
    let items = ["item_0190f2a4-0000-7000-8000-000000000001", "item_0190f2a4-0000-7000-8000-000000000002"];
    let request_id = "ask_0190f2a4-0000-7000-8000-000000000006";
    feed(&mut app, json!({"type": "feedback.request", "request_id": request_id, "item_ids": items}));
    let sent = keys(&mut app, "2");
    assert!(
        matches!(sent.as_slice(), [Effect::Choose(params)] if params.item_id.to_string() == items[1]),
        "{sent:?}"
    );
    assert!(keys(&mut app, "3").is_empty(), "there are two answers");
    feed(&mut app, json!({"type": "feedback.completed", "request_id": request_id, "by": "answer"}));
    assert!(keys(&mut app, "2").is_empty(), "the key is text again");
}

#[test]
fn request_view_shows_command_and_closes_on_answer() {
    let mut app = app();
    feed(&mut app, asks());
    let shown = rows(&app, 60, 24);
    assert_eq!(
        &shown[..3],
        [
            "▌ May Bash do this? no rule allows it",
            "    $ make",
            "▌ y once  s for the session  p in this folder: Bash(make)  n",
        ]
    );
    keys(&mut app, "fhalf a sentence");
    assert!(app.denying.is_some() && rows(&app, 60, 24).iter().any(|row| row == "because: half a sentence"));
    feed(&mut app, resolved("allow"));
    assert!(app.requests.is_empty() && app.denying.is_none() && app.editor.is_empty());
    assert_eq!(history(&mut app, 80), ["  └ Bash make allowed once by other"]);
}

#[test]
fn long_request_can_be_scrolled_to_end() {
    let mut app = app();
    let mut request = asks();
    request["input"]["command"] = json!((1..=30).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n"));
    feed(&mut app, request);
    let shown = rows(&app, 60, 16);
    assert_eq!(shown.len(), 15);
    assert!(shown.iter().any(|row| row == "▌ 0 lines above, 22 below: PgUp and PgDn show them"), "{shown:?}");
    for _ in 0..9 {
        app.on_input(&Input::Key(KeyEvent::new(KeyCode::PageDown, KeyModifiers::NONE)), now());
    }
    assert!(rows(&app, 60, 16).iter().any(|row| row == "      line 30"));
}

#[test]
fn control_c_aborts_running_turn_or_explains_detach() {
    let mut app = app();
    same(&keys(&mut app, "^c"), &[]);
    assert_eq!(app.notice, "nothing runs; Ctrl-D detaches");
    same(&keys(&mut app, "text^c"), &[]);
    assert!(app.editor.is_empty());
    state(&mut app, "running");
    same(&keys(&mut app, "^c"), &[Effect::Abort]);
    assert!(rows(&app, 60, 24)[0].starts_with("─ running"));
}

#[test]
fn both_detach_keys_keep_session_running() {
    for typed in ["^d", "^bd", "^bD"] {
        same(&keys(&mut app(), typed), &[Effect::Detach]);
    }
    same(&keys(&mut app(), "a^d"), &[]);
    same(&keys(&mut app(), "^bxd\n"), &[Effect::Submit("xd".into())]);
}

#[test]
fn multi_line_paste_is_one_input() {
    let mut app = app();
    app.on_input(&Input::Paste("a\r\nb\ty".into()), now());
    assert_eq!(rows(&app, 40, 24)[1..3], ["› a", "  b    y"]);
    same(&keys(&mut app, "~c\n"), &[Effect::Submit("a\nb\ty\nc".into())]);
}

#[test]
fn attach_view_fits_any_terminal_size() {
    let mut app = app();
    feed(&mut app, asks());
    feed(&mut app, says(&"word ".repeat(100)));
    app.on_input(&Input::Paste("x\n".repeat(20)), now());
    for (columns, height) in [(200, 60), (40, 10), (20, 4), (10, 2)] {
        app.take_history(columns);
        let view = view(&app, columns, height);
        assert!(view.rows.len() < height.max(2), "{columns}×{height}: {}", view.rows.len());
        assert!(view.cursor.0 < view.rows.len(), "{columns}×{height}");
    }
    assert!(app.requests.iter().any(|r| r.request_id.to_string() == ASK));
}

#[test]
fn session_title_is_escaped_in_status_line() {
    let mut app = app();
    feed(&mut app, json!({"type": "session.updated", "title": "\u{1b}[2Jgone"}));
    assert!(rows(&app, 80, 24).iter().any(|row| row.contains("⟦ESC⟧[2Jgone")));
}

#[test]
fn question_is_shown_once_and_archived_with_answer() {
    let mut app = app();
    let id = "ask_0190f2a4-0000-7000-8000-000000000006";
    feed(
        &mut app,
        json!({"type": "question.requested", "request_id": id, "kind": "unknown_outcome", "text": "Did it?",
            "tool": "Bash", "input": {"command": "make"}, "output": "half\n", "options": ["continue", "abort"]}),
    );
    let count = |rows: &[String]| rows.iter().filter(|row| row.contains("Did it?")).count();
    assert_eq!(count(&history(&mut app, 60)), 0);
    let shown = rows(&app, 60, 24);
    assert_eq!(count(&shown), 1, "{shown:?}");
    assert!(shown.iter().any(|row| row.contains("half")), "{shown:?}");
    feed(
        &mut app,
        json!({"type": "question.resolved", "request_id": id, "kind": "unknown_outcome", "choice": "continue",
            "by": "answer"}),
    );
    assert_eq!(count(&rows(&app, 60, 24)), 0);
    let kept = history(&mut app, 60);
    assert_eq!(count(&kept), 1, "{kept:?}");
    assert!(kept.last().is_some_and(|row| row.contains("unknown outcome: continue")), "{kept:?}");
}

#[test]
fn edited_arguments_are_sent_from_input_editor() {
    let mut app = app();
    feed(&mut app, asks());
    assert!(keys(&mut app, "e").is_empty());
    assert!(app.editor.text().contains("\"command\""), "{}", app.editor.text());
    app.editor.clear();
    let sent = keys(&mut app, "{\"command\": \"make -n\"}\n");
    let Some(Effect::Approve(params)) = sent.into_iter().next() else { panic!("not sent") };
    assert_eq!(params.updated_input, Some(serde_json::json!({"command": "make -n"})));
}

#[test]
fn slash_command_in_input_is_sent_to_the_daemon() {
    let mut app = app();
    let sent = keys(&mut app, "/mode accept_edits\n");
    assert!(matches!(sent.as_slice(), [Effect::Submit(text)] if text == "/mode accept_edits"), "{sent:?}");
    assert!(app.editor.is_empty());
}

#[test]
fn typed_answers_are_sent_together_after_last_question() {
    let mut app = app();
    let questions = json!([
        {"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]},
        {"question": "How large?"},
    ]);
    feed(
        &mut app,
        json!({"type": "question.requested", "request_id": "ask_0190f2a4-0000-7000-8000-000000000009",
        "kind": "question", "text": "Which colour?", "call_id": null, "options": [], "questions": questions}),
    );
    let shown: Vec<String> = view(&app, 80, 24).rows.iter().map(Line::plain).collect();
    assert!(shown.iter().any(|row| row.contains("2  blue")), "{shown:?}");
    assert!(shown.iter().any(|row| row.contains("answer 1 of 2: ")), "{shown:?}");
    assert!(keys(&mut app, "7\n").is_empty(), "no such option");
    app.editor.clear();
    assert!(keys(&mut app, "2\n").is_empty(), "one more is asked");
    let sent = keys(&mut app, "quite large\n");
    let [Effect::Answer(params)] = sent.as_slice() else { panic!("{sent:?}") };
    let answers = serde_json::to_value(&params.answers).expect("json");
    assert_eq!(answers, json!([{"choices": ["blue"]}, {"text": "quite large"}]));
}

#[test]
fn note_without_place_asks_for_it() {
    let mut app = app();
    assert!(keys(&mut app, "# use tabs\n").is_empty());
    assert!(app.notice.contains("m the memory"), "{}", app.notice);
    let sent = keys(&mut app, "m");
    assert!(matches!(sent.as_slice(), [Effect::Submit(text)] if text == "# memory: use tabs"), "{sent:?}");
    keys(&mut app, "# use tabs\n");
    let sent = keys(&mut app, "i");
    assert!(
        matches!(sent.as_slice(), [Effect::Submit(text)] if text == "# instructions: use tabs"),
        "{sent:?}"
    );
    let sent = keys(&mut app, "# memory: x\n");
    assert!(matches!(sent.as_slice(), [Effect::Submit(text)] if text == "# memory: x"), "{sent:?}");
}
