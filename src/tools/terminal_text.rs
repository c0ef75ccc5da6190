//! The text that a terminal would show at the end of an output. Programs colour lines and draw them again, and a model
//! needs only the last state of each.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// A text without escape sequences and control characters.
pub(crate) struct ShownText<'t> {
    pub(crate) text: Cow<'t, str>,
    /// Whether visible text was replaced by later text, so that it is missing here.
    pub(crate) is_redrawn: bool,
}

/// Returns what remains visible of an output.
pub(crate) fn shown_text(text: &str) -> ShownText<'_> {
    if !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return ShownText { text: text.into(), is_redrawn: false };
    }
    let mut screen = Screen { lines: vec![String::new()], row: 0, is_at_start: true, is_redrawn: false };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => screen.move_down(),
            '\r' => screen.is_at_start = true,
            '\u{8}' if !screen.is_at_start => _ = screen.lines[screen.row].pop(),
            '\u{1b}' => screen.escape(&mut chars),
            '\u{9b}' => screen.control(&mut chars),
            c if c == '\t' || !c.is_control() => screen.put(c),
            _ => {}
        }
    }
    ShownText { text: screen.lines.join("\n").into(), is_redrawn: screen.is_redrawn }
}

/// The lines of a terminal without a bottom. Columns are not counted: text at the start of a line replaces the line.
struct Screen {
    lines: Vec<String>,
    row: usize,
    is_at_start: bool,
    is_redrawn: bool,
}

impl Screen {
    fn put(&mut self, c: char) {
        if self.is_at_start {
            self.clear_line();
        }
        self.is_at_start = false;
        self.lines[self.row].push(c);
    }

    fn clear_line(&mut self) {
        self.is_redrawn |= !self.lines[self.row].trim().is_empty();
        self.lines[self.row].clear();
    }

    fn move_down(&mut self) {
        (self.row, self.is_at_start) = (self.row + 1, true);
        if self.row == self.lines.len() {
            self.lines.push(String::new());
        }
    }

    /// The rest of an escape sequence (ECMA-48).
    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.peek() {
            Some('[') => {
                chars.next();
                self.control(chars);
            }
            // A string ends with BEL or ESC \. One without an end must not swallow other lines.
            Some(']' | 'P' | '^' | '_' | 'X') => {
                while chars.next_if(|c| !matches!(c, '\u{7}' | '\u{1b}' | '\u{9c}' | '\n')).is_some() {}
                if chars.next_if_eq(&'\u{1b}').is_some() {
                    chars.next_if_eq(&'\\');
                }
            }
            _ => {
                while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
                chars.next_if(|c| matches!(c, '0'..='~'));
            }
        }
    }

    /// The rest of a control sequence: parameters and the final character.
    fn control(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let mut parameters = String::new();
        while let Some(c) = chars.next_if(|c| matches!(c, ' '..='?')) {
            parameters.push(c);
        }
        let number: Option<usize> = parameters.parse().ok();
        let lines = number.unwrap_or(1).max(1);
        match chars.next_if(|c| matches!(c, '@'..='~')) {
            // Moves to another line; what follows draws it again.
            Some('A' | 'F') => (self.row, self.is_at_start) = (self.row.saturating_sub(lines), true),
            Some('B' | 'E') => {
                (self.row, self.is_at_start) =
                    (self.row.saturating_add(lines).min(self.lines.len() - 1), true);
            }
            Some('G') if lines == 1 => self.is_at_start = true,
            Some('K') if number == Some(2) || number.unwrap_or(0) == 0 && self.is_at_start => {
                self.clear_line()
            }
            Some('J') if number.unwrap_or(0) == 0 => {
                let below = self.lines.drain(self.row + 1..);
                self.is_redrawn |= below.into_iter().any(|line| !line.trim().is_empty());
                if self.is_at_start {
                    self.clear_line();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrawn_lines_show_their_last_state_without_escape_sequences() {
        for (text, expected, is_redrawn) in [
            ("plain ä 👨\u{200d}👩\t\u{202e}x\n", "plain ä 👨\u{200d}👩\t\u{202e}x\n", false),
            ("1%\r2%\r100%\n", "100%\n", true),
            ("1%\r2%\r", "2%", true),
            ("a\r\nb\r\n", "a\nb\n", false),
            ("a\r\r\nb", "a\nb", false),
            ("\u{1b}[1;31merror\u{1b}[0m: x\u{1b}[K\n", "error: x\n", false),
            ("spin\r\u{1b}[Kdone\nspin\u{1b}[2K\u{1b}[1Gok\n", "done\nok\n", true),
            ("spin\r\u{1b}[K\n", "\n", true),
            ("a: 1%\nb: 1%\n\u{1b}[2Aa: 9%\nb: 9%\nend", "a: 9%\nb: 9%\nend", true),
            ("a\nb\n\u{1b}[2A\u{1b}[Jc\n", "c\n", true),
            ("N\u{8}NA\u{8}AME |\u{8}/\u{8}-\n", "NAME -\n", false),
            ("\u{1b}]8;;http://a.b\u{1b}\\link\u{1b}]8;;\u{7} \u{1b}]0;title\u{7}x", "link x", false),
            ("\u{1b}]0;no end\nnext", "\nnext", false),
            ("a\0b\u{7}c\u{1b}(Bd\u{9b}31me\u{1b}", "abcde", false),
            ("x\u{1b}[99999999999999999999A\u{1b}[?25ly", "y", true),
            ("x\u{1b}[3Bz", "z", true),
        ] {
            let shown = shown_text(text);
            assert_eq!((shown.text.as_ref(), shown.is_redrawn), (expected, is_redrawn), "{text:?}");
        }
    }
}
