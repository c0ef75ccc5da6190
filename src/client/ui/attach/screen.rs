//! Draws below the terminal's own scrollback. Completed lines scroll up and stay there after the
//! program has ended. The rest is an inline viewport of variable height.
//!
//! Completed lines are written as plain lines, not as cells padded to the right edge, so that they can
//! be copied and survive a change of the terminal's width.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::queue;
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType as Part, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as TextLine, Span};
use ratatui::widgets::Widget as _;
use ratatui::{Terminal, TerminalOptions, Viewport};

use crate::client::terminal::style::{Line, Tone, width};
use crate::client::ui::attach::view::View;
use crate::sync::lock;

/// Buffered bytes for the terminal: a frame is written at once.
#[derive(Clone, Default)]
struct Frame(Arc<Mutex<Vec<u8>>>);

impl Write for Frame {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A backend that stores the cursor position and the terminal size instead of asking the terminal.
/// Asking would mean waiting for the terminal's reply between the keys.
struct FixedSizeBackend {
    inner: CrosstermBackend<Frame>,
    at: Position,
    size: Size,
}

impl Backend for FixedSizeBackend {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        self.inner.draw(content)
    }
    fn append_lines(&mut self, lines: u16) -> io::Result<()> {
        self.inner.append_lines(lines)
    }
    fn hide_cursor(&mut self) -> io::Result<()> {
        self.inner.hide_cursor()
    }
    fn show_cursor(&mut self) -> io::Result<()> {
        self.inner.show_cursor()
    }
    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.at)
    }
    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.at = position.into();
        self.inner.set_cursor_position(self.at)
    }
    fn clear(&mut self) -> io::Result<()> {
        self.inner.clear()
    }
    fn clear_region(&mut self, part: ClearType) -> io::Result<()> {
        self.inner.clear_region(part)
    }
    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }
    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size, pixels: Size::new(0, 0) })
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal below its scrollback.
pub(super) struct Screen<W: Write> {
    out: W,
    frame: Frame,
    terminal: Terminal<FixedSizeBackend>,
    size: Size,
    /// First row of the viewport.
    top: u16,
    height: u16,
    /// Columns of each row above the cursor, as last drawn.
    above_cursor: Vec<usize>,
    colour: bool,
    /// The rows of the page that is shown on the alternate screen.
    page: Option<Vec<Line>>,
}

impl<W: Write> Screen<W> {
    /// Starts the viewport at the cursor's row, in a terminal of this size.
    pub(super) fn new(out: W, size: (u16, u16), row: u16, colour: bool) -> io::Result<Self> {
        let frame = Frame::default();
        let size = Size::new(size.0.max(10), size.1.max(2));
        let (terminal, top) = viewport(&frame, size, row.min(size.height - 1), 1)?;
        Ok(Self { out, frame, terminal, size, top, height: 1, above_cursor: Vec::new(), colour, page: None })
    }

    pub(super) fn size(&self) -> (usize, usize) {
        (self.size.width.into(), self.size.height.into())
    }

    /// Writes completed rows into the scrollback and draws the view below them.
    pub(super) fn render(&mut self, history: &[Line], view: &View) -> io::Result<()> {
        let height = u16::try_from(view.rows.len()).unwrap_or(u16::MAX).clamp(1, self.size.height);
        if !history.is_empty() || height != self.height {
            self.rebuild(history, height)?;
        }
        let colour = self.colour;
        let top = self.top;
        self.terminal.draw(|frame| {
            let area = frame.area();
            for (n, row) in view.rows.iter().take(area.height.into()).enumerate() {
                let y = area.y + u16::try_from(n).unwrap_or(0);
                spans(row, colour).render(Rect { y, height: 1, ..area }, frame.buffer_mut());
            }
            let (row, column) = view.cursor;
            let x = u16::try_from(column).unwrap_or(0).min(area.width.saturating_sub(1));
            let y = top + u16::try_from(row).unwrap_or(0).min(area.height.saturating_sub(1));
            frame.set_cursor_position((x, y));
        })?;
        self.above_cursor = view.rows.iter().take(view.cursor.0).map(|row| width(&row.plain())).collect();
        self.send()
    }

    fn rebuild(&mut self, history: &[Line], height: u16) -> io::Result<()> {
        queue!(self.frame, MoveTo(0, self.top), Clear(Part::FromCursorDown))?;
        for line in history {
            self.frame.write_all(line.ansi(self.colour).as_bytes())?;
            self.frame.write_all(b"\r\n")?;
        }
        // Code is not wrapped, so that it is copied as it is; the terminal breaks it at its edge.
        let columns = usize::from(self.size.width);
        let rows = |line: &Line| if line.width() <= columns { 1 } else { line.hard_wrap(columns).len() };
        let written = u16::try_from(history.iter().map(rows).sum::<usize>()).unwrap_or(u16::MAX);
        let row = self.top.saturating_add(written).min(self.size.height - 1);
        (self.terminal, self.top) = viewport(&self.frame, self.size, row, height)?;
        self.height = height;
        Ok(())
    }

    /// Handles a new terminal size; `row` is the current cursor row, if the terminal reported it.
    pub(super) fn resized(&mut self, size: (u16, u16), row: Option<u16>) -> io::Result<()> {
        self.size = Size::new(size.0.max(10), size.1.max(2));
        // The terminal has wrapped rows that became too long.
        let columns = usize::from(self.size.width);
        let above: usize = self.above_cursor.iter().map(|wide| wide.div_ceil(columns).max(1)).sum();
        let above = u16::try_from(above).unwrap_or(u16::MAX);
        let bottom = self.size.height - 1;
        self.top = row.map_or(self.top, |row| row.saturating_sub(above)).min(bottom);
        self.rebuild(&[], self.height.min(self.size.height))
    }

