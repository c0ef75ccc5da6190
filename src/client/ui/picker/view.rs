//! The screen of the list of sessions. Pure.

use crate::terminal::escape;
use crate::terminal::format::{age, cost};
use crate::terminal::style::{StyledLine, Tone, cut, cut_start};
use crate::terminal::table::{Table, column};
use crate::ui::picker::list::Picker;
use crate::ui::request_list::home_relative;
use crate::ui::session_state::{last_line, state};
use crate::ui::summary::one_line;
use types::session::SessionView;
use types::time::Timestamp;

/// Maximum rows of a preview.
const PREVIEW_ROWS: usize = 10;

/// The rows of the screen, at most as many as the terminal has.
pub(super) fn view(picker: &Picker, (columns, rows): (usize, usize), now: Timestamp) -> Vec<StyledLine> {
    let mut bottom = bottom(picker, columns);
    bottom.truncate(rows.saturating_sub(3));
    let room = rows.saturating_sub(bottom.len() + 2).max(2);
    let mut shown = vec![head(picker, columns)];
    shown.extend(table(picker, columns, room, now));
    shown.resize(rows.saturating_sub(bottom.len()).max(shown.len()), StyledLine::default());
    shown.extend(bottom);
    shown.truncate(rows);
    shown.into_iter().map(|line| line.cut(columns)).collect()
}

fn head(picker: &Picker, columns: usize) -> StyledLine {
    let places = match picker.is_everywhere {
        true => "this folder  [all folders]",
        false => "[this folder]  all folders",
    };
    let folder = cut_start(&escape::line(&home_relative(&picker.folder)), columns / 3);
    let head = StyledLine::new(Tone::Bold, "Resume  ").and(Tone::Dim, format!("{folder}  {places}"));
    let typed = match picker.query.as_str() {
        "" => "type to search".into(),
        query => format!("type to search: {}", escape::line(query)),
    };
    head.with_right(&typed, columns)
}

/// The head of the table, and the sessions around the selected one.
fn table(picker: &Picker, columns: usize, room: usize, now: Timestamp) -> Vec<StyledLine> {
    if picker.sessions.is_empty() {
        let hint = if picker.is_everywhere { "  no session" } else { "  no session · Ctrl-A all folders" };
        return vec![StyledLine::default(), StyledLine::new(Tone::Dim, hint)];
    }
    let mut table = Table::new([
        column("").between(1, 1),
        column("#").right(),
        column("TITLE").between(10, 28),
        column("STATE").between(14, 24).rank(1),
        column("AGE").right(),
        column("COST").right().rank(2),
        column("FOLDER").between(8, 24).rank(if picker.is_everywhere { 3 } else { 5 }).keep_end(),
        column("LAST LINE").between(10, 60).rank(4),
    ]);
    // The head takes one row. Scroll so that the selected session stays visible.
    let height = room.saturating_sub(1).max(1);
    let first = (picker.selected + 1).saturating_sub(height);
    for (nth, session) in picker.sessions.iter().enumerate().skip(first).take(height) {
        let is_here = nth == picker.selected;
        let title = match session.summary.title.trim() {
            "" => "(no input yet)".to_owned(),
            title => escape::line(title).into_owned(),
        };
        table.push([
            (Tone::User, if is_here { "›".into() } else { String::new() }),
            (Tone::Bold, session.number.to_string()),
            (if is_here { Tone::Bold } else { Tone::Plain }, title),
            state(session),
            (Tone::Dim, age(now.since(session.summary.updated_at_ms))),
            (Tone::Plain, cost(session.summary.cost_usd_micros, session.summary.cost_at_least_usd_micros)),
            (Tone::Dim, escape::line(&home_relative(&session.cwd)).into_owned()),
            last_words(session),
        ]);
    }
    table.lines(Some(columns))
}

/// The text that the search matched, or the last line.
fn last_words(session: &SessionView) -> (Tone, String) {
    match session.matches.first() {
        Some(result) => (Tone::Plain, one_line(&result.snippet, 400)),
        None => {
            let (tone, text) = last_line(session);
            (tone, one_line(text, 400))
        }
    }
}

