//! A choice from a short list: numbers and arrows move the cursor, Enter chooses. Keys count only a moment
//! after the list has appeared, so a key that was typed earlier chooses nothing. Pasted text and the first
//! digit of a sentence never choose.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::failure::Failure;
use crate::terminal::out::{allows_colours, terminal_columns};
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::keys::Keys;

/// Time after the list has appeared for which it ignores keys.
const IGNORE_KEYS_TIME: Duration = Duration::from_millis(600);

/// The list and the position of its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    count: usize,
    selected: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyResult {
    Stays,
    Chosen(usize),
    Left,
}

/// What keys do to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyUse {
    /// A key that was typed earlier must choose nothing.
    Ignored,
    Choose,
}

impl Choice {
    fn on_key(&mut self, key: KeyEvent) -> KeyResult {
        match key.code {
            KeyCode::Esc => return KeyResult::Left,
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return KeyResult::Left;
            }
            KeyCode::Enter => return KeyResult::Chosen(self.selected),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(self.count.saturating_sub(1)),
            KeyCode::Char(c) => {
                let number = c.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(0);
                if (1..=self.count).contains(&number) {
                    self.selected = number - 1;
                }
            }
            _ => {}
        }
        KeyResult::Stays
    }

    fn lines(self, options: &[&str], keys: KeyUse) -> Vec<StyledLine> {
        let mut lines: Vec<StyledLine> = options
            .iter()
            .enumerate()
            .map(|(n, option)| {
                let mark = if n == self.selected { "›" } else { " " };
                let tone = match (keys, n == self.selected) {
                    (KeyUse::Ignored, _) => Tone::Dim,
                    (KeyUse::Choose, true) => Tone::Bold,
                    (KeyUse::Choose, false) => Tone::Plain,
                };
                StyledLine::new(Tone::Warn, "▌ ")
                    .and(Tone::User, mark)
                    .and(tone, format!(" {}  {option}", n + 1))
            })
            .collect();
        lines.push(StyledLine::new(Tone::Dim, "▌ ↑↓ or a number, then Enter · Esc leaves it as it is"));
        lines
    }
}

/// Lets the user choose. Returns `None` if the user cancels or the terminal is closed.
pub async fn choose(options: &[&str], preselected: usize) -> Result<Option<usize>, Failure> {
    let mut choice = Choice { count: options.len(), selected: preselected };
    let mut keys = Keys::enter_raw_mode()?;
    let shown = Instant::now();
    draw(&choice.lines(options, KeyUse::Ignored), 0)?;
    let rows = options.len() + 1;
    loop {
        let left = IGNORE_KEYS_TIME.saturating_sub(shown.elapsed());
        let input = match left.is_zero() {
            true => keys.next().await,
            false => match tokio::time::timeout(left, keys.next()).await {
                Ok(input) => input,
                Err(_) => {
                    draw(&choice.lines(options, KeyUse::Choose), rows)?;
                    continue;
                }
            },
        };
        let use_of_keys = if left.is_zero() { KeyUse::Choose } else { KeyUse::Ignored };
        let moved = match input {
            None => KeyResult::Left,
            Some(Input::Key(key)) if key.kind != KeyEventKind::Release => {
                // Cancelling changes nothing, so it is possible at any time.
                match choice.on_key(key) {
                    KeyResult::Chosen(_) if use_of_keys == KeyUse::Ignored => KeyResult::Stays,
                    moved => moved,
                }
            }
            Some(_) => KeyResult::Stays,
        };
        match moved {
            KeyResult::Stays => draw(&choice.lines(options, use_of_keys), rows)?,
            KeyResult::Chosen(index) => return Ok(Some(index)),
            KeyResult::Left => return Ok(None),
        }
    }
}

/// Draws the rows over the rows of the last call.
fn draw(lines: &[StyledLine], over: usize) -> io::Result<()> {
    let colour = allows_colours();
    let columns = terminal_columns();
    let mut text = if over > 0 { format!("\x1b[{over}A\r") } else { String::new() };
    for line in lines {
        text.push_str(&format!("{}\x1b[K\r\n", line.cut(columns).ansi(colour)));
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The list as it is shown, for tests of the lines around it.
#[cfg(test)]
pub(crate) fn lines(options: &[&str], selected: usize) -> Vec<StyledLine> {
    Choice { count: options.len(), selected }.lines(options, KeyUse::Choose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_moves_with_arrows_and_numbers_and_takes_enter() {
        let mut choice = Choice { count: 2, selected: 1 };
        let mut press = |code| choice.on_key(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!(press(KeyCode::Enter), KeyResult::Chosen(1));
        assert_eq!(press(KeyCode::Up), KeyResult::Stays);
        assert_eq!(press(KeyCode::Enter), KeyResult::Chosen(0));
        assert_eq!(press(KeyCode::Char('2')), KeyResult::Stays);
        assert_eq!(press(KeyCode::Enter), KeyResult::Chosen(1));
        assert_eq!(press(KeyCode::Char('3')), KeyResult::Stays);
        assert_eq!(press(KeyCode::Char('y')), KeyResult::Stays);
        assert_eq!(press(KeyCode::Esc), KeyResult::Left);
    }

    #[test]
    fn choice_shows_cursor_without_colours() {
        let lines: Vec<String> = Choice { count: 2, selected: 1 }
            .lines(&["Trust it", "Not now"], KeyUse::Choose)
            .iter()
            .map(StyledLine::plain)
            .collect();
        assert_eq!(lines[..2], ["▌   1  Trust it", "▌ › 2  Not now"]);
    }
}
