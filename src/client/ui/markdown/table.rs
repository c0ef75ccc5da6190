//! Tables: columns are as wide as their text, and aligned as the Markdown says. Cells wrap if the terminal is
//! too narrow.

use pulldown_cmark::Alignment;

use crate::terminal::style::{StyledLine, Tone};

/// Blanks between two columns.
const GAP: usize = 2;
/// Minimum width of a column. If a table still does not fit, it becomes a list.
const MIN_WIDTH: usize = 6;

/// A table that is being read.
#[derive(Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) rows: Vec<Vec<StyledLine>>,
}

impl Table {
    /// The rows of the table; the first one is its heading.
    pub(super) fn lines(&self, columns: usize) -> Vec<StyledLine> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |index: usize| self.rows.iter().filter_map(|row| row.get(index)).map(StyledLine::width).max();
        let mut widths: Vec<usize> = (0..count).map(|index| width(index).unwrap_or(0).max(1)).collect();
        let room = columns.saturating_sub(1 + GAP * count.saturating_sub(1));
        while widths.iter().sum::<usize>() > room {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_WIDTH) else {
                return self.as_list(columns);
            };
            *widest -= 1;
        }
        let mut lines = Vec::new();
        for (nth, row) in self.rows.iter().enumerate() {
            lines.extend(self.row(row, &widths, nth == 0));
            if nth == 0 {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(StyledLine::new(Tone::Dim, format!(" {}", rules.join("  "))));
            }
        }
        lines
    }

    fn row(&self, row: &[StyledLine], widths: &[usize], is_heading: bool) -> Vec<StyledLine> {
        let bold = |line: &StyledLine| match is_heading {
            true => StyledLine::new(Tone::Bold, line.plain()),
            false => line.clone(),
        };
        let cells: Vec<Vec<StyledLine>> = widths
            .iter()
            .enumerate()
            .map(|(index, width)| row.get(index).map(bold).unwrap_or_default().wrap(*width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height)
            .map(|nth| {
                let mut line = StyledLine::new(Tone::Plain, " ");
                for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
                    let text = cell.get(nth).cloned().unwrap_or_default();
                    let blank = width.saturating_sub(text.width());
                    let (left, right) = match self.alignments.get(index) {
                        Some(Alignment::Right) => (blank, 0),
                        Some(Alignment::Center) => (blank / 2, blank - blank / 2),
                        _ => (0, blank),
                    };
                    line = line.and(Tone::Plain, " ".repeat(left + if index > 0 { GAP } else { 0 }));
                    line.0.extend(text.0);
                    let is_last = index + 1 == widths.len();
                    line = line.and(Tone::Plain, " ".repeat(if is_last { 0 } else { right }));
                }
                line
            })
            .collect()
    }

    /// The table as a list, for a terminal that is too narrow: each cell follows the name of its column.
    fn as_list(&self, columns: usize) -> Vec<StyledLine> {
        let Some((heading, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        for row in rows {
            if !lines.is_empty() {
                lines.push(StyledLine::default());
            }
            for (at, cell) in row.iter().enumerate() {
                let name = heading.get(at).map(StyledLine::plain).unwrap_or_default();
                let mut line = StyledLine::new(Tone::Bold, format!("{name}: "));
                line.0.extend(cell.0.iter().cloned());
                lines.extend(line.wrap(columns));
            }
        }
        lines
    }
}
