//! Tests of the attach view without a terminal: events and keys in, screens and effects out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::client::connection::wire::Received;
use crate::client::fake::{ASK, CALL, ITEM, SESSION, TURN, asks, resolved, says};
use crate::client::resolve_id::sample;
use crate::client::ui::attach::app::*;
use crate::client::ui::attach::view::view;
use crate::types::permission::{Decision, Scope};

fn app() -> App {
    App::new(serde_json::from_value(sample(SESSION, "fix it")).expect("a session"), Setup::default())
}

/// A new input that is sent at once.
fn submit(text: &str) -> Effect {
    Effect::Submit(Submission { text: text.into(), when_busy: None, shell_output: Vec::new() })
}

fn key(app: &mut App, code: KeyCode) -> Option<Effect> {
    let later = now();
    app.update(later);
    app.update(later + PAUSE);
    app.on_input(&Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), later + PAUSE)
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

fn rows(app: &mut App, columns: usize, height: usize) -> Vec<String> {
    app.set_surroundings((columns, height), app.clock);
    view(app).rows.iter().map(Line::plain).collect()
}

fn history(app: &mut App) -> Vec<String> {
    app.take_history().iter().map(Line::plain).collect()
}

#[test]
fn finished_lines_move_to_history_and_last_line_grows() {
    let mut app = app();
    feed(&mut app, says("first\n\nsec"));
    feed(&mut app, says("ond"));
    assert_eq!(history(&mut app), ["first"]);
    assert_eq!(
        rows(&mut app, 60, 24),
        [
            "",
            "second",
            "─ fix it · ready · replay · default",
            "› ",
            "? keys · / commands · @ files · ! shell · Ctrl-D detaches, …",
        ]
    );
    feed(
        &mut app,
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN,
        "kind": "assistant_message", "status": "completed", "first_seq": 1, "last_seq": 2, "text": "first\n\nsecond"}}),
    );
    assert_eq!(history(&mut app), ["", "second"]);
    assert!(app.tail().is_empty());
}

#[test]
fn long_paragraph_shows_only_its_end_in_viewport() {
    let mut app = app();
    app.set_surroundings((20, 8), app.clock);
    feed(&mut app, says(&(1..=40).map(|n| format!("word{n} ")).collect::<String>()));
    assert!(history(&mut app).is_empty(), "its marks may still change");
    let shown = rows(&mut app, 20, 8);
    assert_eq!(shown.len(), 7);
    assert!(shown[3].ends_with("word40"), "{shown:?}");
}

#[test]
fn keys_of_the_list_answer_a_request() {
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
    check("1", Some((Decision::Allow, Scope::Once)));
    check("\n", Some((Decision::Allow, Scope::Once)));
    check("2", Some((Decision::Allow, Scope::Session)));
    check("31", Some((Decision::Allow, Scope::Project)));
    check("3\n", Some((Decision::Allow, Scope::Project)));
    check("32", Some((Decision::Allow, Scope::Once)));
    for unanswered in ["3", "3\u{1b}", "s", "p", "a", "hey", "5", "9", "39"] {
        check(unanswered, None);
    }
    check("3\u{1b}y", Some((Decision::Allow, Scope::Once)));
    check("n", Some((Decision::Deny, Scope::Once)));
    check("4", Some((Decision::Deny, Scope::Once)));
    let mut idle = app();
    same(&keys(&mut idle, "yes\n"), &[submit("yes")]);
}

#[test]
fn words_go_along_with_either_answer() {
    let mut app = app();
    feed(&mut app, asks());
    key(&mut app, KeyCode::Tab);
    assert!(rows(&mut app, 80, 24).iter().any(|row| row == "Yes, and: "));
    let sent = keys(&mut app, "1 add a test\n");
    assert!(
        matches!(sent.as_slice(), [Effect::ApproveAndSay(_, words)] if words == "1 add a test"),
        "{sent:?}"
    );
    for _ in 0..3 {
        key(&mut app, KeyCode::Down);
    }
    key(&mut app, KeyCode::Tab);
    let sent = keys(&mut app, "use ninja\n");
    let [Effect::Approve(params)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((params.decision, params.feedback.as_deref()), (Some(Decision::Deny), Some("use ninja")));
    same(&keys(&mut app, "\u{1b}"), &[Effect::Abort]);
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
    for first_key in [0, 200, 900, 1_300, 1_700] {
        for prose in ["please be careful", "from b", "abc", "say yes"] {
            let mut app = app();
            let start = now();
            app.on_input(&Input::Key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)), start);
            feed_at(&mut app, asks(), start);
            let shown = |app: &mut App| rows(app, 60, 24).iter().any(|row| row.starts_with("▌ Bash"));
            assert!(!shown(&mut app), "the user has just pressed a key");
            let effects = prose_after(&mut app, prose, start + Duration::from_millis(first_key));
            assert!(effects.is_empty(), "{prose:?}: {effects:?}");
            assert_eq!(app.editor.text(), prose, "typed {first_key} ms after the request");
            assert!(!shown(&mut app), "the list waits for the end of the prose");
            assert!(
                rows(&mut app, 60, 24)
                    .contains(&"▌ a request waits; it opens when you stop typing".to_owned())
            );
            let later = now();
            app.update(later);
            app.update(later + PAUSE);
            assert!(shown(&mut app) && app.editor.text() == prose, "it appears, and the draft stays");
            // Keys go on with the draft, and Enter neither answers nor sends.
            assert!(prose_after(&mut app, "\n", later + PAUSE).is_empty());
            assert!(prose_after(&mut app, "y1", later + PAUSE).is_empty());
            assert_eq!(app.editor.text(), format!("{prose}y1"));
        }
    }
}