    /// Shows a page on the alternate screen.
    pub(super) fn show_page(&mut self, rows: &[Line]) -> io::Result<()> {
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
            self.rebuild(&[], self.height.min(self.size.height))?;
        }
        Ok(())
    }

    /// Rings the bell, and asks the terminal for a notification.
    pub(super) fn alert(&mut self, text: &str) -> io::Result<()> {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        write!(self.frame, "\u{1b}]9;agentd: {text}\u{7}\u{7}")
    }

    /// Begins again at the cursor's row, after another program had the terminal.
    pub(super) fn restart(&mut self, size: (u16, u16), row: u16) -> io::Result<()> {
        self.size = Size::new(size.0.max(10), size.1.max(2));
        self.top = row.min(self.size.height - 1);
        self.rebuild(&[], 1)
    }

    /// Removes the viewport and puts the cursor where the viewport began.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        queue!(self.frame, MoveTo(0, self.top), Clear(Part::FromCursorDown))?;
        self.terminal.show_cursor()?;
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut *lock(&self.frame.0));
        if bytes.is_empty() {
            return Ok(());
        }
        queue!(self.out, BeginSynchronizedUpdate)?;
        self.out.write_all(&bytes)?;
        queue!(self.out, EndSynchronizedUpdate)?;
        self.out.flush()
    }
}

/// A viewport of `height` rows from the cursor's row on; rows above it scroll up if needed.
fn viewport(
    frame: &Frame,
    size: Size,
    row: u16,
    height: u16,
) -> io::Result<(Terminal<FixedSizeBackend>, u16)> {
    let backend =
        FixedSizeBackend { inner: CrosstermBackend::new(frame.clone()), at: Position::new(0, row), size };
    let mut terminal =
        Terminal::with_options(backend, TerminalOptions { viewport: Viewport::Inline(height) })?;
    let top = terminal.get_frame().area().y;
    Ok((terminal, top))
}

fn spans(line: &Line, colour: bool) -> TextLine<'static> {
    let styled = |(tone, text): &(Tone, String)| {
        Span::styled(text.clone(), if colour { style(*tone) } else { Style::default() })
    };
    TextLine::from(line.0.iter().map(styled).collect::<Vec<_>>())
}

fn style(tone: Tone) -> Style {
    let style = Style::default();
    match tone {
        Tone::Plain => style,
        Tone::Dim => style.add_modifier(Modifier::DIM),
        Tone::Bold => style.add_modifier(Modifier::BOLD),
        Tone::User => style.fg(Color::Cyan),
        Tone::Tool => style.fg(Color::Blue),
        Tone::Good => style.fg(Color::Green),
        Tone::Bad => style.fg(Color::Red),
        Tone::Warn | Tone::Number => style.fg(Color::Yellow),
        Tone::Emphasis => style.add_modifier(Modifier::ITALIC),
        Tone::Code => style.fg(Color::Cyan),
        Tone::Link => style.add_modifier(Modifier::UNDERLINED),
        Tone::Keyword => style.fg(Color::Magenta),
        Tone::Literal => style.fg(Color::Green),
        Tone::Name => style.fg(Color::Blue),
        Tone::AddedWords => style.fg(Color::Green).add_modifier(Modifier::REVERSED),
        Tone::RemovedWords => style.fg(Color::Red).add_modifier(Modifier::REVERSED),
    }
}

#[cfg(test)]
mod tests {
    use crate::client::ui::attach::screen::*;

    fn view(rows: &[&str]) -> View {
        View { rows: rows.iter().map(|r| Line::new(Tone::Plain, *r)).collect(), cursor: (0, 2) }
    }

    #[test]
    fn finished_lines_scroll_up_and_viewport_follows() {
        let mut screen = Screen::new(Vec::new(), (20, 6), 4, false).expect("a screen");
        screen.render(&[], &view(&["one", "two", "three"])).expect("drawn");
        assert_eq!((screen.top, screen.height), (3, 3));
        screen.out.clear();
        screen.render(&[Line::new(Tone::Plain, "kept")], &view(&["one"])).expect("drawn");
        let text = String::from_utf8(screen.out.clone()).expect("text");
        assert!(text.contains("\u{1b}[4;1H\u{1b}[Jkept\r\n"), "{text:?}");
        assert!(!text.contains("kept "), "no padding: {text:?}");
        assert_eq!((screen.top, screen.height), (4, 1));
    }

    #[test]
    fn narrowed_terminal_is_cleared_from_new_viewport_top() {
        let mut screen = Screen::new(Vec::new(), (20, 10), 2, false).expect("a screen");
        let tall = View { cursor: (1, 0), ..view(&["fifteen columns", "x"]) };
        screen.render(&[], &tall).expect("drawn");
        assert_eq!(screen.top, 2);
        // The terminal has wrapped the row above the cursor into two.
        screen.resized((10, 10), Some(4)).expect("resized");
        assert_eq!(screen.top, 2);
    }

    #[test]
    fn unchanged_view_writes_no_rows() {
        let mut screen = Screen::new(Vec::new(), (40, 10), 0, true).expect("a screen");
        screen.render(&[], &view(&["a long row of text", "another one"])).expect("drawn");
        screen.out.clear();
        screen.render(&[], &view(&["a long row of text", "another one"])).expect("drawn");
        assert!(!String::from_utf8_lossy(&screen.out).contains("row"));
    }
}
