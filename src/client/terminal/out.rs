//! Output: requested text on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};

use crate::terminal::style::{StyledLine, Tone, width};
use crate::terminal::word_wrap::WordWrap;

/// Standard output and standard error with their properties.
pub struct OutputStreams {
    text: Box<dyn Write + Send>,
    side: Box<dyn Write + Send>,
    text_colour: bool,
    side_colour: bool,
    /// Whether a terminal, and no pipe or file, receives the requested output.
    is_terminal: bool,
    at_start: bool,
    /// The unfinished row of streamed words.
    words: WordWrap,
    /// Whether standard error is a terminal, so that long lines must be wrapped.
    side_wraps: bool,
    /// Whether words replace symbols, for screen readers and logs.
    plain: bool,
}

impl OutputStreams {
    /// The process's own streams; colours only on terminals and without `NO_COLOR`.
    pub fn standard() -> Self {
        let colours = allows_colours();
        Self {
            text: Box::new(io::stdout()),
            side: Box::new(io::stderr()),
            text_colour: colours && io::stdout().is_terminal(),
            side_colour: colours && io::stderr().is_terminal(),
            is_terminal: io::stdout().is_terminal(),
            at_start: true,
            words: WordWrap::new(),
            side_wraps: io::stderr().is_terminal(),
            plain: false,
        }
    }

    /// Same as [`OutputStreams::standard`], but everything goes to stdout.
    pub fn all_on_stdout() -> Self {
        let standard = Self::standard();
        Self { side: Box::new(io::stdout()), side_colour: standard.text_colour, ..standard }
    }

    /// Streams that discard all output.
    pub fn silent() -> Self {
        Self { text: Box::new(io::sink()), side: Box::new(io::sink()), ..Self::standard() }
    }

    /// Whether a terminal receives the requested output. A pipe gets the bytes as they are, and completed text only.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Streams text of a model, a tool or a file: escaped for a terminal, unchanged for a pipe.
    pub fn stream_text(&mut self, raw: &str) -> io::Result<()> {
        if self.is_terminal { self.stream(&crate::terminal::escape::text(raw)) } else { self.stream(raw) }
    }

    /// Prints text like [`OutputStreams::stream_text`], and ends its last line.
    pub fn say_text(&mut self, raw: &str) -> io::Result<()> {
        self.fresh_line()?;
        self.stream_text(raw)?;
        self.fresh_line()
    }

    /// Sets whether words replace symbols.
    pub fn set_plain(&mut self, plain: bool) {
        self.plain = plain;
        if plain {
            (self.text_colour, self.side_colour) = (false, false);
        }
    }

    /// A line as it is printed.
    fn render_line(&self, line: &StyledLine, colour: bool) -> String {
        if self.plain { replace_signs(&line.plain()) } else { line.ansi(colour) }
    }

    /// Streams text; the caller has escaped it.
    pub fn stream(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.text.write_all(text.as_bytes())?;
        self.text.flush()?;
        self.at_start = text.ends_with('\n');
        Ok(())
    }

    /// Streams an answer, which the caller has escaped. On a terminal, rows break between words.
    pub fn stream_words(&mut self, text: &str) -> io::Result<()> {
        if !self.is_terminal {
            return self.stream(text);
        }
        let printed = self.words.push(text, terminal_columns());
        self.stream(&printed)?;
        self.at_start &= !self.words.is_holding();
        Ok(())
    }

    /// Prints one line of the requested output, in rows that break between words.
    pub fn wrapped_line(&mut self, line: &StyledLine) -> io::Result<()> {
        if !self.is_terminal {
            return self.line(line);
        }
        wrapped_rows(line, self.columns()).iter().try_for_each(|row| self.line(row))
    }

    /// Columns of a row, so that it fits the terminal even if a word replaces its sign.
    pub(crate) fn columns(&self) -> usize {
        terminal_columns() - if self.plain { MAX_WORD_COLUMNS } else { 0 }
    }

