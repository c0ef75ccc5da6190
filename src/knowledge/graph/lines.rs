//! The lines of a text, found once, because a search for each node would cost its whole line.

/// Where the lines of a text begin, and where each has its first character that is no white space.
pub(super) struct Lines(Vec<Line>);

struct Line {
    start: usize,
    first: usize,
}

impl Lines {
    pub fn new(text: &str) -> Self {
        let mut start = 0;
        let line = |part: &str| {
            let line = Line { start, first: start + (part.len() - part.trim_start().len()) };
            start += part.len();
            line
        };
        let mut lines: Vec<Line> = text.split_inclusive('\n').map(line).collect();
        lines.push(Line { start, first: start });
        Self(lines)
    }

    /// The beginning of the line with this number, from 0, if only white space is before byte `at` of it.
    pub fn line_that_begins_with(&self, row: usize, at: usize) -> Option<usize> {
        self.0.get(row).filter(|line| (line.start..=line.first).contains(&at)).map(|line| line.start)
    }

    /// The beginning of the line of this byte.
    pub fn start_of(&self, at: usize) -> usize {
        let after = self.0.partition_point(|line| line.start <= at);
        self.0.get(after.saturating_sub(1)).map_or(0, |line| line.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_known_by_row_and_by_byte() {
        let lines = Lines::new("ab\n  c d\n\n\u{e9}");
        let begins = |row, at| lines.line_that_begins_with(row, at);
        assert_eq!((begins(0, 0), begins(0, 1), begins(1, 5), begins(1, 7)), (Some(0), None, Some(3), None));
        assert_eq!((begins(3, 10), begins(9, 0)), (Some(10), None));
        let starts: Vec<usize> = [0, 2, 3, 8, 9, 10, 11].map(|at| lines.start_of(at)).to_vec();
        assert_eq!(starts, [0, 0, 3, 3, 9, 10, 10]);
        assert_eq!(Lines::new("").start_of(0), 0);
    }
}