#[test]
fn arrow_moves_from_draft_to_list() {
    let mut app = app();
    keys(&mut app, "a draft");
    feed(&mut app, asks());
    assert!(rows(&mut app, 100, 24).iter().any(|row| row == "your draft stays here while you answer"));
    assert!(key(&mut app, KeyCode::Up).is_none());
    let sent = keys(&mut app, "y");
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
    feed(&mut app, resolved("allow"));
    assert_eq!(app.editor.text(), "a draft");
}

#[test]
fn answer_key_before_prompt_is_active_is_dropped() {
    let mut app = app();
    let start = now();
    feed_at(&mut app, asks(), start);
    assert!(rows(&mut app, 60, 24).contains(&"▌ …".to_owned()), "shown, without its keys");
    assert!(prose_after(&mut app, "y", start + Duration::from_millis(100)).is_empty());
    app.update(start + PAUSE);
    assert!(app.editor.is_empty() && app.requests.len() == 1);
    let sent = prose_after(&mut app, "y", start + PAUSE);
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
}

#[test]
fn page_of_a_rule_ignores_second_press_of_its_key() {
    let mut app = app();
    let start = now();
    feed_at(&mut app, asks(), start);
    app.update(start + PAUSE);
    assert!(prose_after(&mut app, "31", start + PAUSE).is_empty(), "120 ms are a slip");
    app.update(start + PAUSE * 2);
    assert!(matches!(prose_after(&mut app, "1", start + PAUSE * 2).as_slice(), [Effect::Approve(_)]));
}

#[test]
fn lasting_grant_shows_undo_to_the_client_that_gave_it() {
    let mut app = app();
    feed(&mut app, asks());
    app.set_surroundings((100, 24), app.clock);
    assert!(matches!(keys(&mut app, "2").as_slice(), [Effect::Approve(_)]));
    let mut answer = resolved("allow");
    (answer["scope"], answer["grant"]) = (json!("session"), json!("Bash(make)"));
    feed(&mut app, answer.clone());
    let undo = format!("agentctl rules rm --session {SESSION} 'Bash(make)'");
    assert_eq!(history(&mut app).last(), Some(&undo));
    // The same event in a history is not an answer of this client.
    feed(&mut app, answer);
    assert!(!history(&mut app).contains(&undo));
}

#[test]
fn abort_of_a_question_requires_confirmation() {
    let mut app = app();
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
    feed(
        &mut app,
        json!({"type": "tool.requested", "call_id": CALL, "tool": "Bash", "input": {"command": "make"}}),
    );
    feed(&mut app, asks());
    state(&mut app, "requires_action");
    assert_eq!(
        rows(&mut app, 80, 24),
        [
            "▌ Bash · asks because no rule allows it",
            "▌   $ make",
            "▌ › 1  Yes, once",
            "▌   2  Yes, until the session ends: Bash(make)",
            "▌   3  Yes, and always in this folder…",
            "▌   4  No, and go on without it",
            "▌ ↑↓ Enter · Tab words · e change it · Ctrl-O all · Esc no, and stop",
            "─ fix it · waits for you 0 s · replay · default",
            "› ",
            "",
        ]
    );
    key(&mut app, KeyCode::Tab);
    keys(&mut app, "half a sentence");
    assert!(rows(&mut app, 60, 24).iter().any(|row| row == "Yes, and: half a sentence"));
    feed(&mut app, resolved("allow"));
    assert!(app.requests.is_empty() && app.words.is_none() && app.editor.is_empty());
    feed(
        &mut app,
        json!({"type": "tool.completed", "call_id": CALL, "tool": "Bash", "status": "completed",
            "output": "built\n", "duration_ms": 1500}),
    );
    assert_eq!(history(&mut app), ["● Bash make  1.5 s", "  └ allowed once by other", "  └ built"]);
}

