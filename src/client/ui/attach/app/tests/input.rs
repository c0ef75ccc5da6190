//! Tests of the input line: text, commands, menus, history.

use super::*;
use crate::connection::remote::Machine;
use types::queue::WhenBusy;

#[test]
fn interrupt_stops_the_turn_clears_the_line_or_leaves() {
    let mut app = app();
    assert_effects(&keys(&mut app, "text^c"), &[]);
    assert!(app.line.editor.is_empty());
    keys(&mut app, "^y");
    assert_eq!(app.line.editor.text(), "text", "it comes back");
    assert_effects(&keys(&mut app, "^c^c"), &[]);
    assert_eq!(app.notice, "Ctrl-C again to leave; the session continues");
    assert_effects(&keys(&mut app, "^c"), &[Effect::Detach]);
    state(&mut app, "running");
    keys(&mut app, "draft");
    assert_effects(&keys(&mut app, "^c"), &[Effect::Abort]);
    assert_effects(&keys(&mut app, "\u{1b}"), &[Effect::Abort]);
    assert_eq!(app.line.editor.text(), "draft", "the draft stays");
}

#[test]
fn both_detach_keys_keep_session_running() {
    for typed in ["^d", "^bd", "^bD"] {
        assert_effects(&keys(&mut app(), typed), &[Effect::Detach]);
    }
    assert_effects(&keys(&mut app(), "a^d"), &[]);
    assert_effects(&keys(&mut app(), "^bxd\n"), &[submit("xd")]);
}

#[test]
fn multi_line_paste_is_one_input() {
    let mut app = app();
    app.on_input(&Input::Paste("a\r\nb\ty".into()), now());
    assert_eq!(rows(&mut app, 40, 24)[1..3], ["› a", "  b    y"]);
    assert_effects(&keys(&mut app, "~c\n"), &[submit("a\nb\ty\nc")]);
}

#[test]
fn slash_command_in_input_is_sent_to_the_daemon() {
    let mut app = app();
    let sent = keys(&mut app, "/mode accept_edits\n");
    assert!(
        matches!(sent.as_slice(), [Effect::Submit(sent)] if sent.text == "/mode accept_edits"),
        "{sent:?}"
    );
    assert!(app.line.editor.is_empty());
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
    assert_eq!(app.line.editor.text(), "then the changelog");
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
    assert_eq!(app.line.editor.text(), "/cmpct");
    keys(&mut app, "^x/m");
    assert_eq!(
        rows(&mut app, 60, 24)[2..4],
        ["› /mode MODE               Change the mode", "  /compact [instructions]  Replace old messages"]
    );
    assert!(key(&mut app, KeyCode::Tab).is_none());
    assert_eq!(app.line.editor.text(), "/mode ");
    app.line.editor.clear();
    assert_effects(&keys(&mut app, "/comp\n"), &[submit("/compact")]);
}

#[test]
fn file_menu_completes_the_word_after_an_at_sign() {
    let mut app = app();
    keys(&mut app, "see @lb");
    assert!(matches!(app.take_queued_effects().as_slice(), [Effect::LoadFiles]));
    app.set_files(vec!["src/".into(), "src/lib.rs".into(), "README.md".into()]);
    let shown = rows(&mut app, 60, 24);
    assert_eq!(shown.last().map(String::as_str), Some("› src/lib.rs  "));
    key(&mut app, KeyCode::Enter);
    assert_eq!(app.line.editor.text(), "see @src/lib.rs ");
}

#[test]
fn shell_command_runs_and_its_output_goes_along() {
    let mut app = app();
    let sent = keys(&mut app, "!git status\n");
    assert!(matches!(sent.as_slice(), [Effect::Shell(command)] if command == "git status"), "{sent:?}");
    assert!(rows(&mut app, 60, 24)[0].contains("! git status"));
    assert_effects(&keys(&mut app, "\u{1b}"), &[Effect::StopShell]);
    app.finish_shell("clean\n", "exit 0", 12);
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
    assert_effects(&keys(&mut app, "again\n"), &[submit("again")]);
}

#[test]
fn shell_command_is_refused_if_the_files_are_on_another_machine() {
    let mut app = app();
    app.setup.machine = Machine::Other;
    assert_effects(&keys(&mut app, "!git status\n"), &[]);
    assert!(app.notice.contains("another machine"), "{}", app.notice);
    assert_eq!(app.line.editor.text(), "!git status");
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
    // Two presses are two steps, even if the daemon has not answered yet.
    feed(&mut app, json!({"type": "session.updated", "mode": "default"}));
    for next in ["AcceptEdits", "Plan"] {
        let effect = key(&mut app, KeyCode::BackTab);
        assert_eq!(format!("{effect:?}"), format!("Some(SetMode({next}))"));
    }
}

