//! A pager over everything that was shown, with the keys of `less`. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::terminal::style::{StyledLine, Tone, cut};
use crate::ui::cursor::Step;

/// Prefix of the lines of the user's inputs.
const USER_MARK: &str = "› ";

/// Result of a key in the pager.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PagerOutcome {
    Stay,
    Close,
    /// Open this text in an editor.
    Edit(String),
}

#[derive(Debug)]
pub(crate) struct Pager {
    lines: Vec<StyledLine>,
    /// The rows of the lines in the current width.
    rows: Vec<StyledLine>,
    columns: usize,
    /// Index of the first visible row. If it is larger than the last page allows, the end of the text is
    /// shown.
    top: usize,
    /// The searched text.
    query: String,
    /// Whether the user is still typing the searched text.
    is_typing: bool,
    notice: &'static str,
}

impl Pager {
    /// A pager that shows the end of the lines.
    pub(crate) fn at_end(lines: Vec<StyledLine>) -> Self {
        Self {
            lines,
            rows: Vec::new(),
            columns: 0,
            top: usize::MAX,
            query: String::new(),
            is_typing: false,
            notice: "",
        }
    }

    /// Adds lines at the beginning. The shown part stays where it is.
    pub(crate) fn prepend(&mut self, lines: Vec<StyledLine>) {
        if self.columns > 0 && self.top != usize::MAX {
            self.top += lines.iter().map(|line| line.hard_wrap(self.columns).len()).sum::<usize>();
        }
        self.lines.splice(0..0, lines);
        // Forces `view` to wrap all lines again.
        self.columns = 0;
    }

    /// The rows of the screen, for this size of the terminal.
    pub(crate) fn view(&mut self, columns: usize, rows: usize) -> Vec<StyledLine> {
        if self.columns != columns {
            self.columns = columns;
            self.rows = self.lines.iter().flat_map(|line| line.hard_wrap(columns)).collect();
        }
        let height = rows.saturating_sub(1).max(1);
        self.top = self.top.min(self.rows.len().saturating_sub(height));
        let mut shown: Vec<StyledLine> =
            self.rows.iter().skip(self.top).take(height).map(|row| self.marked(row)).collect();
        shown.resize(height, StyledLine::default());
        let last = (self.top + height).min(self.rows.len());
        let foot = match (self.is_typing, self.notice) {
            (true, _) => format!("/{}", self.query),
            (false, "") => format!(
                "{}–{last} of {} · / search · n N · {{ }} by input · g G · v editor · q close",
                self.top + 1,
                self.rows.len()
            ),
            (false, notice) => notice.into(),
        };
        shown.push(StyledLine::new(Tone::Dim, cut(&foot, columns)));
        shown
    }

    /// The row, coloured as a whole if it contains the searched text.
    fn marked(&self, row: &StyledLine) -> StyledLine {
        if self.query.is_empty() || !self.is_hit(row) {
            return row.clone();
        }
        StyledLine(row.0.iter().map(|(_, text)| (Tone::Link, text.clone())).collect())
    }

    fn is_hit(&self, row: &StyledLine) -> bool {
        row.plain().to_lowercase().contains(&self.query.to_lowercase())
    }

    /// Handles a key on a terminal with `rows` rows.
    pub(crate) fn on_key(&mut self, key: KeyEvent, rows: usize) -> PagerOutcome {
        self.notice = "";
        let page = rows.saturating_sub(2).max(1);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if self.is_typing {
            match key.code {
                KeyCode::Enter => {
                    self.is_typing = false;
                    self.find(Step::Next, self.top);
                }
                KeyCode::Esc => (self.is_typing, self.query) = (false, String::new()),
                KeyCode::Backspace => _ = self.query.pop(),
                KeyCode::Char(c) if !is_control => self.query.push(c),
                _ => {}
            }
            return PagerOutcome::Stay;
        }
        match key.code {
            KeyCode::Char('c' | 'o') if is_control => return PagerOutcome::Close,
            KeyCode::Char('q') | KeyCode::Esc => return PagerOutcome::Close,
            KeyCode::Char('f') if is_control => self.top = self.top.saturating_add(page),
            KeyCode::Char('b') if is_control => self.top = self.top.saturating_sub(page),
            KeyCode::Char('d') => self.top = self.top.saturating_add(page / 2),
            KeyCode::Char('u') => self.top = self.top.saturating_sub(page / 2),
            KeyCode::Char(' ' | 'f') | KeyCode::PageDown => self.top = self.top.saturating_add(page),
            KeyCode::Char('b') | KeyCode::PageUp => self.top = self.top.saturating_sub(page),
            KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => self.top = self.top.saturating_add(1),
            KeyCode::Char('k') | KeyCode::Up => self.top = self.top.saturating_sub(1),
            KeyCode::Char('g' | '<') | KeyCode::Home => self.top = 0,
            KeyCode::Char('G' | '>') | KeyCode::End => self.top = usize::MAX,
            KeyCode::Char('/') => (self.is_typing, self.query) = (true, String::new()),
            KeyCode::Char('n') => self.find(Step::Next, self.top.saturating_add(1)),
            KeyCode::Char('N') => self.find(Step::Previous, self.top),
            KeyCode::Char('}') => {
                let next = self.rows.iter().skip(self.top + 1).position(is_input);
                self.top = next.map_or(self.top, |at| self.top + 1 + at);
            }
            KeyCode::Char('{') => {
                let before = self.rows.iter().take(self.top).rposition(is_input);
                self.top = before.unwrap_or(0);
            }
            KeyCode::Char('v') => {
                let text: Vec<String> = self.lines.iter().map(StyledLine::plain).collect();
                return PagerOutcome::Edit(text.join("\n"));
            }
            _ => {}
        }
        PagerOutcome::Stay
    }