#[test]
fn long_request_can_be_scrolled_to_end() {
    let mut app = app();
    let mut request = asks();
    request["input"]["command"] = json!((1..=30).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n"));
    feed(&mut app, request);
    let shown = rows(&mut app, 60, 20);
    assert!(shown.len() <= 19 && shown.iter().any(|row| row.starts_with("▌ 0 lines above, ")), "{shown:?}");
    for _ in 0..9 {
        key(&mut app, KeyCode::PageDown);
    }
    assert!(rows(&mut app, 60, 20).iter().any(|row| row == "▌     line 30"));
}

#[test]
fn interrupt_stops_the_turn_clears_the_line_or_leaves() {
    let mut app = app();
    same(&keys(&mut app, "text^c"), &[]);
    assert!(app.editor.is_empty());
    keys(&mut app, "^y");
    assert_eq!(app.editor.text(), "text", "it comes back");
    same(&keys(&mut app, "^c^c"), &[]);
    assert_eq!(app.notice, "Ctrl-C again to leave; the session goes on");
    same(&keys(&mut app, "^c"), &[Effect::Detach]);
    state(&mut app, "running");
    keys(&mut app, "draft");
    same(&keys(&mut app, "^c"), &[Effect::Abort]);
    same(&keys(&mut app, "\u{1b}"), &[Effect::Abort]);
    assert_eq!(app.editor.text(), "draft", "the draft stays");
}

#[test]
fn both_detach_keys_keep_session_running() {
    for typed in ["^d", "^bd", "^bD"] {
        same(&keys(&mut app(), typed), &[Effect::Detach]);
    }
    same(&keys(&mut app(), "a^d"), &[]);
    same(&keys(&mut app(), "^bxd\n"), &[submit("xd")]);
}

#[test]
fn multi_line_paste_is_one_input() {
    let mut app = app();
    app.on_input(&Input::Paste("a\r\nb\ty".into()), now());
    assert_eq!(rows(&mut app, 40, 24)[1..3], ["› a", "  b    y"]);
    same(&keys(&mut app, "~c\n"), &[submit("a\nb\ty\nc")]);
}

#[test]
fn attach_view_fits_any_terminal_size() {
    let mut app = app();
    feed(&mut app, asks());
    feed(&mut app, says(&"word ".repeat(100)));
    app.on_input(&Input::Paste("x\n".repeat(20)), now());
    for (columns, height) in [(200, 60), (40, 10), (20, 4), (10, 2)] {
        app.set_surroundings((columns, height), app.clock);
        let view = view(&app);
        assert!(view.rows.len() < height.max(2), "{columns}×{height}: {}", view.rows.len());
        assert!(view.cursor.0 < view.rows.len(), "{columns}×{height}");
    }
    assert!(app.requests.iter().any(|r| r.request_id.to_string() == ASK));
}

#[test]
fn session_title_is_escaped_in_status_line() {
    let mut app = app();
    feed(&mut app, json!({"type": "session.updated", "title": "\u{1b}[2Jgone"}));
    assert!(rows(&mut app, 80, 24).iter().any(|row| row.contains("⟦ESC⟧[2Jgone")));
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
    assert_eq!(count(&history(&mut app)), 0);
    let shown = rows(&mut app, 60, 24);
    assert_eq!(count(&shown), 1, "{shown:?}");
    assert!(shown.iter().any(|row| row.contains("half")), "{shown:?}");
    feed(
        &mut app,
        json!({"type": "question.resolved", "request_id": id, "kind": "unknown_outcome", "choice": "continue",
            "by": "answer"}),
    );
    assert_eq!(count(&rows(&mut app, 60, 24)), 0);
    let kept = history(&mut app);
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
    assert!(
        matches!(sent.as_slice(), [Effect::Submit(sent)] if sent.text == "/mode accept_edits"),
        "{sent:?}"
    );
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
    let shown = rows(&mut app, 80, 24);
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
    assert!(
        matches!(sent.as_slice(), [Effect::Submit(sent)] if sent.text == "# memory: use tabs"),
        "{sent:?}"
    );
    keys(&mut app, "# use tabs\n");
    let sent = keys(&mut app, "i");
    assert!(
        matches!(sent.as_slice(), [Effect::Submit(sent)] if sent.text == "# instructions: use tabs"),
        "{sent:?}"
    );
    let sent = keys(&mut app, "# memory: x\n");
    assert!(matches!(sent.as_slice(), [Effect::Submit(sent)] if sent.text == "# memory: x"), "{sent:?}");
}

#[test]
fn enter_steers_tab_queues_and_up_takes_back() {
    let mut app = app();
    state(&mut app, "running");
    let sent = keys(&mut app, "use io::Error\n");
    let [Effect::Submit(steered)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((steered.text.as_str(), steered.when_busy), ("use io::Error", Some(WhenBusy::Steer)));
    keys(&mut app, "then the changelog");
    let Some(Effect::Submit(queued)) = key(&mut app, KeyCode::Tab) else { panic!("not sent") };
    assert_eq!((queued.text.as_str(), queued.when_busy), ("then the changelog", None));
    feed(&mut app, json!({"type": "turn.steered", "input": [{"type": "text", "text": "use io::Error"}]}));
    feed(&mut app, json!({"type": "turn.queued", "input": [{"type": "text", "text": "then the changelog"}]}));
    let shown = rows(&mut app, 80, 24);
    assert_eq!(shown[..2], ["↳ after this step  use io::Error", "↳ after the turn   then the changelog"]);
    assert!(shown[2].ends_with("Esc stops · ↑ takes the last line back"), "{shown:?}");
    assert!(matches!(key(&mut app, KeyCode::Up), Some(Effect::TakeBack(_))));
    assert_eq!(app.editor.text(), "then the changelog");
    assert!(!rows(&mut app, 80, 24).iter().any(|row| row.starts_with("↳ after the turn")));
}

#[test]
fn unknown_command_is_refused_in_place_with_nearest() {
    let mut app = app();
    let commands = json!([
        {"name": "compact", "description": "Replace old messages", "argument_hint": "[instructions]", "source": "built_in"},
        {"name": "mode", "description": "Change the mode", "argument_hint": "MODE", "source": "built_in"},
    ]);
    app.set_commands(serde_json::from_value(commands).expect("commands"));
    assert!(keys(&mut app, "/cmpct\u{1b}\n").is_empty());
    assert_eq!(app.notice, "no command /cmpct; did you mean /compact?");
    assert_eq!(app.editor.text(), "/cmpct");
    keys(&mut app, "^x/m");
    assert_eq!(
        rows(&mut app, 60, 24)[2..],
        ["› /mode MODE               Change the mode", "  /compact [instructions]  Replace old messages"]
    );
    assert!(key(&mut app, KeyCode::Tab).is_none());
    assert_eq!(app.editor.text(), "/mode ");
    app.editor.clear();
    same(&keys(&mut app, "/comp\n"), &[submit("/compact")]);
}

#[test]
fn file_menu_completes_the_word_after_an_at_sign() {
    let mut app = app();
    keys(&mut app, "see @lb");
    assert!(matches!(app.take_wanted().as_slice(), [Effect::LoadFiles]));
    app.set_files(vec!["src/".into(), "src/lib.rs".into(), "README.md".into()]);
    let shown = rows(&mut app, 60, 24);
    assert_eq!(shown.last().map(String::as_str), Some("› src/lib.rs  "));
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.editor.text(), "see @src/lib.rs ");
}

#[test]
fn shell_command_runs_and_its_output_goes_along() {
    let mut app = app();
    let sent = keys(&mut app, "!git status\n");
    assert!(matches!(sent.as_slice(), [Effect::Shell(command)] if command == "git status"), "{sent:?}");
    assert!(rows(&mut app, 60, 24)[0].contains("! git status"));
    same(&keys(&mut app, "\u{1b}"), &[Effect::StopShell]);
    app.shell_ended("clean\n", "exit 0", 12);
    assert_eq!(
        history(&mut app),
        ["! git status  exit 0 · 12 ms", "  │ clean", "  └ goes along with your next message"]
    );
    let sent = keys(&mut app, "commit it\n");
    let [Effect::Submit(sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(
        sent.shell_output,
        ["I ran this command myself: `git status` (exit 0). Its output:\n```\nclean\n```"]
    );
    same(&keys(&mut app, "again\n"), &[submit("again")]);
}

#[test]
fn shift_tab_cycles_modes_without_bypass() {
    let mut app = app();
    for (mode, next) in
        [("default", "AcceptEdits"), ("accept_edits", "Plan"), ("plan", "Default"), ("bypass", "Default")]
    {
        feed(&mut app, json!({"type": "session.updated", "mode": mode}));
        let effect = key(&mut app, KeyCode::BackTab);
        assert_eq!(format!("{effect:?}"), format!("Some(SetMode({next}))"), "{mode}");
    }
}

#[test]
fn escape_twice_on_empty_line_lists_inputs_to_go_back_to() {
    let mut app = app();
    let effects = keys(&mut app, "\u{1b}\u{1b}");
    assert!(matches!(effects.as_slice(), [Effect::LoadPoints]), "{effects:?}");
    let point = |text: &str| Point { before: ITEM.parse().expect("an id"), text: text.into() };
    app.set_points(vec![point("first"), point("second")]);
    let shown = rows(&mut app, 60, 24);
    assert_eq!(shown[2..5], ["Go back to before one of your inputs:", "  first", "› second"]);
    key(&mut app, KeyCode::Up);
    let effect = key(&mut app, KeyCode::Enter);
    assert!(
        matches!(&effect, Some(Effect::Rewind { files: false, text, .. }) if text == "first"),
        "{effect:?}"
    );
}

#[test]
fn history_search_finds_earlier_inputs() {
    let mut app = app();
    keys(&mut app, "fix the login\nwrite a test\n");
    assert!(matches!(keys(&mut app, "^r").as_slice(), [Effect::LoadHistory]));
    app.add_history(vec!["login of long ago".into()]);
    keys(&mut app, "login");
    assert!(rows(&mut app, 60, 24).contains(&"  fix the login".to_owned()));
    keys(&mut app, "^r\n");
    assert_eq!(app.editor.text(), "login of long ago");
}

#[test]
fn long_paste_is_a_marker_until_it_is_sent() {
    let mut app = app();
    let text = "line\n".repeat(120);
    app.on_input(&Input::Paste(text.clone()), now());
    assert_eq!(app.editor.text(), "[paste 1: 120 lines]");
    same(&keys(&mut app, " x\n"), &[submit(&format!("{text} x"))]);
    app.on_input(&Input::Paste(text), now());
    key(&mut app, KeyCode::Backspace);
    assert!(app.editor.is_empty(), "a marker is one thing");
}

#[test]
fn notification_is_due_only_for_an_open_request_and_an_absent_user() {
    let mut app = app();
    feed(&mut app, asks());
    assert_eq!(app.take_alert(now()).as_deref(), Some("Bash make?"));
    assert_eq!(app.take_alert(now()), None, "once");
    for (focus, expected) in [(Input::FocusGained, None), (Input::FocusLost, Some("Bash make?"))] {
        let mut app = crate::client::ui::attach::app::tests::app();
        app.on_input(&focus, now());
        feed(&mut app, asks());
        assert_eq!(app.take_alert(now()).as_deref(), expected);
    }
}

#[test]
fn spinner_names_phase_seconds_and_tokens() {
    let mut app = app();
    state(&mut app, "running");
    feed(&mut app, json!({"type": "turn.phase", "phase": "model_call", "at_ms": 1_000}));
    app.set_surroundings((80, 24), Timestamp(9_000));
    assert_eq!(rows(&mut app, 80, 24)[0], "⠼ waiting for replay · 8 s · Esc stops");
    let mut delta = says(&"word ".repeat(8));
    delta["at_ms"] = json!(9_000);
    feed(&mut app, delta);
    assert!(rows(&mut app, 80, 24).contains(&"⠼ writing · 0 s · ↓ 10 tokens · Esc stops".to_owned()));
    app.setup.is_plain = true;
    assert!(rows(&mut app, 80, 24).iter().any(|row| row.starts_with("working: writing")));
}

#[test]
fn status_line_drops_parts_from_the_right() {
    let mut app = app();
    (app.session.number, app.session.clients) = (12, 2);
    app.session.cwd = "/w/shop".into();
    app.progress.context = Some((12_000, Some(200_000)));
    app.progress.usd_micros = Some(40_000);
    let status = |app: &mut App, columns| rows(app, columns, 24)[0].clone();
    assert_eq!(
        status(&mut app, 120),
        format!(
            "─ #12 fix it · ready · demo/replay · default · /w/shop {} 2 clients · context 6% of 200.0k · $0.04",
            "─".repeat(24)
        )
    );
    assert_eq!(
        status(&mut app, 80),
        format!("─ #12 fix it · ready · replay · default {} 2 clients · context 6% · $0.04", "─".repeat(9))
    );
    assert_eq!(status(&mut app, 50), "─ #12 fix it · ready · replay · default ──── $0.04");
    assert!(status(&mut app, 20).starts_with("─ #12 fix it"));
}