    /// Ends a line that [`OutputStreams::stream`] left open.
    pub fn fresh_line(&mut self) -> io::Result<()> {
        let held = self.words.finish(terminal_columns());
        self.stream(&held)?;
        if self.at_start { Ok(()) } else { self.stream("\n") }
    }

    /// Prints one line of the requested output.
    pub fn line(&mut self, line: &StyledLine) -> io::Result<()> {
        self.fresh_line()?;
        let shown = self.render_line(line, self.text_colour);
        self.stream(&(shown + "\n"))
    }

    /// Prints one line of plain text of the requested output.
    pub fn say(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        self.stream(&format!("{text}\n"))
    }

    /// Prints one line to stderr.
    pub fn print_error_line(&mut self, line: &StyledLine) -> io::Result<()> {
        self.fresh_line()?;
        let shown = self.render_line(line, self.side_colour) + "\n";
        self.side.write_all(shown.as_bytes())?;
        self.side.flush()
    }

    /// Draws a one-line input over the last drawn input. If the input is too long, its end is shown.
    pub fn prompt(&mut self, label: &str, typed: &str) -> io::Result<()> {
        let columns = terminal_columns().saturating_sub(width(label) + 2).max(10);
        let shown = crate::terminal::escape::line(typed);
        let all: Vec<char> = shown.chars().collect();
        let mut from = 0;
        while width(&all[from..].iter().collect::<String>()) > columns {
            from += 1;
        }
        let end: String = all[from..].iter().collect();
        write!(self.side, "\r\x1b[K{label}{end}")?;
        self.side.flush()
    }

    /// Prints one dim line to stderr.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.print_wrapped_error_line(&StyledLine::new(Tone::Dim, text))
    }

    /// Prints one line to stderr, in rows that break between words.
    pub fn print_wrapped_error_line(&mut self, line: &StyledLine) -> io::Result<()> {
        if !self.side_wraps {
            return self.print_error_line(line);
        }
        wrapped_rows(line, self.columns()).iter().try_for_each(|row| self.print_error_line(row))
    }

    /// Prints a value as indented JSON. JSON text escapes C0 itself. For a terminal, other non-ASCII characters that
    /// could mislead it become `\u…`, so that the text stays JSON.
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
        if self.is_terminal { self.say(&harmless_json(&text)) } else { self.say(&text) }
    }
}

/// The rows of a line. The second and later ones begin with as many blanks as the first.
fn wrapped_rows(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let plain = line.plain();
    let lead = plain[..plain.len() - plain.trim_start_matches(' ').len()].to_owned();
    let rows = line.wrap(columns);
    if rows.len() < 2 || lead.is_empty() || lead.len() > columns / 4 {
        return rows;
    }
    let mut rows = line.wrap(columns - lead.len());
    for row in rows.iter_mut().skip(1) {
        *row = std::mem::take(row).with_lead(Tone::Plain, lead.as_str());
    }
    rows
}

/// Columns by which a word is wider than its sign, at most: those of `request: `.
const MAX_WORD_COLUMNS: usize = 7;

/// A line with words in place of the symbol at its beginning.
fn replace_signs(line: &str) -> String {
    let signs = [
        ("› ", "you: "),
        ("● ", "call: "),
        ("  └ ", "  result: "),
        ("  │ ", "  output: "),
        ("▌ ", "request: "),
        ("─ ", "end: "),
        ("■ ", "end: "),
        ("┊ ", "thought: "),
        ("  ┊ ", "  thought: "),
    ];
    let replaced = signs.iter().find_map(|(sign, word)| Some(format!("{word}{}", line.strip_prefix(sign)?)));
    replaced.unwrap_or_else(|| line.to_owned())
}

/// Columns of the terminal; 80 without one.
pub fn terminal_columns() -> usize {
    ratatui::crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns).max(20))
}

