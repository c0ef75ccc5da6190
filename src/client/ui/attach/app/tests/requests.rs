//! Tests of permission requests and questions: keys in, answers out.

use super::*;

/// Types prose with 120 ms between two keys. The first key is pressed at `at`.
fn type_prose(app: &mut App, typed: &str, mut time: Instant) -> Vec<Effect> {
    keys_with(app, typed, || {
        let before = time;
        time += Duration::from_millis(120);
        (before, before)
    })
}

#[test]
fn keys_of_the_list_answer_a_request() {
    let check = |typed: &str, expected: Option<(Decision, Scope)>| {
        let mut app = app();
        feed(&mut app, permission_requested());
        let answer = keys(&mut app, typed).into_iter().find_map(|effect| match effect {
            Effect::Approve(params) => Some((params.decision.expect("a decision"), params.scope)),
            _ => None,
        });
        assert_eq!(answer, expected, "{typed:?}");
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
    assert_effects(&keys(&mut idle, "yes\n"), &[submit("yes")]);
}

#[test]
fn request_without_room_on_screen_takes_no_answer() {
    for (columns, height) in [(40, 3), (80, 2), (10, 24)] {
        let mut app = app();
        app.set_environment((columns, height), app.clock);
        feed(&mut app, permission_requested());
        let effects = keys(&mut app, "1y");
        assert!(!effects.iter().any(|effect| matches!(effect, Effect::Approve(_))), "{columns}x{height}");
    }
}

#[test]
fn words_go_along_with_either_answer() {
    let mut app = app();
    feed(&mut app, permission_requested());
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
    assert_effects(&keys(&mut app, "\u{1b}"), &[Effect::Abort]);
}

#[test]
fn esc_on_a_page_that_the_user_opened_is_back_at_once() {
    for after in [0, 30, 200, 590, 700] {
        let mut app = app();
        state(&mut app, "requires_action");
        feed(&mut app, permission_requested());
        let start = now();
        app.update(start);
        let press = |app: &mut App, code, ms| {
            let at = start + Duration::from_millis(ms);
            app.update(at);
            app.on_input(&Input::Key(KeyEvent::new(code, KeyModifiers::NONE)), at)
        };
        assert!(press(&mut app, KeyCode::Char('3'), 0).is_none());
        assert!(rows(&mut app, 80, 24).contains(&"▌ ↑↓ Enter · Esc back".to_owned()), "the page is live");
        assert!(press(&mut app, KeyCode::Esc, after).is_none(), "Esc after {after} ms");
        assert!(!app.pending.requests.is_page_open() && app.pending.requests.len() == 1);
        // The same is true of the arrows, and of answers that are no slip.
        assert!(press(&mut app, KeyCode::Char('3'), 800).is_none());
        assert!(press(&mut app, KeyCode::Down, 810).is_none());
        assert!(press(&mut app, KeyCode::Char('3'), 820).is_none() && app.pending.requests.is_page_open());
        assert!(matches!(press(&mut app, KeyCode::Enter, 1_050), Some(Effect::Approve(_))));
    }
}

#[test]
fn typed_prose_stays_a_draft_and_answers_no_request() {
    for first_key in [0, 200, 900, 1_300, 1_700] {
        for prose in ["please be careful", "from b", "abc", "say yes"] {
            let mut app = app();
            let start = now();
            app.on_input(&Input::Key(KeyEvent::new(KeyCode::Left, KeyModifiers::NONE)), start);
            feed_at(&mut app, permission_requested(), start);
            let shown = |app: &mut App| rows(app, 60, 24).iter().any(|row| row.starts_with("▌ Bash"));
            assert!(!shown(&mut app), "the user has just pressed a key");
            let effects = type_prose(&mut app, prose, start + Duration::from_millis(first_key));
            assert!(effects.is_empty(), "{prose:?}: {effects:?}");
            assert_eq!(app.line.editor.text(), prose, "typed {first_key} ms after the request");
            assert!(!shown(&mut app), "the list waits for the end of the prose");
            assert!(
                rows(&mut app, 60, 24)
                    .contains(&"▌ a request waits; it opens when you stop typing".to_owned())
            );
            let later = now();
            app.update(later);
            app.update(later + PAUSE);
            assert!(shown(&mut app) && app.line.editor.text() == prose, "it appears, and the draft stays");
            // Keys continue the draft, and Enter neither answers nor sends.
            assert!(type_prose(&mut app, "\n", later + PAUSE).is_empty());
            assert!(type_prose(&mut app, "y1", later + PAUSE).is_empty());
            assert_eq!(app.line.editor.text(), format!("{prose}y1"));
        }
    }
}

#[test]
fn arrow_moves_from_draft_to_list() {
    let mut app = app();
    keys(&mut app, "a draft");
    feed(&mut app, permission_requested());
    assert!(rows(&mut app, 100, 24).iter().any(|row| row == "your draft stays here while you answer"));
    assert!(key(&mut app, KeyCode::Up).is_none());
    let sent = keys(&mut app, "y");
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
    feed(&mut app, permission_resolved("allow"));
    assert_eq!(app.line.editor.text(), "a draft");
}

#[test]
fn answer_key_before_prompt_is_active_is_dropped() {
    let mut app = app();
    let start = now();
    feed_at(&mut app, permission_requested(), start);
    assert!(rows(&mut app, 60, 24).contains(&"▌ …".to_owned()), "shown, without its keys");
    assert!(type_prose(&mut app, "y", start + Duration::from_millis(100)).is_empty());
    app.update(start + PAUSE);
    assert!(app.line.editor.is_empty() && app.pending.requests.len() == 1);
    let sent = type_prose(&mut app, "y", start + PAUSE);
    assert!(matches!(sent.as_slice(), [Effect::Approve(_)]), "{sent:?}");
}

#[test]
fn page_of_a_rule_ignores_second_press_of_its_key() {
    let mut app = app();
    let start = now();
    feed_at(&mut app, permission_requested(), start);
    app.update(start + PAUSE);
    assert!(type_prose(&mut app, "31", start + PAUSE).is_empty(), "120 ms are a slip");
    app.update(start + PAUSE * 2);
    assert!(matches!(type_prose(&mut app, "1", start + PAUSE * 2).as_slice(), [Effect::Approve(_)]));
}

#[test]
fn lasting_grant_shows_undo_to_the_client_that_gave_it() {
    let mut app = app();
    feed(&mut app, permission_requested());
    app.set_environment((100, 24), app.clock);
    assert!(matches!(keys(&mut app, "2").as_slice(), [Effect::Approve(_)]));
    let mut answer = permission_resolved("allow");
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
    feed(&mut app, permission_requested());
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
    feed(&mut app, permission_resolved("allow"));
    assert!(app.pending.requests.is_empty() && !app.is_writing() && app.line.editor.is_empty());
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
    let mut request = permission_requested();
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
    let history_rows = history(&mut app);
    assert_eq!(count(&history_rows), 1, "{history_rows:?}");
    assert!(
        history_rows.last().is_some_and(|row| row.contains("unknown outcome: continue")),
        "{history_rows:?}"
    );
}

#[test]
fn edited_arguments_are_sent_from_input_editor() {
    let mut app = app();
    feed(&mut app, permission_requested());
    assert!(keys(&mut app, "e").is_empty());
    assert_eq!(app.line.editor.text(), "make", "a command is edited as a command");
    app.line.editor.clear();
    let sent = keys(&mut app, "make -n\n");
    let Some(Effect::Approve(params)) = sent.into_iter().next() else { panic!("not sent") };
    assert_eq!(params.updated_input, Some(serde_json::json!({"command": "make -n"})));
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
    app.line.editor.clear();
    assert!(keys(&mut app, "2\n").is_empty(), "one more is asked");
    let sent = keys(&mut app, "quite large\n");
    let [Effect::Answer(params)] = sent.as_slice() else { panic!("{sent:?}") };
    let answers = serde_json::to_value(&params.answers).expect("json");
    assert_eq!(answers, json!([{"choices": ["blue"]}, {"text": "quite large"}]));
}

#[test]
fn notification_is_due_only_for_an_open_request_and_an_absent_user() {
    let mut app = app();
    feed(&mut app, permission_requested());
    assert_eq!(app.take_alert(now()).as_deref(), Some("Bash make?"));
    assert_eq!(app.take_alert(now()), None, "once");
    for (focus, expected) in [(Input::FocusGained, None), (Input::FocusLost, Some("Bash make?"))] {
        let mut app = crate::ui::attach::app::tests::app();
        app.on_input(&focus, now());
        feed(&mut app, permission_requested());
        assert_eq!(app.take_alert(now()).as_deref(), expected);
    }
}

const QUESTION: &str = "ask_0190f2a4-0000-7000-8000-000000000009";

fn asked(questions: &Value) -> Value {
    json!({"type": "question.requested", "request_id": QUESTION, "kind": "question", "text": "?",
        "call_id": CALL, "tool": "AskUser", "options": [], "questions": questions})
}

#[test]
fn question_of_model_is_a_list_with_cursor_and_numbers() {
    let colour = json!([{"question": "Which colour?", "options": [
        {"label": "red", "description": "warm"}, {"label": "blue"}]}]);
    let several = json!([{"question": "Which files?", "multi_select": true,
        "options": [{"label": "a"}, {"label": "b"}, {"label": "c"}]}]);
    let two = json!([{"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]},
        {"question": "How large?", "options": [{"label": "small"}, {"label": "large"}]}]);
    // v and ^ are arrows.
    let cases = [
        (&colour, "\n", json!([{"choices": ["red"]}])),
        (&colour, "2", json!([{"choices": ["blue"]}])),
        (&colour, "v\n", json!([{"choices": ["blue"]}])),
        (&colour, "vv\n", json!([{"choices": ["red"]}])),
        (&colour, "green, please\n", json!([{"text": "green, please"}])),
        (&several, "1 v \n", json!([{"choices": ["b"]}])),
        (&several, "13\n", json!([{"choices": ["a", "c"]}])),
        (&several, "v\n", json!([{"choices": ["b"]}])),
        (&two, "2\n", json!([{"choices": ["blue"]}, {"choices": ["small"]}])),
        (&two, "1v\n", json!([{"choices": ["red"]}, {"choices": ["large"]}])),
    ];
    for (questions, typed, expected) in cases {
        let mut app = app();
        feed(&mut app, asked(questions));
        let sent: Vec<Effect> = typed
            .chars()
            .filter_map(|c| {
                let code = match c {
                    'v' if app.line.editor.is_empty() => KeyCode::Down,
                    '\n' => KeyCode::Enter,
                    c => KeyCode::Char(c),
                };
                key(&mut app, code)
            })
            .collect();
        let [Effect::Answer(params)] = sent.as_slice() else { panic!("{typed:?}: {sent:?}") };
        assert_eq!(serde_json::to_value(&params.answers).expect("json"), expected, "{typed:?}");
    }
}

#[test]
fn question_and_chosen_answer_stay_readable_without_json() {
    let questions = json!([{"question": "Which colour?", "options": [
        {"label": "red", "description": "warm"}, {"label": "blue"}]}]);
    let mut app = app();
    let input = json!({"questions": questions});
    feed(&mut app, json!({"type": "tool.requested", "call_id": CALL, "tool": "AskUser", "input": input}));
    feed(&mut app, asked(&questions));
    assert_eq!(
        rows(&mut app, 80, 24)[..4],
        [
            "▌ The model asks: Which colour?",
            "▌ › 1  red — warm",
            "▌   2  blue",
            "▌ ↑↓ Enter or its number · or type your own words · Ctrl-O all · Esc stop",
        ]
    );
    feed(
        &mut app,
        json!({"type": "question.resolved", "request_id": QUESTION, "kind": "question", "by": "answer",
            "answers": [{"choices": ["blue"]}]}),
    );
    feed(
        &mut app,
        json!({"type": "tool.completed", "call_id": CALL, "tool": "AskUser", "status": "completed",
            "output": "{\"answers\": []}", "duration_ms": 1}),
    );
    assert_eq!(history(&mut app), ["? Which colour?", "  └ blue"]);
}

#[test]
fn plan_is_rendered_in_request_and_stays_in_conversation() {
    let plan = "# Fix it\n\nFirst *read*:\n\n- `src/lib.rs`\n";
    let mut request = permission_requested();
    (request["kind"], request["tool"], request["input"]) =
        (json!("plan"), json!("ExitPlanMode"), json!({"plan": plan}));
    request["suggestions"] = json!([]);
    let mut app = app();
    let call =
        json!({"type": "tool.requested", "call_id": CALL, "tool": "ExitPlanMode", "input": {"plan": plan}});
    feed(&mut app, call);
    feed(&mut app, request);
    let shown = rows(&mut app, 80, 24);
    for row in [
        "▌ The model proposes this plan:",
        "▌   Fix it",
        "▌   First read:",
        "▌ › 1  Yes, carry it out",
        "▌   2  Yes, and accept its edits",
        "▌   3  No, and say what to change…",
        "▌   4  No, keep planning",
    ] {
        assert!(shown.iter().any(|line| line == row), "{row}: {shown:?}");
    }
    assert!(key(&mut app, KeyCode::Char('3')).is_none());
    let sent = keys(&mut app, "also test it\n");
    let [Effect::Approve(params)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((params.decision, params.feedback.as_deref()), (Some(Decision::Deny), Some("also test it")));
    feed(&mut app, permission_resolved("allow"));
    feed(
        &mut app,
        json!({"type": "tool.completed", "call_id": CALL, "tool": "ExitPlanMode", "status": "completed",
            "output": "approved", "duration_ms": 1}),
    );
    let after = history(&mut app);
    assert_eq!(after[..2], ["● ExitPlanMode Fix it", "  └ allowed once by other"]);
    assert!(after.iter().any(|row| row == "  │ First read:"), "{after:?}");
    assert!(!after.iter().any(|row| row.contains('{') || row.contains("# Fix")), "{after:?}");
}