#[test]
fn escape_twice_on_empty_line_lists_inputs_to_go_back_to() {
    let mut app = app();
    let effects = keys(&mut app, "\u{1b}\u{1b}");
    assert!(matches!(effects.as_slice(), [Effect::LoadPoints]), "{effects:?}");
    let point =
        |text: &str, is_first| Point { item: ITEM.parse().expect("an id"), is_first, text: text.into() };
    app.set_points(vec![point("first", true), point("second", false)]);
    let shown = rows(&mut app, 60, 24);
    assert_eq!(shown[2..5], ["Go back to before one of your inputs:", "  first", "› second"]);
    key(&mut app, KeyCode::Up);
    let effect = key(&mut app, KeyCode::Enter);
    assert!(
        matches!(&effect, Some(Effect::Rewind(point, false)) if point.text == "first" && point.is_first),
        "{effect:?}"
    );
}

#[test]
fn history_search_finds_earlier_inputs() {
    let mut app = app();
    keys(&mut app, "fix the login\nwrite a test\n");
    assert!(matches!(keys(&mut app, "^r").as_slice(), [Effect::LoadHistory(None)]));
    app.add_history(vec!["login of long ago".into()], Some("20".into()));
    let more = app.take_queued_effects();
    assert!(matches!(more.as_slice(), [Effect::LoadHistory(Some(cursor))] if cursor == "20"), "{more:?}");
    keys(&mut app, "login");
    assert!(rows(&mut app, 60, 24).contains(&"  fix the login".to_owned()));
    app.add_history(vec!["login of the first day".into(), "fix the login".into()], None);
    assert!(app.take_queued_effects().is_empty(), "all sessions of the folder are read");
    keys(&mut app, "^r^r\n");
    assert_eq!(app.line.editor.text(), "login of the first day");
    assert!(keys(&mut app, "^r").is_empty(), "they are read once");
}

#[test]
fn long_paste_is_a_marker_until_it_is_sent() {
    let mut app = app();
    let text = "line\n".repeat(120);
    app.on_input(&Input::Paste(text.clone()), now());
    assert_eq!(app.line.editor.text(), "[paste 1: 120 lines]");
    let sent = keys(&mut app, " x\n");
    let [Effect::Submit(sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((&sent.text, sent.draft.text.as_str()), (&format!("{text} x"), "[paste 1: 120 lines] x"));
    app.on_input(&Input::Paste(text), now());
    key(&mut app, KeyCode::Backspace);
    assert!(app.line.editor.is_empty(), "a marker is one thing");
}

#[test]
fn left_arrow_on_empty_line_shows_all_sessions() {
    let mut app = app();
    assert!(matches!(key(&mut app, KeyCode::Left), Some(Effect::ShowSessions)));
    keys(&mut app, "x");
    assert!(key(&mut app, KeyCode::Left).is_none(), "it moves the cursor");
    key(&mut app, KeyCode::Delete);
    feed(&mut app, permission_requested());
    assert!(key(&mut app, KeyCode::Left).is_none(), "a request is open");
    feed(&mut app, permission_resolved("allow"));
    assert!(matches!(keys(&mut app, "/top\n").as_slice(), [Effect::ShowSessions]));
    assert!(matches!(keys(&mut app, "/resume\n").as_slice(), [Effect::PickSession]));
    assert!(app.line.editor.is_empty());
}

#[test]
fn model_command_without_argument_opens_the_list() {
    let mut app = app();
    assert!(matches!(keys(&mut app, "/model\n").as_slice(), [Effect::LoadModels]));
    let model = |name: &str| {
        serde_json::from_value(json!({"model": name, "known": true, "context_window": 1_000, "tools": true,
            "max_output_tokens": null, "streaming": true, "system_role": true, "thinking": false, "vision": null,
            "price": null}))
        .expect("a model")
    };
    app.set_models(vec![model("demo/small"), model("demo/large")]);
    assert!(rows(&mut app, 60, 24).iter().any(|row| row.starts_with("›  demo/small")));
    key(&mut app, KeyCode::Down);
    let chosen = key(&mut app, KeyCode::Enter);
    assert!(matches!(&chosen, Some(Effect::SetModel(model)) if model == "demo/large"), "{chosen:?}");
    assert!(app.overlay.is_none());
    assert_effects(&keys(&mut app, "/model demo/large\n"), &[submit("/model demo/large")]);
}

#[test]
fn copy_takes_last_answer_or_its_last_code() {
    let mut app = app();
    assert!(keys(&mut app, "/copy\n").is_empty());
    assert_eq!(app.notice, "there is no answer to copy yet");
    feed(
        &mut app,
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN, "kind": "assistant_message",
        "status": "completed", "first_seq": 1, "last_seq": 2, "text": "Do this:\n```sh\nmake\n```\n"}}),
    );
    let copied = keys(&mut app, "/copy code\n");
    assert!(matches!(copied.as_slice(), [Effect::Copy(text)] if text == "make\n"), "{copied:?}");
    assert_eq!(app.notice, "copied the last code block: 1 line, 5 characters");
    let copied = keys(&mut app, "/copy\n");
    assert!(matches!(copied.as_slice(), [Effect::Copy(text)] if text.starts_with("Do this:")), "{copied:?}");
    assert!(app.notice.starts_with("copied the last answer: 4 lines"), "{}", app.notice);
    assert!(keys(&mut app, "/copy all\n").is_empty());
}

