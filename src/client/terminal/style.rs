//! Lines of output: text with tones, printed with or without colours; widths and wrapping.
//!
//! The caller must escape foreign text before putting it into a [`StyledLine`], because this module only lays
//! out text.

use unicode_width::UnicodeWidthChar;

/// Role of a piece of a line, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// Less important.
    Dim,
    /// Most important.
    Bold,
    User,
    Tool,
    /// Success; an added line.
    Good,
    /// Failure; a removed line.
    Bad,
    /// Needs the user's attention.
    Warn,
    /// Emphasised text.
    Emphasis,
    /// Code within a sentence.
    Code,
    /// A link, and the heading of a table.
    Link,
    Keyword,
    /// A string of code.
    Literal,
    /// A number or constant of code.
    Number,
    /// The name of a function or type in code.
    Name,
    /// The changed words of an added line.
    AddedWords,
    /// The changed words of a removed line.
    RemovedWords,
    /// The name of an agent in the colour of its file.
    Agent(AgentColor),
}

/// The colours that files of agents name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentColor {
    Red,
    Green,
    Yellow,
    Blue,
    /// `purple`, also `magenta` and `violet`
    Purple,
    /// `cyan`, also `teal`
    Cyan,
    Orange,
    Pink,
}

impl AgentColor {
    /// The colour with this name; `None` for other colours, which are shown as those of tools.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "red" => Some(Self::Red),
            "green" => Some(Self::Green),
            "yellow" => Some(Self::Yellow),
            "blue" => Some(Self::Blue),
            "purple" | "magenta" | "violet" => Some(Self::Purple),
            "cyan" | "teal" => Some(Self::Cyan),
            "orange" => Some(Self::Orange),
            "pink" => Some(Self::Pink),
            _ => None,
        }
    }

    const fn sgr(self) -> &'static str {
        match self {
            Self::Red => "\x1b[31m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Blue => "\x1b[34m",
            Self::Purple => "\x1b[35m",
            Self::Cyan => "\x1b[36m",
            Self::Orange => "\x1b[38;5;208m",
            Self::Pink => "\x1b[38;5;205m",
        }
    }
}

impl Tone {
    const fn sgr(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Dim => "\x1b[2m",
            Tone::Bold => "\x1b[1m",
            Tone::User => "\x1b[36m",
            Tone::Tool => "\x1b[34m",
            Tone::Good => "\x1b[32m",
            Tone::Bad => "\x1b[31m",
            Tone::Warn | Tone::Number => "\x1b[33m",
            Tone::Emphasis => "\x1b[3m",
            Tone::Code => "\x1b[36m",
            Tone::Link => "\x1b[4m",
            Tone::Keyword => "\x1b[35m",
            Tone::Literal => "\x1b[32m",
            Tone::Name => "\x1b[34m",
            Tone::AddedWords => "\x1b[32;7m",
            Tone::RemovedWords => "\x1b[31;7m",
            Tone::Agent(color) => color.sgr(),
        }
    }
}

/// One line: pieces with their tones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine(pub Vec<(Tone, String)>);