/// The preview, the details of the selected session, and the keys.
fn bottom(picker: &Picker, columns: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    if let Some((session, messages)) = &picker.preview {
        let number = picker.sessions.iter().find(|it| it.session_id == *session).map_or(0, |it| it.number);
        rows.push(StyledLine::new(
            Tone::Dim,
            format!("── last messages of #{number} {}", "─".repeat(columns)),
        ));
        rows.extend(preview(messages, columns));
    }
    let about = match (&picker.renaming, picker.notice.as_str(), picker.current()) {
        (Some(title), ..) => {
            let shown = cut_start(&escape::line(title), columns.saturating_sub(12));
            StyledLine::new(Tone::User, "new title: ").and(Tone::Plain, shown)
        }
        (None, "", Some(session)) => {
            let folder = home_relative(&session.cwd);
            let text = format!(
                "{} · {} · {}",
                escape::line(&folder),
                escape::line(&session.summary.model),
                session.summary.mode.name()
            );
            let more = if picker.has_more { " · older ones: search" } else { "" };
            StyledLine::new(Tone::Dim, format!("{text}{more}"))
        }
        (None, "", None) => StyledLine::default(),
        (None, notice, _) => StyledLine::new(Tone::Warn, escape::line(notice).into_owned()),
    };
    rows.push(about);
    let keys = match (&picker.renaming, &picker.preview) {
        (Some(_), _) => "Enter rename · Esc back",
        (None, Some(_)) => "Enter attach · ↑↓ · Space or Tab close the preview · Ctrl-R rename",
        (None, None) if picker.query.is_empty() => {
            "Enter attach · Space preview · Ctrl-A all folders · Ctrl-R rename · Esc new"
        }
        (None, None) => "Enter attach · Tab preview · Ctrl-A all folders · Ctrl-R rename · Esc new",
    };
    rows.push(StyledLine::new(Tone::Dim, cut(keys, columns)));
    rows
}

/// The end of the last messages, in at most `PREVIEW_ROWS` rows.
fn preview(messages: &[(bool, String)], columns: usize) -> Vec<StyledLine> {
    let mut rows: Vec<StyledLine> = Vec::new();
    for (is_users, text) in messages {
        let (tone, mark) = if *is_users { (Tone::User, "› ") } else { (Tone::Plain, "  ") };
        for (nth, line) in text.trim_end().lines().enumerate() {
            let lead = if nth == 0 { mark } else { "  " };
            rows.extend(StyledLine::new(tone, format!("{lead}{}", escape::line(line))).wrap(columns));
        }
    }
    if rows.is_empty() {
        rows.push(StyledLine::new(Tone::Dim, "  no message yet"));
    }
    rows.split_off(rows.len().saturating_sub(PREVIEW_ROWS))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;
    use crate::resolve_id::sample;
    use crate::ui::screen_files::check_screen;

    fn session(number: u64, title: &str, changes: serde_json::Value) -> SessionView {
        let mut session = sample(&format!("ses_0190f2a4-0000-7000-8000-{number:012}"), title);
        let fields = session.as_object_mut().expect("an object");
        fields.extend([
            ("number".to_owned(), json!(number)),
            ("cwd".to_owned(), json!("/w/shop")),
            ("updated_at_ms".to_owned(), json!(1_000)),
        ]);
        fields.extend(changes.as_object().expect("an object").clone());
        serde_json::from_value(session).expect("a session")
    }

    pub(crate) fn picker() -> Picker {
        let failed = json!({"subtype": "llm_error", "kind": "unauthorized", "message": "mock answered 401: invalid key", "ended_at_ms": 1});
        let sessions = vec![
            session(
                12,
                "fix login",
                json!({"state": "requires_action", "requires": "permission", "activity": "Edit src/lib.rs",
                    "cost_usd_micros": 40_000, "cost_at_least_usd_micros": 40_000}),
            ),
            session(11, "loader without unwrap", json!({"last_line": "`load` now returns the error"})),
            session(9, "changelog for 0.4", json!({"last_turn": failed, "cost_usd_micros": 0})),
            session(8, &"a very long title ".repeat(4), json!({})),
        ];
        Picker { sessions, folder: "/w/shop".into(), query: "lo".into(), ..Picker::default() }
    }

    #[test]
    fn picker_screen_matches_fixture() {
        check_screen("picker", |size| view(&picker(), size, Timestamp(61_000)));
    }

    #[test]
    fn picker_preview_screen_matches_fixture() {
        check_screen("picker-preview", |size| {
            let mut picker = Picker { query: String::new(), ..picker() };
            let answer =
                "The loader panics on a missing file.\n\n1. Return the error\n2. Handle it in main".repeat(3);
            let id = picker.sessions[0].session_id;
            picker.set_preview(id, vec![(true, "the tests fail".into()), (false, answer)]);
            view(&picker, size, Timestamp(61_000))
        });
    }

    #[test]
    fn picker_fits_any_size_with_any_text() {
        let mut picker = picker();
        picker.sessions.push(session(7, "世界\u{1b}[2J\u{202e}", json!({"last_line": "\u{1b}]0;x"})));
        let id = picker.sessions[0].session_id;
        for renaming in [None, Some("\u{1b}new".to_owned())] {
            picker.renaming = renaming;
            for preview in [None, Some((id, vec![(false, "\u{1b}[2Jtext\n".repeat(30))]))] {
                picker.preview = preview;
                for size in [(20, 5), (40, 10), (59, 24), (80, 24), (200, 60)] {
                    let rows = view(&picker, size, Timestamp(61_000));
                    assert!(rows.len() <= size.1, "{size:?}: {}", rows.len());
                    assert!(rows.iter().all(|row| row.width() <= size.0), "{size:?}");
                    assert!(!rows.iter().any(|row| row.plain().contains('\u{1b}')));
                }
            }
        }
    }
}