fn queued(app: &mut App, number: u8, text: &str) -> TurnId {
    let turn = format!("turn_0190f2a4-0000-7000-8000-0000000000{number:02}");
    let input = json!([{"type": "text", "text": text}]);
    feed(app, json!({"type": "turn.queued", "turn_id": turn, "input": input}));
    turn.parse().expect("an id")
}

#[test]
fn stop_brings_queued_inputs_back_into_input_line() {
    let stops = [
        KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ];
    for stop in stops {
        for draft in ["", "a draft"] {
            let mut app = app();
            state(&mut app, "running");
            let turns = [queued(&mut app, 11, "one"), queued(&mut app, 12, "two\nlines")];
            keys(&mut app, draft);
            let Some(Effect::StopAndDequeue(removed)) = app.on_input(&Input::Key(stop), now()) else {
                panic!("not stopped")
            };
            assert_eq!(removed, turns);
            let expected = if draft.is_empty() { "one\ntwo\nlines" } else { "one\ntwo\nlines\na draft" };
            assert_eq!(app.line.editor.text(), expected);
            assert!(app.queue.inputs.is_empty());
        }
    }
    // While a request is open, the text waits as the draft does.
    let mut app = app();
    state(&mut app, "requires_action");
    feed(&mut app, permission_requested());
    queued(&mut app, 11, "one");
    assert!(matches!(keys(&mut app, "\u{1b}").as_slice(), [Effect::StopAndDequeue(_)]));
    assert!(app.line.editor.is_empty());
    feed(&mut app, permission_resolved("deny"));
    assert_eq!(app.line.editor.text(), "one");
}

