//! Overlays of the input line: the keys, the points to rewind to, the search of the history. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::terminal::style::{StyledLine, Tone};
use crate::ui::attach::app::model_list::{ListKeyResult, ModelList};
use crate::ui::attach::app::{App, Effect, OlderInputs, Point};
use crate::ui::pager::Pager;
use crate::ui::summary::one_line;
use types::model::ModelView;

/// Rows of a list in an overlay.
const LIST_ROWS: usize = 10;
/// A terminal with fewer columns is narrow.
const NARROW_COLUMNS: usize = 40;

#[derive(Debug)]
pub(crate) enum Overlay {
    /// The keys; the next key closes it.
    Keys,
    /// The warnings; the next key closes it.
    Warnings,
    /// The points or the models are being read.
    Loading,
    Models(ModelList),
    /// Points to rewind to, oldest first, and the selected one.
    Rewind(Vec<Point>, usize),
    /// The search of earlier inputs: the typed text, and the number of newer matches to skip.
    Search(String, usize),
}

const KEYS: &[(&str, &str)] = &[
    (
        "Write",
        "Enter send · Alt-Enter, Ctrl-J or \\ Enter new line · Ctrl-G editor · @ file · Ctrl-V picture · / command · ! shell",
    ),
    ("", "↑ ↓ history · Ctrl-R search it · Ctrl-U Ctrl-K Ctrl-W delete · Ctrl-Y bring back · Ctrl-C clear"),
    ("Turn", "Esc or Ctrl-C stop · Enter after this step · Tab after the turn · ↑ takes the last line back"),
    ("", "Shift-Tab mode · Esc Esc go back to an earlier input"),
    ("Requests", "1–6 or ↑↓ Enter answer · ←→ other request · Tab add words · e change · Esc no, and stop"),
    ("Look", "Ctrl-O all of it (/ search, n N, { } by input, v editor, q close) · F2 warnings"),
    ("", "← on an empty line all sessions · /resume another session · /model · /copy the answer"),
    ("Leave", "Ctrl-D, or Ctrl-C twice · the session continues"),
];

impl App {
    /// Shows the points of the conversation, newest selected.
    pub(crate) fn set_points(&mut self, points: Vec<Point>) {
        if !matches!(self.overlay, Some(Overlay::Loading)) {
            return;
        }
        self.overlay = None;
        match points.len() {
            0 => self.notice = "there is no earlier input to go back to".into(),
            count => self.overlay = Some(Overlay::Rewind(points, count - 1)),
        }
    }

    /// Adds inputs of earlier sessions. `next` is the cursor of still older ones.
    pub(crate) fn add_history(&mut self, older: Vec<String>, next: Option<String>) {
        self.line.editor.remember_older(older);
        self.line.older_inputs = next.map_or(OlderInputs::Complete, OlderInputs::ReadTo);
        if matches!(self.overlay, Some(Overlay::Search(..))) {
            let more = self.more_history();
            self.wanted.extend(more);
        }
    }

    /// Requests older inputs while the history is searched, until all inputs of the folder are read.
    pub(super) fn more_history(&self) -> Option<Effect> {
        match &self.line.older_inputs {
            OlderInputs::Unread => Some(Effect::LoadHistory(None)),
            OlderInputs::ReadTo(cursor) => Some(Effect::LoadHistory(Some(cursor.clone()))),
            OlderInputs::Complete => None,
        }
    }

    /// Shows the models to choose from.
    pub(crate) fn set_models(&mut self, models: Vec<ModelView>) {
        if !matches!(self.overlay, Some(Overlay::Loading)) {
            return;
        }
        self.overlay = None;
        match models.is_empty() {
            true => self.notice = "no models are known; type /model PROVIDER/MODEL".into(),
            false => {
                self.overlay = Some(Overlay::Models(ModelList::new(models, &self.session.summary.model)))
            }
        }
    }

