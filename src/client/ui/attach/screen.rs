//! Draws below the terminal's own scrollback. Completed lines scroll up and stay there after the program has
//! ended. Below them is a viewport of variable height, and only its changes are written.
//!
//! Completed lines are written as plain lines, not as cells padded to the right edge, so that they can be copied and
//! survive a change of the terminal's width. A completed line that is already at the top of the viewport is not
//! written again: the viewport begins below it from then on.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType as Part, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};

use crate::terminal::style::StyledLine;
use crate::ui::attach::view::View;

/// The terminal below its scrollback.
pub(super) struct Screen<W: Write> {
    out: W,
    /// Bytes of the current frame, which are written at once.
    frame: Vec<u8>,
    /// Columns and rows of the terminal.
    size: (u16, u16),
    /// First row of the viewport.
    top: u16,
    /// The rows of the viewport, as drawn.
    rows: Vec<StyledLine>,
    /// Row of the cursor in the viewport.
    cursor_row: usize,
    /// Position of the cursor on the screen, if it is known.
    cursor: Option<(u16, u16)>,
    colour: bool,
    /// The rows of the page that is shown on the alternate screen.
    page: Option<Vec<StyledLine>>,
}

impl<W: Write> Screen<W> {
    /// Starts the viewport at the cursor's row, in a terminal of this size.
    pub(super) fn new(out: W, size: (u16, u16), row: u16, colour: bool) -> io::Result<Self> {
        let mut screen = Self {
            out,
            frame: Vec::new(),
            size: (0, 0),
            top: 0,
            rows: Vec::new(),
            cursor_row: 0,
            cursor: None,
            colour,
            page: None,
        };
        screen.restart(size, row)?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.size.0.into(), self.size.1.into())
    }

    fn columns(&self) -> usize {
        self.size.0.into()
    }

    fn height(&self) -> usize {
        self.size.1.into()
    }

    /// Writes completed rows into the scrollback and draws the view below them.
    pub(super) fn render(&mut self, history: &[StyledLine], view: &View) -> io::Result<()> {
        let completed = self.leave_completed(history);
        let (columns, height) = (self.columns(), self.height());
        let fits = |row: &StyledLine| if row.width() <= columns { row.clone() } else { row.cut(columns) };
        let rows: Vec<StyledLine> = view.rows.iter().take(height).map(fits).collect();
        let can_join = completed.iter().all(|row| row.width() <= columns);
        if can_join && completed.len() + rows.len() <= height {
            // Draw the completed rows like rows of the view, so that the terminal only moves the unchanged
            // rows below them.
            let count = completed.len();
            self.update(completed.iter().cloned().chain(rows).collect())?;
            self.rows.drain(..count);
            self.top += u16::try_from(count).unwrap_or(0);
        } else {
            self.write_above(completed)?;
            self.update(rows)?;
        }
        self.cursor_row = view.cursor.0.min(self.rows.len().saturating_sub(1));
        let column = view.cursor.1.min(columns.saturating_sub(1));
        let cursor = (u16::try_from(column).unwrap_or(0), self.row_at(self.cursor_row));
        if !self.frame.is_empty() || self.cursor != Some(cursor) {
            queue!(self.frame, MoveTo(cursor.0, cursor.1))?;
            self.cursor = Some(cursor);
        }
        self.send()
    }

    /// Draws these rows from the top on. Writes only the differences from the old rows.
    fn update(&mut self, rows: Vec<StyledLine>) -> io::Result<()> {
        self.make_room(rows.len())?;
        self.shift(&rows)?;
        for (nth, row) in rows.iter().enumerate() {
            if self.rows.get(nth) != Some(row) {
                self.draw_row(nth, row)?;
            }
        }
        for nth in rows.len()..self.rows.len() {
            let y = self.row_at(nth);
            queue!(self.frame, MoveTo(0, y), Clear(Part::UntilNewLine))?;
        }
        self.rows = rows;
        Ok(())
    }

    /// Moves completed rows that are already at the top of the viewport out of it. Returns the other
    /// completed rows.
    fn leave_completed<'a>(&mut self, history: &'a [StyledLine]) -> &'a [StyledLine] {
        let columns = self.columns();
        let is_shown = |(done, row): &(&StyledLine, &StyledLine)| done == row && row.width() <= columns;
        let same_rows = history.iter().zip(&self.rows).take_while(is_shown).count();
        self.rows.drain(..same_rows);
        self.top += u16::try_from(same_rows).unwrap_or(0);
        &history[same_rows..]
    }

    /// Writes completed rows above the viewport. Afterwards the whole viewport is drawn again.
    fn write_above(&mut self, rest: &[StyledLine]) -> io::Result<()> {
        if rest.is_empty() {
            return Ok(());
        }
        let columns = self.columns();
        let top = self.top.min(self.size.1 - 1);
        self.clear_from(top)?;
        for line in rest {
            self.frame.write_all(line.ansi(self.colour).as_bytes())?;
            self.frame.write_all(b"\r\n")?;
        }
        // Do not wrap code, so that it is copied unchanged. The terminal breaks it at its edge.
        let rows =
            |line: &StyledLine| if line.width() <= columns { 1 } else { line.hard_wrap(columns).len() };
        let written = u16::try_from(rest.iter().map(rows).sum::<usize>()).unwrap_or(u16::MAX);
        self.top = top.saturating_add(written).min(self.size.1 - 1);
        self.rows.clear();
        Ok(())
    }

    /// Scrolls the terminal up until this many rows fit below the top. Plain line feeds at the bottom
    /// move the rows above into the scrollback of every terminal.
    fn make_room(&mut self, rows: usize) -> io::Result<()> {
        let missing = (usize::from(self.top) + rows).saturating_sub(self.height());
        if missing > 0 {
            queue!(self.frame, MoveTo(0, self.size.1 - 1))?;
            self.frame.write_all("\n".repeat(missing).as_bytes())?;
            self.top = self.top.saturating_sub(u16::try_from(missing).unwrap_or(u16::MAX));
        }
        Ok(())
    }

    /// If rows were added or removed above unchanged ones, lets the terminal move the unchanged rows instead
    /// of drawing them.
    fn shift(&mut self, rows: &[StyledLine]) -> io::Result<()> {
        let same_end =
            self.rows.iter().rev().zip(rows.iter().rev()).take_while(|(old, new)| old == new).count();
        let (old, new) = (self.rows.len(), rows.len());
        if same_end < 2 || old == new {
            return Ok(());
        }
        if new > old {
            let (at, count) = (old - same_end, new - old);
            let y = self.row_at(at);
            queue!(self.frame, MoveTo(0, y))?;
            write!(self.frame, "\u{1b}[{count}L")?;
            self.rows.splice(at..at, std::iter::repeat_n(StyledLine::default(), count));
        } else {
            let (at, count) = (new - same_end, old - new);
            let y = self.row_at(at);
            queue!(self.frame, MoveTo(0, y))?;
            write!(self.frame, "\u{1b}[{count}M")?;
            self.rows.drain(at..at + count);
        }
        Ok(())
    }

    fn row_at(&self, nth: usize) -> u16 {
        self.top.saturating_add(u16::try_from(nth).unwrap_or(u16::MAX)).min(self.size.1 - 1)
    }

    /// Draws the part of a row that differs from the screen.
    fn draw_row(&mut self, nth: usize, row: &StyledLine) -> io::Result<()> {
        let old = self.rows.get(nth).cloned().unwrap_or_default();
        let (same, rest) = row.after_common_start(&old);
        let y = self.row_at(nth);
        queue!(self.frame, MoveTo(u16::try_from(same).unwrap_or(0), y))?;
        self.frame.write_all(rest.ansi(self.colour).as_bytes())?;
        if old.width() > row.width() {
            queue!(self.frame, Clear(Part::UntilNewLine))?;
        }
        Ok(())
    }

    /// Whether the terminal has another size than the last frame.
    pub(super) fn is_resized(&self, size: (u16, u16)) -> bool {
        self.size != shown_size(size)
    }

    /// Handles a new terminal size; `row` is the current cursor row, if the terminal reported it.
    pub(super) fn handle_resize(&mut self, size: (u16, u16), row: Option<u16>) -> io::Result<()> {
        let columns = usize::from(size.0.max(10));
        // The terminal has wrapped rows that became too long.
        let above = self.rows.iter().take(self.cursor_row);
        let above: usize = above.map(|row| row.width().div_ceil(columns).max(1)).sum();
        let above = u16::try_from(above).unwrap_or(u16::MAX);
        let top = row.map_or(self.top, |row| row.saturating_sub(above));
        self.restart(size, top)
    }

    /// Starts again at a row after another program used the terminal. Clears the rows below.
    pub(super) fn restart(&mut self, size: (u16, u16), row: u16) -> io::Result<()> {
        self.size = shown_size(size);
        self.top = row.min(self.size.1 - 1);
        self.rows.clear();
        self.cursor = None;
        self.clear_from(self.top)
    }

    /// Clears the terminal from this row on, and leaves the cursor there.
    fn clear_from(&mut self, row: u16) -> io::Result<()> {
        if row == 0 {
            // tmux takes a command that clears the whole screen as a scroll, and keeps the viewport in the scrollback.
            queue!(self.frame, MoveTo(0, 1), Clear(Part::FromCursorDown))?;
            return queue!(self.frame, MoveTo(0, 0), Clear(Part::UntilNewLine));
        }
        queue!(self.frame, MoveTo(0, row), Clear(Part::FromCursorDown))
    }

    /// Shows a page on the alternate screen.
    pub(super) fn show_page(&mut self, rows: &[StyledLine]) -> io::Result<()> {
        if self.page.as_deref() == Some(rows) {
            return Ok(());
        }
        if self.page.is_none() {
            queue!(self.frame, EnterAlternateScreen)?;
        }
        queue!(self.frame, Hide, MoveTo(0, 0))?;
        for (nth, row) in rows.iter().enumerate() {
            if nth > 0 {
                self.frame.write_all(b"\r\n")?;
            }
            self.frame.write_all(row.ansi(self.colour).as_bytes())?;
            queue!(self.frame, Clear(Part::UntilNewLine))?;
        }
        self.page = Some(rows.to_vec());
        self.send()
    }

    /// Goes back from the alternate screen, if it is shown.
    pub(super) fn leave_page(&mut self) -> io::Result<()> {
        if self.page.take().is_some() {
            queue!(self.frame, LeaveAlternateScreen, Show)?;
            self.restart(self.size, self.top)?;
        }
        Ok(())
    }

    /// Asks the terminal to put a text into its clipboard. The terminal does not report whether it did.
    pub(super) fn copy(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "\u{1b}]52;c;{}\u{7}", STANDARD.encode(text))?;
        self.out.flush()
    }

    /// Rings the bell, and asks the terminal for a notification.
    pub(super) fn alert(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        write!(self.out, "\u{1b}]9;agentd: {text}\u{7}\u{7}")?;
        self.out.flush()
    }

    /// Removes the viewport and puts the cursor where the viewport began.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.clear_from(self.top)?;
        queue!(self.frame, Show)?;
        self.rows.clear();
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.frame);
        if bytes.is_empty() {
            return Ok(());
        }
        queue!(self.out, BeginSynchronizedUpdate)?;
        self.out.write_all(&bytes)?;
        queue!(self.out, EndSynchronizedUpdate)?;
        self.out.flush()
    }
}