#[test]
fn steering_input_without_answer_is_asked_again_by_enter() {
    let text = "use io::Error";
    let steered = || json!({"type": "turn.steered", "input": [{"type": "text", "text": text}]});
    let read = || {
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN, "kind": "user_message",
            "status": "completed", "first_seq": 1, "last_seq": 2, "text": text}})
    };
    let ended = || crate::fake_daemon::turn_completed("aborted");
    let stopped = || {
        let mut app = app();
        state(&mut app, "running");
        feed(&mut app, steered());
        keys(&mut app, "\u{1b}");
        feed(&mut app, read());
        app
    };
    let mut app = stopped();
    feed(&mut app, ended());
    state(&mut app, "idle");
    assert_eq!(app.notice, "“use io::Error” has no answer yet: Enter asks for it");
    let sent = keys(&mut app, "\n");
    let [Effect::Submit(sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((sent.text.as_str(), sent.when_busy), ("Please answer my last message.", None));
    // Typed text is sent as it is: the model sees both.
    let mut app = stopped();
    feed(&mut app, ended());
    state(&mut app, "idle");
    assert_effects(&keys(&mut app, "and test it\n"), &[submit("and test it")]);
    // The model has begun to answer.
    let mut app = stopped();
    feed(&mut app, json!({"type": "message.started", "model": "a/b", "attempt": 1}));
    feed(&mut app, ended());
    assert_eq!(app.notice, "");
    assert!(keys(&mut app, "\n").is_empty());
}

#[test]
fn hint_about_a_stop_ends_with_the_turn() {
    let ended = crate::fake_daemon::turn_completed("aborted");
    for typed in ["\u{1b}", "^c"] {
        let mut app = app();
        state(&mut app, "running");
        keys(&mut app, typed);
        assert_eq!(app.notice, "stopping…");
        feed(&mut app, ended.clone());
        assert_eq!(app.notice, "", "{typed:?}");
    }
    let mut app = app();
    keys(&mut app, "\u{1b}");
    assert!(!app.notice.is_empty());
    feed(&mut app, json!({"type": "turn.started"}));
    assert_eq!(app.notice, "", "a hint of the time before the turn");
}

#[test]
fn likely_secret_waits_for_a_key_and_text_comes_back() {
    let asked = |typed: &str| {
        let mut app = app();
        let sent = keys(&mut app, "check @.env\n");
        let Ok([Effect::Submit(sent)]) = <[Effect; 1]>::try_from(sent) else { panic!("not sent") };
        app.ask_about_secrets(sent, &[".env".into()]);
        assert!(app.notice.contains(".env may hold secrets"), "{}", app.notice);
        let effects = keys(&mut app, typed);
        (app.line.editor.text().to_owned(), effects)
    };
    for (typed, expected) in [("y", SecretFiles::Send), ("n", SecretFiles::NameOnly)] {
        let (text, effects) = asked(typed);
        let [Effect::Submit(sent)] = effects.as_slice() else { panic!("{effects:?}") };
        assert_eq!((text.as_str(), sent.text.as_str(), sent.secrets), ("", "check @.env", expected));
    }
    for typed in ["\u{1b}", "\n", "x"] {
        let (text, effects) = asked(typed);
        assert!(effects.is_empty() && text == "check @.env", "{typed:?}: {text} {effects:?}");
    }
}

#[test]
fn picture_of_clipboard_is_a_marker_and_goes_along() {
    let mut app = app();
    assert!(matches!(keys(&mut app, "see ^v").as_slice(), [Effect::PastePicture]));
    app.line.editor.paste_picture(vec![0; 1_500]);
    assert_eq!(app.line.editor.text(), "see [image 1: 2 KB]");
    let sent = keys(&mut app, "\n");
    let [Effect::Submit(sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((sent.text.as_str(), sent.draft.pictures.len()), ("see [image 1: 2 KB]", 1));
    // A refused input comes back with its picture.
    app.restore_input(sent.clone(), "the daemon is busy");
    let sent = keys(&mut app, " now\n");
    let [Effect::Submit(sent)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!(sent.draft.pictures.len(), 1);
    // The marker is deleted as a whole, and a later picture has another number.
    app.line.editor.paste_picture(vec![1]);
    key(&mut app, KeyCode::Backspace);
    assert!(app.line.editor.is_empty());
    app.line.editor.paste_picture(vec![1]);
    assert_eq!(app.line.editor.text(), "[image 3: 1 KB]");
    for line in ["/model", "!ls", "# note"] {
        app.line.editor.set_text(line);
        assert!(keys(&mut app, "^v").is_empty(), "{line}");
    }
}

#[test]
fn taken_back_input_is_the_text_of_the_user() {
    let mut app = app();
    state(&mut app, "running");
    let file = json!({"type": "document", "blob_id": "blob_0190f2a4-0000-8000-8000-000000000009", "bytes": 3,
        "media_type": "text/plain", "name": "a.rs", "text": "abc"});
    feed(
        &mut app,
        json!({"type": "turn.queued", "input": [file, {"type": "text", "text": "explain @a.rs"}]}),
    );
    assert!(matches!(key(&mut app, KeyCode::Up), Some(Effect::TakeBack(_))));
    assert_eq!(app.line.editor.text(), "explain @a.rs");
}

#[test]
fn output_of_own_command_is_not_in_the_history() {
    let mut app = app();
    let output = "I ran this command myself: `make` (exit 2). Its output:\n```\nerror\n```";
    let content = json!([{"type": "text", "text": output}, {"type": "text", "text": "fix it"}]);
    feed(
        &mut app,
        json!({"type": "message.completed", "item": {"item_id": ITEM, "turn_id": TURN, "kind": "user_message",
        "status": "completed", "first_seq": 1, "last_seq": 2, "text": format!("{output}\nfix it"), "content": content}}),
    );
    key(&mut app, KeyCode::Up);
    assert_eq!(app.line.editor.text(), "fix it");
}
