//! The view below the history: unfinished text and calls, the open request, queue, state, input. Pure.

mod status;

use crate::answer::question::is_typed;
use crate::terminal::style::{StyledLine, Tone, cut, pad};
use crate::ui::attach::app::{App, LineContent};
use crate::ui::feedback;
use crate::ui::question;
use crate::ui::question_list::{self, QuestionStyle};
use crate::ui::render::todo_lines;
use crate::ui::request_list::{ListEntry, ListStyle};
use crate::ui::request_timing::Phase;
use crate::ui::summary::one_line;

/// Maximum rows of the input line.
const INPUT_ROWS: usize = 6;
/// Maximum rows of the list of the model.
const TODO_ROWS: usize = 8;
/// Rows that a request leaves for other parts of the view.
const ROWS_AROUND_REQUEST: usize = 3;

/// Rows to draw, and the cursor's row and column in them.
#[derive(Debug, PartialEq)]
pub(super) struct View {
    pub(super) rows: Vec<StyledLine>,
    pub(super) cursor: (usize, usize),
}

/// Lays out the view for the terminal's size. The view has at least one row less than the terminal.
pub(super) fn view(app: &App) -> View {
    let (columns, rows) = (app.columns, app.rows);
    let most = rows.saturating_sub(1).max(1);
    let (input, (row, column)) = input(app, columns, most);
    let mut below = bottom_rows(app, columns);
    below.truncate(most.saturating_sub(input.len() + 1));
    let mut state = queue(app, columns);
    state.extend(status::spinner_line(app, columns));
    state.push(status::status_line(app, columns));
    let room = most.saturating_sub(state.len() + input.len() + below.len());
    let request = request(app, columns, room.saturating_sub(ROWS_AROUND_REQUEST.min(room / 4)));
    let todos = todos(app, columns);
    let room = room.saturating_sub(request.len());
    // The newest part of the work is at the end, so its beginning is hidden if there is not enough room.
    let mut work = app.tail();
    if !work.is_empty() && work.iter().all(|line| line.width() <= columns) {
        work.extend(app.running());
    } else {
        work = work.iter().flat_map(|line| line.hard_wrap(columns)).chain(app.running()).collect();
    }
    if todos.len() < room {
        work.extend(todos);
    }
    work.splice(0..0, app.start_rows());
    let hidden = work.len().saturating_sub(room);
    let mut shown = work.split_off(hidden);
    shown.extend(request);
    shown.extend(state);
    // On a tiny terminal, the input line has priority.
    let keep = most.saturating_sub(input.len()).min(shown.len());
    shown.drain(..shown.len() - keep);
    let cursor = (shown.len() + row, column);
    shown.extend(input);
    shown.extend(below);
    shown.truncate(most);
    View { cursor: (cursor.0.min(shown.len().saturating_sub(1)), cursor.1), rows: shown }
}

/// The input line, and the cursor in it.
fn input(app: &App, columns: usize, most: usize) -> (Vec<StyledLine>, (usize, usize)) {
    let has_input = app.is_writing() || app.has_open_question();
    if app.setup.one_turn.is_some() && !has_input {
        return (vec![StyledLine::default()], (0, 0));
    }
    let mark = match (app.line.content, app.pending.questions.front()) {
        (LineContent::Words(_, ListEntry::DENY), _) => "No, because: ".into(),
        (LineContent::Words(..), _) => "Yes, and: ".into(),
        (LineContent::Arguments(_), _) => "input: ".into(),
        (LineContent::Input, Some(question)) if app.has_open_question() => {
            question::input_mark(question, app.pending.answers.as_slice().len())
        }
        (LineContent::Input, _) if app.setup.is_plain => "> ".into(),
        (LineContent::Input, _) => "› ".to_owned(),
    };
    app.line.editor.rows(&mark, columns, INPUT_ROWS.min(most.div_ceil(2)))
}