impl StyledLine {
    /// A line of one piece.
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(tone, text.into())])
    }

    /// Appends a piece.
    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    /// The text without colours.
    pub fn plain(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The text with escape sequences for a terminal.
    pub fn ansi(&self, colour: bool) -> String {
        if !colour {
            return self.plain();
        }
        let mut shown = String::new();
        for (tone, text) in &self.0 {
            if tone.sgr().is_empty() || text.is_empty() {
                shown.push_str(text);
            } else {
                shown.push_str(tone.sgr());
                shown.push_str(text);
                shown.push_str("\x1b[0m");
            }
        }
        shown
    }

    /// Wraps the line into rows of at most `columns`, between words where possible. Tabs become four
    /// blanks; a wide character is never split.
    pub fn wrap(&self, columns: usize) -> Vec<StyledLine> {
        let columns = columns.max(2);
        let cells: Vec<(Tone, char, usize)> = self.cells();
        let mut rows = Vec::new();
        let mut start = 0;
        while start < cells.len() {
            let mut used = 0;
            let mut end = start;
            let mut blank = None;
            while end < cells.len() && used + cells[end].2 <= columns {
                used += cells[end].2;
                if cells[end].1 == ' ' {
                    blank = Some(end);
                }
                end += 1;
            }
            // Break after a blank, unless the row would contain only indentation.
            let mut next = end;
            if end < cells.len() {
                let inked = |upto: usize| cells[start..upto].iter().any(|(_, c, _)| *c != ' ');
                if cells[end].1 == ' ' {
                    next = end + 1;
                } else if let Some(blank) = blank.filter(|blank| inked(*blank)) {
                    end = blank;
                    next = blank + 1;
                }
            }
            rows.push(Self::from_cells(&cells[start..end]));
            start = next.max(start + 1);
        }
        if rows.is_empty() {
            rows.push(StyledLine::default());
        }
        rows
    }

    /// Splits the line into rows as a terminal does: at its edge, without regard to words.
    pub fn hard_wrap(&self, columns: usize) -> Vec<StyledLine> {
        let columns = columns.max(2);
        let cells = self.cells();
        let mut rows = Vec::new();
        let (mut start, mut used) = (0, 0);
        for (at, (_, _, wide)) in cells.iter().enumerate() {
            if used + wide > columns {
                rows.push(Self::from_cells(&cells[start..at]));
                (start, used) = (at, 0);
            }
            used += wide;
        }
        rows.push(Self::from_cells(&cells[start..]));
        rows
    }

    /// The line shortened to `columns`, with `…` for the missing part.
    pub fn cut(&self, columns: usize) -> Self {
        let cells = self.cells();
        if cells.iter().map(|(_, _, wide)| wide).sum::<usize>() <= columns {
            return self.clone();
        }
        let mut used = 0;
        let fits = |(_, _, wide): &&(Tone, char, usize)| {
            used += wide;
            used < columns
        };
        let fitting_cells: Vec<(Tone, char, usize)> = cells.iter().take_while(fits).copied().collect();
        Self::from_cells(&fitting_cells).and(Tone::Dim, if columns > 0 { "…" } else { "" })
    }

    /// The number of columns that two lines have in common at their start, and the rest of this line.
    pub fn after_common_start(&self, other: &StyledLine) -> (usize, StyledLine) {
        let (cells, others) = (self.cells(), other.cells());
        let mut same = cells.iter().zip(&others).take_while(|(a, b)| a == b).count();
        // A mark without width belongs to the character before it.
        let is_mark =
            |cells: &[(Tone, char, usize)], at: usize| cells.get(at).is_some_and(|(_, _, wide)| *wide == 0);
        while same > 0 && (is_mark(&cells, same) || is_mark(&others, same)) {
            same -= 1;
        }
        let used = cells[..same].iter().map(|(_, _, wide)| wide).sum();
        (used, Self::from_cells(&cells[same..]))
    }

    /// Number of terminal columns of the line.
    pub fn width(&self) -> usize {
        self.cells().iter().map(|(_, _, wide)| wide).sum()
    }

    /// The line with `right` at the right edge, or after two blanks if it is too long.
    pub fn with_right(self, right: &str, columns: usize) -> Self {
        let room = columns.saturating_sub(self.width() + width(right));
        self.and(Tone::Dim, format!("{}{right}", " ".repeat(room.max(2))))
    }

    /// The line after a lead, for rows that belong to a marked block.
    pub fn with_lead(mut self, tone: Tone, lead: &str) -> Self {
        if !lead.is_empty() {
            self.0.insert(0, (tone, lead.to_owned()));
        }
        self
    }

    fn cells(&self) -> Vec<(Tone, char, usize)> {
        let mut cells: Vec<(Tone, char, usize)> = Vec::new();
        for (tone, text) in &self.0 {
            for c in text.chars() {
                match c {
                    '\t' => cells.extend([(*tone, ' ', 1); 4]),
                    // The emoji selector makes the character before it two columns wide.
                    '\u{fe0f}' => {
                        let narrow = cells.last().is_some_and(|(_, _, w)| *w == 1);
                        cells.push((*tone, c, usize::from(narrow)));
                    }
                    _ => cells.push((*tone, c, c.width().unwrap_or(0))),
                }
            }
        }
        cells
    }

    fn from_cells(cells: &[(Tone, char, usize)]) -> Self {
        let mut line = StyledLine::default();
        for (tone, c, _) in cells {
            match line.0.last_mut() {
                Some((last, text)) if last == tone => text.push(*c),
                _ => line.0.push((*tone, c.to_string())),
            }
        }
        line
    }
}

/// Number of terminal columns of a text.
pub fn width(text: &str) -> usize {
    StyledLine::new(Tone::Plain, text).cells().iter().map(|(_, _, w)| w).sum()
}

/// The text shortened to `columns`, with `…` for the missing part.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_string();
    }
    let mut shown = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > columns {
            break;
        }
        used += wide;
        shown.push(c);
    }
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// The text shortened to `columns` at its start, for paths, whose end is most useful.
pub fn cut_start(text: &str, columns: usize) -> String {
    let mut rest = text.chars();
    let mut shown = text.to_string();
    while width(&shown) > columns && rest.next().is_some() {
        shown = format!("…{}", rest.as_str());
    }
    shown
}

/// The text padded with blanks to `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    let mut shown = text.to_string();
    shown.extend(std::iter::repeat_n(' ', columns.saturating_sub(width(text))));
    shown
}

#[cfg(test)]
mod tests {
    use crate::terminal::style::*;
    use proptest::prelude::*;

    fn rows(text: &str, columns: usize) -> Vec<String> {
        StyledLine::new(Tone::Plain, text).wrap(columns).iter().map(StyledLine::plain).collect()
    }

    #[test]
    fn lines_wrap_between_words_and_whole_characters() {
        let check = |text: &str, columns, expected: &[&str]| assert_eq!(rows(text, columns), expected);
        check("", 5, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 8, &["one two", "three"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("    abcdef", 6, &["    ab", "cdef"]);
        check("世界世界", 5, &["世界", "世界"]);
        check("a\tb", 10, &["a    b"]);
    }

    #[test]
    fn truncated_text_ends_with_ellipsis() {
        assert_eq!(cut("short", 10), "short");
        assert_eq!(cut("a longer one", 6), "a lon…");
        assert_eq!(cut("世界世界", 4), "世…");
        assert_eq!(pad("世", 4), "世  ");
        assert_eq!(cut_start("/a/long/path", 6), "…/path");
        assert_eq!(cut_start("/a", 6), "/a");
    }

    #[test]
    fn ansi_colours_are_written_only_when_enabled() {
        let line = StyledLine::new(Tone::Good, "yes").and(Tone::Plain, " it is");
        assert_eq!(line.ansi(false), "yes it is");
        assert_eq!(line.ansi(true), "\x1b[32myes\x1b[0m it is");
    }

    proptest! {
        #[test]
        fn wrapped_rows_fit_width_and_keep_text(text in "[a-z世❤ ]{0,60}", columns in 2usize..20) {
            let rows = rows(&text, columns);
            for row in &rows {
                prop_assert!(width(row) <= columns);
            }
            let ink = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(ink(&rows.concat()), ink(&text));
        }
    }
}
