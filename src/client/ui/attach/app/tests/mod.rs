//! Tests of the attach view without a terminal: events and keys in, screens and effects out.

mod input;
mod requests;
mod screen;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyModifiers};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::connection::wire::ReceivedEvent;
use crate::fake_daemon::{
    ASK, CALL, ITEM, SESSION, TURN, permission_requested, permission_resolved, text_delta,
};
use crate::resolve_id::sample;
use crate::ui::attach::app::*;
use crate::ui::attach::view::view;
use crate::ui::editor::Editor;
use types::permission::{Decision, Scope};

fn app() -> App {
    App::new(serde_json::from_value(sample(SESSION, "fix it")).expect("a session"), ClientSetup::default())
}

/// A new input that is sent at once.
fn submit(text: &str) -> Effect {
    let mut editor = Editor::default();
    editor.insert(text);
    let draft = editor.take_input();
    Effect::Submit(Submission { draft, ..Submission::new(text.into(), None) })
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
    app.on_event(&ReceivedEvent::parse(&raw).expect("an event"));
    app.update(now);
}

/// Handles an event long after the previous one, so that requests appear and accept keys.
fn feed(app: &mut App, body: Value) {
    let later = now();
    feed_at(app, body, later);
    app.update(later + PAUSE);
}

/// A time longer than any delay of a request.
const PAUSE: Duration = Duration::from_secs(2);

/// A time that is later than all earlier results.
fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    static PAUSES: AtomicU32 = AtomicU32::new(0);
    *START.get_or_init(Instant::now) + PAUSE * PAUSES.fetch_add(3, Ordering::Relaxed)
}

fn state(app: &mut App, state: &str) {
    feed(app, json!({"type": "session.status", "state": state, "requires": null}));
}

/// Types slowly. `^x` is Ctrl-X, and `~` is Alt-Enter.
fn keys(app: &mut App, typed: &str) -> Vec<Effect> {
    keys_with(app, typed, || {
        let later = now();
        (later, later + PAUSE)
    })
}

/// Types keys. Updates at both times of each pair, and presses the key at the second time.
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
        let (before, time) = times();
        app.update(before);
        app.update(time);
        effects.extend(app.on_input(&Input::Key(key), time));
    }
    effects
}

fn assert_effects(effects: &[Effect], expected: &[Effect]) {
    assert_eq!(format!("{effects:?}"), format!("{expected:?}"));
}

fn rows(app: &mut App, columns: usize, height: usize) -> Vec<String> {
    app.set_environment((columns, height), app.clock);
    view(app).rows.iter().map(StyledLine::plain).collect()
}

fn history(app: &mut App) -> Vec<String> {
    app.take_history().iter().map(StyledLine::plain).collect()
}
