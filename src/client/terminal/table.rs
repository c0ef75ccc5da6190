//! Tables that fit the terminal. A row never wraps: columns are dropped by rank, and the cells of the other
//! columns are shortened.
//!
//! The caller must escape foreign text before it becomes a [`Cell`].

use std::io::{IsTerminal as _, stdout};

use crate::failure::Failure;
use crate::terminal::out::{OutputStreams, terminal_columns};
use crate::terminal::style::{StyledLine, Tone, cut, cut_start, pad, width};

/// Columns between two cells.
const GAP: usize = 2;

/// Columns up to this rank get a readable width before columns of a higher rank are shown.
const LAST_IMPORTANT: u8 = 2;
/// Columns from this rank are shown only where the cells of all others have their full width.
pub const SPARE_RANK: u8 = 9;
/// Added to the rank of a column whose cells are all equal.
const EQUAL_CELLS_RANK: u8 = 100;
/// Columns that a text needs to be readable.
const MIN_READABLE_COLUMNS: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    head: &'static str,
    /// Rank of the column. Columns of the highest rank are dropped first. Columns of rank 0 are never
    /// dropped.
    rank: u8,
    /// Minimum width in columns. If there is less room, the whole column is dropped.
    min: usize,
    /// Maximum width in columns. Longer cells are shortened.
    max: usize,
    is_right: bool,
    /// Whether cells are shortened at their start, for paths.
    keeps_end: bool,
}

/// A column that is always shown.
pub const fn column(head: &'static str) -> Column {
    Column { head, rank: 0, min: 4, max: usize::MAX, is_right: false, keeps_end: false }
}

impl Column {
    /// Sets the rank. Columns of a higher rank are dropped first.
    pub const fn rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// Sets the minimum and maximum width of its cells.
    pub const fn between(self, min: usize, max: usize) -> Self {
        Self { min, max, ..self }
    }

    /// Aligns the column to the right, for numbers. Numbers are never shortened.
    pub const fn right(self) -> Self {
        Self { is_right: true, min: usize::MAX, ..self }
    }

    /// Shortens cells at their start, for texts whose end is the most useful part.
    pub const fn keep_end(self) -> Self {
        Self { keeps_end: true, ..self }
    }
}

pub type Cell = (Tone, String);