    /// Moves to the next row with the searched text.
    fn find(&mut self, step: Step, from: usize) {
        if self.query.is_empty() {
            return;
        }
        let line = match step {
            Step::Next => {
                self.rows.iter().skip(from).position(|row| self.is_hit(row)).map(|line| from + line)
            }
            Step::Previous => self.rows.iter().take(from).rposition(|row| self.is_hit(row)),
        };
        match line {
            Some(line) => self.top = line,
            None => self.notice = "not found",
        }
    }
}

fn is_input(row: &StyledLine) -> bool {
    row.0.first().is_some_and(|(tone, text)| *tone == Tone::User && text.starts_with(USER_MARK))
}

#[cfg(test)]
mod tests {
    use crate::ui::pager::*;
    use crate::ui::screen_files::check_screen;

    fn key(pager: &mut Pager, typed: &str) {
        for c in typed.chars() {
            let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
            pager.on_key(KeyEvent::new(code, KeyModifiers::NONE), 5);
        }
    }

    fn first(pager: &mut Pager) -> String {
        pager.view(20, 5)[0].plain()
    }

    #[test]
    fn pager_screen_matches_fixture() {
        let output =
            (1..=60).map(|n| StyledLine::new(Tone::Plain, format!("  │ test store::case_{n} ... ok")));
        let lines: Vec<StyledLine> = [
            StyledLine::new(Tone::User, "› run the tests"),
            StyledLine::new(Tone::Tool, "● Bash cargo test  8.1 s"),
        ]
        .into_iter()
        .chain(output)
        .chain([StyledLine::new(Tone::Plain, "All of them pass. ".repeat(8))])
        .collect();
        check_screen("pager", |(columns, rows)| {
            let mut pager = Pager::at_end(lines.clone());
            for c in "/case_5\n".chars() {
                let code = if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
                pager.view(columns, rows);
                pager.on_key(KeyEvent::new(code, KeyModifiers::NONE), rows);
            }
            pager.view(columns, rows)
        });
    }

    #[test]
    fn added_beginning_leaves_shown_part_where_it_is() {
        let line = |n: usize| StyledLine::new(Tone::Plain, format!("line {n}"));
        let mut pager = Pager::at_end((50..100).map(line).collect());
        assert_eq!(first(&mut pager), "line 96");
        key(&mut pager, "k");
        pager.prepend((0..50).map(line).collect());
        assert_eq!(first(&mut pager), "line 95");
        key(&mut pager, "g");
        assert_eq!(first(&mut pager), "line 0");
    }

    #[test]
    fn pager_moves_by_pages_inputs_and_search() {
        let line = |n: usize| match n % 10 {
            0 => StyledLine::new(Tone::User, format!("› input {n}")),
            _ => StyledLine::new(Tone::Plain, format!("line {n}")),
        };
        let mut pager = Pager::at_end((0..100).map(line).collect());
        assert_eq!(first(&mut pager), "line 96");
        key(&mut pager, "{");
        assert_eq!(first(&mut pager), "› input 90");
        key(&mut pager, "g/line 3\n");
        assert_eq!(first(&mut pager), "line 3");
        key(&mut pager, "n");
        assert_eq!(first(&mut pager), "line 31");
        key(&mut pager, "N");
        assert_eq!(first(&mut pager), "line 3");
        key(&mut pager, "} ");
        assert_eq!(first(&mut pager), "line 13");
        key(&mut pager, "/nosuch\n");
        assert_eq!(pager.view(20, 5).last().map(StyledLine::plain), Some("not found".into()));
        assert_eq!(
            pager.on_key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE), 5),
            PagerOutcome::Close
        );
    }
}