    pub(crate) fn overlay_rows(&self) -> Vec<StyledLine> {
        let dim = |text: &str| StyledLine::new(Tone::Dim, text);
        match &self.overlay {
            None => Vec::new(),
            Some(Overlay::Loading) => vec![dim("reading…")],
            Some(Overlay::Models(list)) => list.rows(&self.session.summary.model, self.columns),
            Some(Overlay::Keys) => KEYS
                .iter()
                .flat_map(|(group, keys)| {
                    // On a narrow terminal there is no room for the names of the groups.
                    let wide = if self.columns < NARROW_COLUMNS { 0 } else { 10 };
                    let rows =
                        StyledLine::new(Tone::Plain, *keys).wrap(self.columns.saturating_sub(wide).max(10));
                    let lead = move |nth: usize| {
                        let name = if nth == 0 { *group } else { "" };
                        if wide == 0 { String::new() } else { format!("{name:<wide$}") }
                    };
                    rows.into_iter()
                        .enumerate()
                        .map(move |(nth, row)| row.with_lead(Tone::Bold, &lead(nth)))
                        .collect::<Vec<_>>()
                })
                .collect(),
            Some(Overlay::Warnings) => self
                .warnings
                .iter()
                .flat_map(|text| StyledLine::new(Tone::Warn, text.as_str()).wrap(self.columns))
                .collect(),
            Some(Overlay::Rewind(points, selected)) => {
                let first = (selected + 1).saturating_sub(LIST_ROWS);
                let row = |(nth, point): (usize, &Point)| {
                    let (tone, mark) =
                        if nth == *selected { (Tone::Bold, "› ") } else { (Tone::Plain, "  ") };
                    StyledLine::new(
                        tone,
                        format!("{mark}{}", one_line(&point.text, self.columns.saturating_sub(4))),
                    )
                };
                let head = StyledLine::new(Tone::Bold, "Go back to before one of your inputs:");
                let rows = points.iter().enumerate().skip(first).take(LIST_ROWS).map(row);
                let keys = dim("↑↓ · Enter the conversation · f the conversation and the files · Esc stay");
                std::iter::once(head).chain(rows).chain([keys.cut(self.columns)]).collect()
            }
            Some(Overlay::Search(typed, skip)) => {
                let none = match self.line.older_inputs {
                    OlderInputs::Complete => "(no earlier input in this folder)",
                    _ => "(reading earlier inputs…)",
                };
                let shown =
                    self.line.editor.search(typed, *skip).map_or(none.to_owned(), |text| one_line(text, 400));
                vec![
                    StyledLine::new(Tone::User, "history: ")
                        .and(Tone::Plain, typed.as_str())
                        .cut(self.columns),
                    StyledLine::new(Tone::Plain, format!("  {shown}")).cut(self.columns),
                    dim("Ctrl-R older · Enter take · Esc close"),
                ]
            }
        }
    }

    /// Opens the pager over everything that was shown.
    pub(super) fn open_pager(&mut self) {
        let mut lines = self.scrollback.record.clone();
        lines.extend(self.tail());
        // Show each request in full, because it may be longer than its area.
        for question in &self.pending.questions {
            lines.push(StyledLine::default());
            lines.extend(crate::ui::question::question_lines(question));
        }
        for request in self.pending.requests.iter() {
            lines.push(StyledLine::default());
            lines.extend(crate::ui::prompt::question(request));
        }
        self.pager = Some(Pager::at_end(lines));
    }

    /// Handles a key for the open overlay. Returns false if the key is for the input line.
    pub(super) fn on_overlay_key(&mut self, key: KeyEvent) -> (bool, Option<Effect>) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match &mut self.overlay {
            None => return (false, None),
            Some(Overlay::Keys | Overlay::Warnings | Overlay::Loading) => self.overlay = None,
            Some(Overlay::Rewind(points, selected)) => match key.code {
                KeyCode::Up => *selected = selected.saturating_sub(1),
                KeyCode::Down => *selected = (*selected + 1).min(points.len() - 1),
                KeyCode::Enter | KeyCode::Char('f') => {
                    let point = points.swap_remove(*selected);
                    let files = key.code == KeyCode::Char('f');
                    self.overlay = None;
                    return (true, Some(Effect::Rewind(point, files)));
                }
                KeyCode::Esc | KeyCode::Char('q') => self.overlay = None,
                KeyCode::Char('c') if is_control => self.overlay = None,
                _ => {}
            },
            Some(Overlay::Models(list)) => match list.on_key(key) {
                ListKeyResult::Nothing => {}
                ListKeyResult::Closed => self.overlay = None,
                ListKeyResult::Model(model) => {
                    self.overlay = None;
                    return (true, Some(Effect::SetModel(model)));
                }
            },
            Some(Overlay::Search(typed, skip)) => match key.code {
                KeyCode::Char('r') if is_control && self.line.editor.search(typed, *skip + 1).is_some() => {
                    *skip += 1
                }
                // No older input matches.
                KeyCode::Char('r') if is_control => {}
                KeyCode::Char('c' | 'g') if is_control => self.overlay = None,
                KeyCode::Esc => self.overlay = None,
                KeyCode::Backspace => {
                    typed.pop();
                    *skip = 0;
                }
                KeyCode::Enter | KeyCode::Tab | KeyCode::Right => {
                    let text = self.line.editor.search(typed, *skip).map(str::to_owned);
                    self.overlay = None;
                    if let Some(text) = text {
                        self.line.editor.set_text(&text);
                    }
                }
                KeyCode::Char(c) if !is_control => {
                    typed.push(c);
                    *skip = 0;
                }
                _ => {}
            },
        }
        (true, None)
    }
}