/// The rows below the input line: a menu, an overlay, or one line of hints.
fn bottom_rows(app: &App, columns: usize) -> Vec<StyledLine> {
    if app.overlay.is_some() {
        return app.overlay_rows();
    }
    if let Some(menu) = app.open_menu() {
        let width =
            menu.entries.iter().map(|entry| entry.label.chars().count()).max().unwrap_or(0).min(columns / 2);
        let row = |(nth, entry): (usize, &crate::ui::attach::app::MenuEntry)| {
            let is_here = nth == menu.selected;
            let mark = if is_here { "› " } else { "  " };
            let label = match entry.detail.is_empty() {
                true => entry.label.clone(),
                false => pad(&cut(&entry.label, width), width),
            };
            StyledLine::new(if is_here { Tone::Bold } else { Tone::Plain }, format!("{mark}{label}"))
                .and(Tone::Dim, format!("  {}", entry.detail))
                .cut(columns)
        };
        return menu.entries.iter().enumerate().map(row).collect();
    }
    vec![status::hint(app, columns)]
}

/// The open request or question.
fn request(app: &App, columns: usize, room: usize) -> Vec<StyledLine> {
    match app.phase() {
        None => return Vec::new(),
        Some(Phase::Hidden) => {
            let waits = if app.pending.questions.is_empty() { "a request waits" } else { "a question waits" };
            return vec![StyledLine::new(
                Tone::Warn,
                cut(&format!("▌ {waits}; it opens when you stop typing"), columns),
            )];
        }
        Some(Phase::Shown | Phase::Answerable) if app.pending.questions.is_empty() && !app.fits_request() => {
            let text = "▌ a request waits; make the terminal larger to answer it";
            return vec![StyledLine::new(Tone::Warn, cut(text, columns))];
        }
        Some(Phase::Shown | Phase::Answerable) => {}
    }
    let is_answerable = app.phase() == Some(Phase::Answerable);
    // Show the keys once the request accepts them.
    let keys = |keys: StyledLine| match app.confirmation() {
        Some(line) => line.wrap(columns),
        None if is_answerable => keys.wrap(columns),
        None => vec![StyledLine::new(Tone::Dim, "▌ …")],
    };
    if let Some(question) = app.pending.questions.front().filter(|question| is_typed(question)) {
        let look =
            QuestionStyle { columns, rows: room, is_answerable, is_typing: !app.line.editor.is_empty() };
        return question_list::rows(question, app.pending.answers.as_slice(), &app.pending.options, look);
    }
    if let Some(question) = app.pending.questions.front() {
        let mut shown: Vec<StyledLine> =
            question::question_lines(question).iter().flat_map(|line| line.wrap(columns)).collect();
        let keys = keys(question::keys(question));
        shown.truncate(room.saturating_sub(keys.len()).max(1));
        shown.extend(keys);
        return shown;
    }
    if app.pending.feedback.is_some() {
        return keys(feedback::keys());
    }
    app.pending.requests.rows(ListStyle {
        columns,
        rows: room,
        mode: app.session.summary.mode,
        is_answerable: is_answerable && !app.is_writing(),
        has_draft: !app.has_list_focus(),
        can_all: app.can_all(),
    })
}

/// The waiting inputs, and when each one is sent.
fn queue(app: &App, columns: usize) -> Vec<StyledLine> {
    let row = |when: &str, text: &str| {
        let text = one_line(text, columns.saturating_sub(20));
        StyledLine::new(Tone::Dim, format!("↳ {when:<16} ")).and(Tone::Plain, text).cut(columns)
    };
    let steered = app.queue.steered.iter().map(|text| row("after this step", text));
    let mut rows: Vec<StyledLine> =
        steered.chain(app.queue.inputs.iter().map(|(_, text)| row("after the turn", text))).collect();
    if rows.len() > 5 {
        let hidden = rows.len() - 4;
        rows.drain(4..);
        rows.push(StyledLine::new(Tone::Dim, format!("↳ + {hidden} more · agentctl queue")));
    }
    rows
}

fn todos(app: &App, columns: usize) -> Vec<StyledLine> {
    if app.todos.is_empty() || !app.is_busy() {
        return Vec::new();
    }
    let lines = todo_lines(&app.todos);
    let hidden = lines.len().saturating_sub(TODO_ROWS);
    let done = app.todos.iter().take_while(|todo| todo.status == types::todo::TodoStatus::Completed).count();
    let first = done.saturating_sub(1).min(hidden);
    let mut rows: Vec<StyledLine> =
        lines.into_iter().skip(first).take(TODO_ROWS).map(|line| line.cut(columns)).collect();
    if hidden > 0 {
        rows.push(StyledLine::new(Tone::Dim, format!("    + {hidden} more · /todos")));
    }
    rows
}

#[cfg(test)]
mod tests;