/// Rows below their heads.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; it has one cell for each column.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        self.rows.push(row.into_iter().collect());
    }

    /// The lines, with the head first, in at most `columns` columns of a terminal. Without a terminal, all
    /// columns are shown at their full width.
    pub fn lines(&self, columns: Option<usize>) -> Vec<StyledLine> {
        let layout = self.layout(columns);
        let head: Vec<Cell> = self.columns.iter().map(|it| (Tone::Bold, it.head.to_owned())).collect();
        std::iter::once(&head).chain(&self.rows).map(|row| self.line(row, &layout, columns)).collect()
    }

    /// Prints the table for standard output.
    pub fn print(&self, out: &mut OutputStreams) -> Result<(), Failure> {
        for line in self.lines(stdout().is_terminal().then(terminal_columns)) {
            out.line(&line)?;
        }
        Ok(())
    }

    /// The shown columns with their widths.
    fn layout(&self, room: Option<usize>) -> Vec<(usize, usize)> {
        let widest = |n: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(n)).map(|(_, text)| width(text));
            cells.max().unwrap_or(0).max(width(self.columns[n].head)).min(self.columns[n].max)
        };
        let wide: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let Some(room) = room else { return shown.into_iter().map(|n| (n, wide[n])).collect() };
        shown.retain(|n| !self.is_empty(*n));
        // Never shorten the head of a column.
        let least = |n: usize| wide[n].min(self.columns[n].min.max(width(self.columns[n].head)));
        let gaps = |shown: &[usize]| GAP * shown.len().saturating_sub(1);
        let total = |shown: &[usize]| shown.iter().map(|n| least(*n)).sum::<usize>() + gaps(shown);
        // Important columns get a readable width before a less important one is shown at all.
        let comfortable = |n: usize| match self.columns[n].rank {
            0..=LAST_IMPORTANT => least(n).max(wide[n].min(MIN_READABLE_COLUMNS)),
            _ => least(n),
        };
        let wished = |shown: &[usize]| shown.iter().map(|n| comfortable(*n)).sum::<usize>() + gaps(shown);
        let full = |shown: &[usize]| shown.iter().map(|n| wide[*n]).sum::<usize>() + gaps(shown);
        let is_spare = |n: &usize| self.columns[*n].rank >= SPARE_RANK;
        if full(&shown) > room {
            shown.retain(|n| !is_spare(n));
        }
        self.drop_columns(&mut shown, LAST_IMPORTANT, |shown| wished(shown) > room);
        // If the room that equal columns left is not used otherwise, they come back in the order of their ranks.
        let mut dropped: Vec<usize> = (0..self.columns.len())
            .filter(|n| !shown.contains(n) && !is_spare(n) && !self.is_empty(*n))
            .collect();
        dropped.sort_by_key(|n| self.columns[*n].rank);
        for n in dropped {
            let index = shown.partition_point(|other| *other < n);
            shown.insert(index, n);
            if wished(&shown) > room {
                shown.remove(index);
                break;
            }
        }
        self.drop_columns(&mut shown, 0, |shown| total(shown) > room);
        let spare = room.saturating_sub(total(&shown));
        let mut column_widths: Vec<(usize, usize)> = shown.iter().map(|n| (*n, least(*n))).collect();
        self.share_columns(&mut column_widths, &wide, spare);
        column_widths
    }

    /// Whether a column has rows, and no row has a text in it.
    fn is_empty(&self, n: usize) -> bool {
        let has_text = |row: &Vec<Cell>| row.get(n).is_some_and(|(_, text)| !text.is_empty());
        !self.rows.is_empty() && !self.rows.iter().any(has_text)
    }

    /// The rank of a column. One whose cells are all equal says nothing about the differences between the rows, so it
    /// is dropped before all others.
    fn rank(&self, n: usize) -> u8 {
        let rank = self.columns[n].rank;
        let first = self.rows.first().and_then(|row| row.get(n)).map(|(_, text)| text);
        let is_equal =
            self.rows.len() > 1 && self.rows.iter().all(|row| row.get(n).map(|(_, text)| text) == first);
        if rank > 0 && is_equal { rank.saturating_add(EQUAL_CELLS_RANK) } else { rank }
    }

    /// Drops columns of a higher rank than `max_rank`, the highest first, while there is not enough room.
    fn drop_columns(&self, shown: &mut Vec<usize>, max_rank: u8, is_too_wide: impl Fn(&[usize]) -> bool) {
        while is_too_wide(shown)
            && let Some(index) = (0..shown.len()).rev().max_by_key(|index| self.rank(shown[*index]))
            && self.rank(shown[index]) > max_rank
        {
            shown.remove(index);
        }
    }

    /// Gives the spare columns to the lowest rank first, and equally to the columns of one rank.
    fn share_columns(&self, column_widths: &mut [(usize, usize)], wide: &[usize], mut spare: usize) {
        let mut ranks: Vec<u8> = column_widths.iter().map(|(n, _)| self.columns[*n].rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        for rank in ranks {
            loop {
                let mut has_grown = false;
                for (n, now) in column_widths.iter_mut().filter(|(n, _)| self.columns[*n].rank == rank) {
                    if *now < wide[*n] && spare > 0 {
                        *now += 1;
                        spare -= 1;
                        has_grown = true;
                    }
                }
                if !has_grown {
                    break;
                }
            }
        }
    }

    fn line(&self, row: &[Cell], layout: &[(usize, usize)], room: Option<usize>) -> StyledLine {
        let mut line = StyledLine::default();
        let mut used = 0;
        for (at, (n, wide)) in layout.iter().enumerate() {
            let Some((tone, text)) = row.get(*n) else { continue };
            let column = &self.columns[*n];
            // On a very narrow terminal, even the columns of rank 0 do not fit.
            let wide = room.map_or(*wide, |room| (*wide).min(room.saturating_sub(used)));
            let text = if column.keeps_end { cut_start(text, wide) } else { cut(text, wide) };
            let is_last = at + 1 == layout.len();
            let text = match column.is_right {
                true => format!("{}{text}", " ".repeat(wide.saturating_sub(width(&text)))),
                false if is_last => text,
                false => pad(&text, wide),
            };
            line = line.and(*tone, text);
            used += wide;
            if !is_last && room.is_none_or(|room| used < room) {
                let gap = room.map_or(GAP, |room| GAP.min(room - used));
                line = line.and(Tone::Plain, " ".repeat(gap));
                used += gap;
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Table {
        let mut table = Table::new([
            column("#").right(),
            column("TITLE").between(8, 24),
            column("COST").right().rank(2),
            column("FOLDER").between(6, 20).rank(1).keep_end(),
            column("LAST LINE").between(10, 40).rank(3),
        ]);
        let row = |cells: [&str; 5]| cells.map(|text| (Tone::Plain, text.to_owned()));
        table.push(row(["1", "a short one", "$0.04", "~/shop", "it is done"]));
        table.push(row([
            "12",
            "a title that is much longer",
            "$12.40",
            "~/work/some/where",
            "世界 and more",
        ]));
        table
    }

    fn plain(columns: Option<usize>) -> Vec<String> {
        sample().lines(columns).iter().map(|line| line.plain()).collect()
    }

    #[test]
    fn narrow_table_drops_columns_by_rank_then_shortens() {
        assert_eq!(
            plain(None),
            [
                " #  TITLE                       COST  FOLDER             LAST LINE",
                " 1  a short one                $0.04  ~/shop             it is done",
                "12  a title that is much lo…  $12.40  ~/work/some/where  世界 and more",
            ]
        );
        assert_eq!(
            plain(Some(40)),
            [
                " #  TITLE                   COST  FOLDER",
                " 1  a short one            $0.04  ~/shop",
                "12  a title that is muc…  $12.40  …where",
            ]
        );
        assert_eq!(plain(Some(12)), [" #  TITLE", " 1  a short…", "12  a title…"]);
        assert_eq!(plain(Some(5)), [" #  …", " 1  …", "12  …"]);
    }

    proptest! {
        #[test]
        fn rows_of_any_text_fit_any_width(
            cells in proptest::collection::vec(proptest::collection::vec("[a-z世❤ ]{0,30}", 5), 0..5),
            columns in 1usize..140,
        ) {
            let mut table = Table { rows: Vec::new(), ..sample() };
            for row in cells {
                table.push(row.into_iter().map(|text| (Tone::Plain, text)));
            }
            for line in table.lines(Some(columns)) {
                prop_assert!(width(&line.plain()) <= columns, "{:?}", line.plain());
            }
        }
    }

    #[test]
    fn spare_column_is_shown_only_if_no_cell_is_shortened() {
        let mut table = Table::new([
            column("#"),
            column("TITLE").between(8, 28).rank(2),
            column("ID").right().rank(SPARE_RANK),
        ]);
        let row = ["1.1", "a title of forty letters or a bit more", "perm_0123456789"];
        table.push(row.map(|text| (Tone::Plain, text.to_owned())));
        let heads = |columns| table.lines(columns)[0].plain().split_whitespace().count();
        assert_eq!((heads(Some(45)), heads(Some(60)), heads(None)), (2, 3, 3));
        assert!(table.lines(Some(45))[1].plain().ends_with("a title of forty letters or…"));
    }

    #[test]
    fn column_without_texts_is_left_out_on_a_terminal() {
        let mut table = Table::new([column("#"), column("DEADLINE"), column("TITLE")]);
        table.push(["1.1", "", "fix"].map(|text| (Tone::Plain, text.to_owned())));
        assert_eq!(table.lines(Some(80))[0].plain(), "#    TITLE");
        assert_eq!(table.lines(None)[0].plain(), "#    DEADLINE  TITLE");
    }

    #[test]
    fn column_of_equal_values_is_dropped_first() {
        let cases = [
            (vec!["~/shop", "~/shop"], "LAST LINE"),
            (vec!["~/shop", "~/bank"], "FOLDER"),
            (vec!["~/shop"], "FOLDER"),
        ];
        for (folders, kept) in cases {
            let columns = [column("TITLE"), column("FOLDER").rank(1), column("LAST LINE").rank(4)];
            let mut table = Table::new(columns);
            for (nth, folder) in folders.iter().enumerate() {
                let row = ["a title".to_owned(), (*folder).to_owned(), format!("line {nth}")];
                table.push(row.map(|cell| (Tone::Plain, cell)));
            }
            let head = table.lines(Some(24))[0].plain();
            assert!(head.contains(kept) && head.split_whitespace().count() <= 3, "{folders:?}: {head}");
            let wide = table.lines(Some(80))[0].plain();
            assert!(wide.contains("FOLDER") && wide.contains("LAST LINE"), "there is room for all: {wide}");
        }
    }
}