/// The size for the layout. A tiny terminal counts as larger, and shows a part.
fn shown_size((columns, rows): (u16, u16)) -> (u16, u16) {
    (columns.max(10), rows.max(2))
}

#[cfg(test)]
mod tests {
    use crate::terminal::style::Tone;
    use crate::ui::attach::screen::*;

    fn lines(rows: &[&str]) -> Vec<StyledLine> {
        rows.iter().map(|row| StyledLine::new(Tone::Plain, *row)).collect()
    }

    fn view(rows: &[&str]) -> View {
        View { rows: lines(rows), cursor: (0, 2) }
    }

    fn written_text(screen: &mut Screen<Vec<u8>>) -> String {
        let text = String::from_utf8(std::mem::take(&mut screen.out)).expect("text");
        text.replace("\u{1b}[?2026h", "").replace("\u{1b}[?2026l", "")
    }

    #[test]
    fn finished_lines_scroll_up_and_viewport_follows() {
        let mut screen = Screen::new(Vec::new(), (20, 6), 4, false).expect("a screen");
        screen.render(&[], &view(&["one", "two", "three"])).expect("drawn");
        assert_eq!(screen.top, 3);
        written_text(&mut screen);
        screen.render(&lines(&["kept"]), &view(&["one"])).expect("drawn");
        let text = written_text(&mut screen);
        assert_eq!(text, "\u{1b}[4;1Hkept\u{1b}[5;1Hone\u{1b}[6;1H\u{1b}[K\u{1b}[5;3H", "no padding");
        assert_eq!(screen.top, 4);
    }

