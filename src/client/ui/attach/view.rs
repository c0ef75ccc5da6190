//! The view below the history: unfinished text, the open request, the state, the input. Pure.

use crate::client::terminal::escape;
use crate::client::terminal::format::short_id;
use crate::client::terminal::style::{Line, Tone, cut, width};
use crate::client::ui::attach::app::App;
use crate::client::ui::feedback;
use crate::client::ui::prompt;
use crate::client::ui::question;
use crate::client::ui::request_timing::Phase;
use crate::types::session::{Requires, SessionState};

/// Maximum rows of the input line.
const INPUT_ROWS: usize = 6;

/// Rows to draw, and the cursor's row and column in them.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    pub(super) rows: Vec<Line>,
    pub(super) cursor: (usize, usize),
}

/// Lays out for a terminal of `columns` × `rows`; the view is at least one row lower than the terminal.
pub(super) fn view(app: &App, columns: usize, rows: usize) -> View {
    let most = rows.saturating_sub(1).max(1);
    let mark = match (app.denying, app.editing, app.questions.front()) {
        (Some(_), ..) => "because: ".to_owned(),
        (None, Some(_), _) => "input: ".to_owned(),
        (None, None, Some(asked)) if app.is_asked() => question::input_mark(asked, app.answers.len()),
        (None, None, _) => "› ".to_owned(),
    };
    let (input, (row, column)) = app.editor.rows(&mark, columns, INPUT_ROWS.min(most.div_ceil(2)));
    let below = vec![hint(app, columns)];
    let mut shown = Vec::new();
    if !app.tail.is_empty() {
        shown.extend(Line::new(Tone::Plain, app.tail.as_str()).wrap(columns));
    }
    let room = most.saturating_sub(shown.len() + 1 + input.len() + below.len());
    shown.extend(request(app, columns, room));
    shown.push(status(app, columns));
    // On a tiny terminal the input has priority.
    let keep = most.saturating_sub(input.len()).min(shown.len());
    shown.drain(..shown.len() - keep);
    let cursor = (shown.len() + row, column);
    shown.extend(input);
    shown.extend(below);
    shown.truncate(most);
    View { rows: shown, cursor }
}

fn request(app: &App, columns: usize, room: usize) -> Vec<Line> {
    if matches!(app.phase(), None | Some(Phase::Hidden)) {
        return Vec::new();
    }
    // Show the keys once they are accepted.
    let keys = |keys: Line| match (app.confirmation(), app.phase()) {
        (Some(line), _) => line.wrap(columns),
        (None, Some(Phase::Answerable)) => keys.wrap(columns),
        (None, _) => vec![Line::new(Tone::Dim, "▌ …")],
    };
    if let Some(question) = app.questions.front() {
        let mut shown: Vec<Line> =
            question::shown(question).iter().flat_map(|line| line.wrap(columns)).collect();
        let keys = keys(question::keys(question));
        shown.truncate(room.saturating_sub(keys.len()).max(1));
        shown.extend(keys);
        return shown;
    }
    if app.feedback.is_some() {
        return keys(feedback::keys());
    }
    let Some(request) = app.requests.front() else { return Vec::new() };
    let body = prompt::rows(request, columns);
    let mut keys = keys(prompt::keys(request));
    if app.requests.len() > 1 {
        keys.push(Line::new(Tone::Dim, format!("▌ {} more wait after this one", app.requests.len() - 1)));
    }
    let space = room.saturating_sub(keys.len()).max(1);
    let mut shown = Vec::new();
    if body.len() <= space {
        shown.extend(body);
    } else {
        let space = space.saturating_sub(1).max(1);
        let first = app.scroll.min(body.len() - space);
        let hidden = body.len() - space;
        shown.extend(body.into_iter().skip(first).take(space));
        shown.push(Line::new(
            Tone::Warn,
            format!("▌ {first} lines above, {} below: PgUp and PgDn show them", hidden - first),
        ));
    }
    shown.extend(keys);
    shown
}

fn status(app: &App, columns: usize) -> Line {
    let session = &app.session;
    let (tone, state) = match (session.state, session.requires) {
        _ if app.lost => (Tone::Bad, "looking for the daemon…"),
        (SessionState::Running, _) => (Tone::Good, "running"),
        (SessionState::RequiresAction, Some(Requires::Question)) => (Tone::Warn, "asks a question"),
        (SessionState::RequiresAction, Some(Requires::UnknownOutcome)) => (Tone::Warn, "outcome unknown"),
        (SessionState::RequiresAction, _) => (Tone::Warn, "asks for permission"),
        (SessionState::Paused, _) => (Tone::Warn, "paused"),
        (other, _) => (Tone::Dim, other.name()),
    };
    let clients = match session.clients {
        0 | 1 => String::new(),
        n => format!(" · {n} clients"),
    };
    let thinking = session.thinking.map_or_else(String::new, |thinking| format!(" · thinking {thinking}"));
    let title = cut(&escape::line(&session.title), 40);
    let rest = format!(
        " · {} · {title} · {}{thinking} · {}{clients}",
        short_id(session.session_id),
        escape::line(&session.model),
        session.mode.name(),
    );
    let used = width(state) + 2;
    Line::new(tone, format!("─ {state}")).and(Tone::Dim, cut(&rest, columns.saturating_sub(used)))
}

fn hint(app: &App, columns: usize) -> Line {
    if !app.notice.is_empty() {
        return Line::new(Tone::Warn, cut(&app.notice, columns));
    }
    let text = if app.denying.is_some() {
        "Enter denies with these words · Esc goes back"
    } else if app.editing.is_some() {
        "Enter allows the call with this input · Alt-Enter new line · Esc goes back"
    } else if app.phase() == Some(Phase::Hidden) {
        "a request waits for an answer; it appears when you stop typing"
    } else if app.phase().is_some() && !app.editor.is_empty() {
        "Esc puts your text aside, to answer · Enter sends it · Ctrl-C aborts the turn"
    } else if !app.progress.is_empty() {
        return Line::new(Tone::Dim, cut(&format!("… {}", app.progress), columns));
    } else if app.is_asked() {
        "Enter answers the question · Ctrl-C aborts the turn · Ctrl-D detaches"
    } else if !app.questions.is_empty() {
        "Enter continues with these words · Ctrl-C aborts the turn · Ctrl-D detaches"
    } else if app.is_busy() {
        "Enter queues · Ctrl-C aborts the turn · Ctrl-D detaches"
    } else {
        "Enter sends · Alt-Enter new line · Ctrl-D detaches"
    };
    Line::new(Tone::Dim, cut(text, columns))
}
