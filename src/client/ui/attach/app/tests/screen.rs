//! Tests of the drawn parts around the text: unfinished lines, spinner, status.

use super::*;

#[test]
fn finished_lines_move_to_history_and_last_line_grows() {
    let mut app = app();
    feed(&mut app, text_delta("first\n\nsec"));
    feed(&mut app, text_delta("ond"));
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
    app.set_environment((20, 8), app.clock);
    feed(&mut app, text_delta(&(1..=40).map(|n| format!("word{n} ")).collect::<String>()));
    assert!(history(&mut app).is_empty(), "its marks may still change");
    let shown = rows(&mut app, 20, 8);
    assert_eq!(shown.len(), 7);
    assert!(shown[3].ends_with("word40"), "{shown:?}");
}

#[test]
fn attach_view_fits_any_terminal_size() {
    let mut app = app();
    feed(&mut app, permission_requested());
    feed(&mut app, text_delta(&"word ".repeat(100)));
    app.on_input(&Input::Paste("x\n".repeat(20)), now());
    for (columns, height) in [(200, 60), (40, 10), (20, 4), (10, 2)] {
        app.set_environment((columns, height), app.clock);
        let view = view(&app);
        assert!(view.rows.len() < height.max(2), "{columns}×{height}: {}", view.rows.len());
        assert!(view.cursor.0 < view.rows.len(), "{columns}×{height}");
    }
    assert!(app.pending.requests.iter().any(|r| r.request_id.to_string() == ASK));
}

#[test]
fn session_title_is_escaped_in_status_line() {
    let mut app = app();
    feed(&mut app, json!({"type": "session.updated", "title": "\u{1b}[2Jgone"}));
    assert!(rows(&mut app, 80, 24).iter().any(|row| row.contains("⟦ESC⟧[2Jgone")));
}

#[test]
fn spinner_names_phase_seconds_and_tokens() {
    let mut app = app();
    state(&mut app, "running");
    feed(&mut app, json!({"type": "turn.phase", "phase": "model_call", "at_ms": 1_000}));
    app.set_environment((80, 24), Timestamp(9_000));
    assert_eq!(rows(&mut app, 80, 24)[0], "⠼ waiting for replay · 8 s · Esc stops");
    let mut delta = text_delta(&"word ".repeat(8));
    delta["at_ms"] = json!(9_000);
    feed(&mut app, delta);
    assert!(rows(&mut app, 80, 24).contains(&"⠼ writing · 0 s · ↓ 10 tokens · Esc stops".to_owned()));
    app.setup.is_plain = true;
    assert!(rows(&mut app, 80, 24).iter().any(|row| row.starts_with("working: writing")));
}

#[test]
fn failed_attempts_are_one_row_that_counts() {
    let mut app = app();
    state(&mut app, "running");
    for attempt in [1, 2] {
        feed(
            &mut app,
            json!({"type": "retry", "attempt": attempt, "max": 10, "delay_ms": 2_000, "reason": "overloaded",
                "kind": "overloaded"}),
        );
    }
    let shown = rows(&mut app, 80, 24);
    let attempts: Vec<&String> = shown.iter().filter(|row| row.contains("of 10 failed")).collect();
    assert_eq!(attempts, ["  attempt 2 of 10 failed, next in 2.0 s: overloaded"], "{shown:?}");
    assert!(history(&mut app).is_empty());
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
    app.progress.context = Some((170_000, Some(200_000)));
    assert!(status(&mut app, 90).ends_with("context 85%, /compact · $0.04"));
    app.progress.context = Some((12_000, Some(200_000)));
    assert_eq!(status(&mut app, 50), "─ #12 fix it · ready · replay · default ──── $0.04");
    assert!(status(&mut app, 20).starts_with("─ #12 fix it"));
}

#[test]
fn left_out_part_is_named_and_read_for_the_pager() {
    let mut app = app();
    app.session.number = 12;
    app.omit_earlier(40, vec![(TURN.parse().expect("an id"), "then the changelog".into())]);
    assert_eq!(
        history(&mut app),
        ["⋯ earlier messages are left out here · Ctrl-O shows them, or agentctl logs 12"]
    );
    feed(&mut app, json!({"type": "turn.queued", "input": [{"type": "text", "text": "then the changelog"}]}));
    assert_eq!(app.queue.inputs.len(), 1, "it is known already");
    feed(&mut app, text_delta("the end\n\n"));
    assert!(matches!(keys(&mut app, "^o").as_slice(), [Effect::LoadEarlier]));
    app.add_earlier(vec![StyledLine::new(Tone::Plain, "the beginning")]);
    let shown = app.pager.as_mut().expect("a pager").view(40, 10);
    assert_eq!(shown[0].plain(), "the beginning");
    assert!(shown.iter().any(|row| row.plain() == "the end"), "{shown:?}");
    keys(&mut app, "q");
    assert!(keys(&mut app, "^o").is_empty(), "it is read once");
}

#[test]
fn start_lines_are_shown_at_once_and_history_waits_until_they_are_complete() {
    let mut app = app();
    let line = |text: &str| StyledLine::new(Tone::Bold, text);
    app.show_start_lines(vec![line("agentd · /w · main")]);
    feed(&mut app, text_delta("first\n\nsec"));
    assert_eq!(rows(&mut app, 60, 24)[0], "agentd · /w · main");
    assert!(history(&mut app).is_empty());
    app.finish_start_lines(Some(vec![line("agentd · /w · main, clean"), line("1 session waits")]));
    assert_eq!(history(&mut app), ["agentd · /w · main, clean", "1 session waits", "first"]);
    assert_eq!(rows(&mut app, 60, 24)[1], "sec");
    app.finish_start_lines(Some(vec![line("late")]));
    assert!(history(&mut app).is_empty());
}