    #[test]
    fn narrowed_terminal_is_cleared_from_new_viewport_top() {
        let mut screen = Screen::new(Vec::new(), (20, 10), 2, false).expect("a screen");
        let tall = View { cursor: (1, 0), ..view(&["fifteen columns", "x"]) };
        screen.render(&[], &tall).expect("drawn");
        assert_eq!(screen.top, 2);
        // The terminal has wrapped the row above the cursor into two rows.
        assert!(screen.is_resized((10, 10)) && !screen.is_resized((20, 10)));
        screen.handle_resize((10, 10), Some(4)).expect("resized");
        assert_eq!(screen.top, 2);
        assert!(!screen.is_resized((10, 10)) && !screen.is_resized((3, 10)), "a tiny terminal is no news");
    }

    #[test]
    fn viewport_at_the_top_is_not_cleared_as_a_whole_screen() {
        let mut screen = Screen::new(Vec::new(), (20, 4), 0, false).expect("a screen");
        screen.render(&[], &view(&["one", "two", "three"])).expect("drawn");
        screen.handle_resize((30, 4), Some(0)).expect("resized");
        screen.render(&[], &view(&["one", "two", "three"])).expect("drawn");
        // More completed rows than the terminal has.
        screen.render(&lines(&["a", "b", "c", "d", "e"]), &view(&["one"])).expect("drawn");
        screen.handle_resize((20, 4), Some(0)).expect("resized");
        screen.finish().expect("finished");
        let text = written_text(&mut screen);
        assert!(!text.contains("\u{1b}[1;1H\u{1b}[J"), "{text:?}");
        assert!(text.contains("\u{1b}[2;1H\u{1b}[J\u{1b}[1;1H\u{1b}[K"), "{text:?}");
    }