/// Rows of the terminal; 24 without one.
pub fn terminal_rows() -> usize {
    ratatui::crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows).max(4))
}

/// JSON text with every control and format character as `\u…`: still the same JSON.
pub fn harmless_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut units = [0u16; 2];
    for c in text.chars() {
        // Outside of strings, JSON is ASCII. Inside of strings, C0 characters are escaped already.
        if c.is_ascii() && c != '\u{7f}'
            || crate::terminal::escape::line(c.encode_utf8(&mut [0; 4])).starts_with(c)
        {
            shown.push(c);
        } else {
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    shown
}

/// Whether the user allows colours (<https://no-color.org>).
pub fn allows_colours() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
pub(crate) mod testing {
    use crate::terminal::out::*;
    use std::sync::{Arc, Mutex};

    /// Captured output, readable while it is being printed.
    #[derive(Clone, Default)]
    pub(crate) struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl CapturedOutput {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("sound").clone()).expect("text")
        }
    }

    impl Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("sound").extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An output with two captured streams.
    pub(crate) fn captured_output() -> (OutputStreams, CapturedOutput, CapturedOutput) {
        let (text, side) = (CapturedOutput::default(), CapturedOutput::default());
        let out = OutputStreams {
            text: Box::new(text.clone()),
            side: Box::new(side.clone()),
            text_colour: false,
            side_colour: false,
            is_terminal: true,
            at_start: true,
            words: WordWrap::new(),
            side_wraps: false,
            plain: false,
        };
        (out, text, side)
    }

    /// An output whose requested text goes into a pipe.
    pub(crate) fn captured_pipe() -> (OutputStreams, CapturedOutput, CapturedOutput) {
        let (out, text, side) = captured_output();
        (OutputStreams { is_terminal: false, ..out }, text, side)
    }
}

#[cfg(test)]
mod tests {
    use crate::terminal::out::*;

    #[test]
    fn rows_of_an_indented_line_begin_with_its_blanks() {
        let rows = |text: &str, columns| {
            let line = StyledLine::new(Tone::Warn, text);
            wrapped_rows(&line, columns).iter().map(StyledLine::plain).collect::<Vec<_>>()
        };
        assert_eq!(rows("  one two three four", 12), ["  one two", "  three four"]);
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("  one two", 12), ["  one two"]);
        // No room for blanks.
        assert_eq!(rows("  one two", 7), ["  one", "two"]);
    }

    #[test]
    fn note_during_streamed_text_starts_new_line() {
        let (mut out, text, side) = testing::captured_output();
        out.stream("half").expect("written");
        out.note("aside").expect("written");
        out.stream("rest\n").expect("written");
        out.fresh_line().expect("written");
        assert_eq!(text.text(), "half\nrest\n");
        assert_eq!(side.text(), "aside\n");
    }

    #[test]
    fn pipe_gets_bytes_unchanged_and_terminal_gets_names() {
        let raw = "a\u{1b}[31m\u{202e}b 👨\u{200d}👩 c\u{200b}d";
        let (mut out, text, _) = testing::captured_pipe();
        out.say_text(raw).expect("written");
        out.json(&raw).expect("written");
        assert_eq!(text.text(), format!("{raw}\n{}\n", serde_json::to_string(raw).expect("json")));
        let (mut out, text, _) = testing::captured_output();
        out.say_text(raw).expect("written");
        assert_eq!(text.text(), "a⟦ESC⟧[31m⟦U+202E⟧b 👨\u{200d}👩 c⟦U+200B⟧d\n");
    }

    #[test]
    fn escaped_json_parses_to_same_value() {
        let value = serde_json::json!({"a": "x\u{202e}\u{9b}\u{e0041}\u{7f}ü\n⟦"});
        let text = harmless_json(&serde_json::to_string_pretty(&value).expect("json"));
        assert!(text.contains("\\u202e") && text.contains("\\u009b") && text.contains('ü'));
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("json"), value);
    }
}
