//! Tests of the approval prompt of `run` without a terminal.

use crate::terminal::out::testing::captured_output;
use crate::ui::approval_prompt::*;
use ratatui::crossterm::event::KeyEvent;
use serde_json::json;
use std::time::Duration;

/// A prompt with an open request, but without a terminal.
fn open_prompt() -> ApprovalPrompt {
    let request = serde_json::from_value(json!({
        "request_id": "perm_0190f2a4-0000-7000-8000-000000000004",
        "call_id": "call_0190f2a4-0000-7000-8000-000000000003",
        "tool": "Bash", "input": {"command": "make"}, "summary": "s",
        "subject": {"kind": "bash", "command": "make"}, "reason": "r", "suggestions": ["Bash(make)"]}))
    .expect("a request");
    ApprovalPrompt { queue: VecDeque::from([request]), ..ApprovalPrompt::default() }
}

fn input(c: char) -> Input {
    let code = match c {
        '\n' => KeyCode::Enter,
        '\u{8}' => KeyCode::Backspace,
        '\u{1b}' => KeyCode::Esc,
        c => KeyCode::Char(c),
    };
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Presses keys from `start` on, one after each `gap`. Returns their results and the output.
fn press_from(
    asker: &mut ApprovalPrompt,
    keys: &str,
    start: Instant,
    gap: Duration,
) -> (Vec<Outcome>, String) {
    let (mut out, _, side) = captured_output();
    let mut outcomes = Vec::new();
    let mut now = start;
    for c in keys.chars() {
        // Update twice, because the request may pass through two phases.
        asker.update(now, &mut out).expect("written");
        now += gap;
        asker.update(now, &mut out).expect("written");
        outcomes.push(asker.press(&input(c), now, &mut out).expect("written"));
    }
    (outcomes, side.text())
}

/// Presses keys slowly. Returns the result of the last one.
fn press(asker: &mut ApprovalPrompt, keys: &str) -> Outcome {
    let start = Instant::now() + Duration::from_secs(3_600);
    press_from(asker, keys, start, Duration::from_secs(1)).0.pop().expect("a key")
}

#[test]
fn single_key_answers_permission_request() {
    let check = |keys: &str, decision, scope, feedback: Option<&str>| {
        let Outcome::Send(params) = press(&mut open_prompt(), keys) else {
            panic!("{keys:?} did not answer")
        };
        assert_eq!((params.decision, params.scope), (Some(decision), scope), "{keys:?}");
        assert_eq!(params.feedback.as_deref(), feedback);
    };
    check("y", Decision::Allow, Scope::Once, None);
    check("z2\n", Decision::Allow, Scope::Session, None);
    check("3\n", Decision::Allow, Scope::Project, None);
    check("3\u{1b}2\n", Decision::Allow, Scope::Session, None);
    check("n", Decision::Deny, Scope::Once, None);
    check("fuse x\u{8}ninja\n", Decision::Deny, Scope::Once, Some("use ninja"));
    check("f\n", Decision::Deny, Scope::Once, None);
    check("fno\u{1b}y", Decision::Allow, Scope::Once, None);
    assert!(matches!(press(&mut open_prompt(), "a\n"), Outcome::Abort));
    for unconfirmed in ["2", "3", "a", "23", "22", "3y", "a\u{1b}\n", "s", "p"] {
        assert!(matches!(press(&mut open_prompt(), unconfirmed), Outcome::Wait), "{unconfirmed:?}");
    }
    assert!(matches!(press(&mut open_prompt(), "e"), Outcome::Edit));
    assert!(matches!(press(&mut open_prompt(), "\n"), Outcome::Wait));
}

#[test]
fn typed_prose_does_not_answer_permission_request() {
    let start = Instant::now();
    // The first key comes before the request appears, shortly after that, or once the request accepts keys.
    for first_key in [10, 800, 1_100, 1_700] {
        for prose in ["please be careful", "say yes", "abc", "stop\n", "hey"] {
            let mut asker = open_prompt();
            let (mut out, _, _) = captured_output();
            asker.timing.key_pressed(start);
            for ms in [1_000, 1_600].into_iter().filter(|ms| *ms <= first_key) {
                asker.update(start + Duration::from_millis(ms), &mut out).expect("written");
            }
            let at = start + Duration::from_millis(first_key);
            let (outcomes, shown) = press_from(&mut asker, prose, at, Duration::from_millis(120));
            assert!(outcomes.iter().all(|o| matches!(o, Outcome::Wait)), "{prose:?}: {outcomes:?}");
            assert!(asker.input_line.is_none() && asker.confirming.is_none(), "{prose:?}");
            assert!(first_key > 900 || shown.is_empty(), "the request came while typing: {shown}");
        }
    }
}

#[test]
fn request_appears_after_pause_and_keys_later() {
    let start = Instant::now();
    let (mut out, _, side) = captured_output();
    let mut asker = open_prompt();
    asker.timing.key_pressed(start);
    let mut shown_at = |ms| {
        asker.update(start + Duration::from_millis(ms), &mut out).expect("written");
        (side.text().contains("▌ May Bash"), side.text().contains("▌ 1 once"))
    };
    assert_eq!(
        [0, 999, 1_000, 1_599, 1_600].map(&mut shown_at),
        [(false, false), (false, false), (true, false), (true, false), (true, true)]
    );
    let control_c = Input::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    let mut hidden = crate::ui::approval_prompt::tests::open_prompt();
    assert!(matches!(hidden.press(&control_c, start, &mut out), Ok(Outcome::Abort)), "at any time");
}

#[test]
fn edited_arguments_are_sent_with_answer() {
    let mut asker = open_prompt();
    let (mut out, _, _) = captured_output();
    asker.edit_here(&mut out).expect("written");
    let Outcome::Send(params) = press(&mut asker, " -n\n") else { panic!("no answer") };
    assert_eq!(params.updated_input, Some(json!({"command": "make -n"})));
    asker.edit_here(&mut out).expect("written");
    assert!(matches!(press(&mut asker, "\u{8}\u{8}\u{8}\u{8}\n"), Outcome::Wait), "a mistake is told");
    assert!(matches!(press(&mut asker, "y"), Outcome::Send(_)), "and the question stays open");
}

#[test]
fn answer_from_other_client_closes_prompt() {
    let mut asker = open_prompt();
    let (mut out, _, _) = captured_output();
    asker
        .remove_request(
            "perm_0190f2a4-0000-7000-8000-000000000004".parse().expect("an id"),
            Instant::now(),
            &mut out,
        )
        .expect("ok");
    assert!(matches!(press(&mut asker, "y"), Outcome::Wait));
}