    #[test]
    fn unchanged_view_writes_nothing() {
        let mut screen = Screen::new(Vec::new(), (40, 10), 0, true).expect("a screen");
        screen.render(&[], &view(&["a long row of text", "another one"])).expect("drawn");
        written_text(&mut screen);
        screen.render(&[], &view(&["a long row of text", "another one"])).expect("drawn");
        assert_eq!(written_text(&mut screen), "");
    }

    #[test]
    fn streamed_words_and_rows_write_only_what_is_new() {
        let mut screen = Screen::new(Vec::new(), (40, 5), 1, true).expect("a screen");
        screen.render(&[], &view(&["one two", "status", "› ", "hint"])).expect("drawn");
        written_text(&mut screen);
        screen.render(&[], &view(&["one two three", "status", "› ", "hint"])).expect("drawn");
        assert_eq!(written_text(&mut screen), "\u{1b}[2;8H three\u{1b}[2;3H");
        // One more row: the terminal moves the rows below it.
        screen.render(&[], &view(&["one two three", "four", "status", "› ", "hint"])).expect("drawn");
        assert_eq!(written_text(&mut screen), "\u{1b}[5;1H\n\u{1b}[2;1H\u{1b}[1L\u{1b}[2;1Hfour\u{1b}[1;3H");
        // The rows are complete, so they stay where they are.
        screen.render(&lines(&["one two three", "four"]), &view(&["status", "› ", "hint"])).expect("drawn");
        assert_eq!(written_text(&mut screen), "\u{1b}[3;3H");
        assert_eq!(screen.top, 2);
    }

    #[test]
    fn row_that_becomes_shorter_is_cleared_to_its_end() {
        let mut screen = Screen::new(Vec::new(), (40, 5), 0, false).expect("a screen");
        screen.render(&[], &view(&["a 世界 long", "x"])).expect("drawn");
        written_text(&mut screen);
        screen.render(&[], &view(&["a 世", "x"])).expect("drawn");
        assert_eq!(written_text(&mut screen), "\u{1b}[1;5H\u{1b}[K\u{1b}[1;3H");
    }
}
