//! Chooses a session: a list with search, on the alternate screen. The view is pure.

use std::io::{self, Write as _};

use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::event::{Event as Input, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{execute, queue, terminal};

use crate::api::params::{ListParams, ListReply};
use crate::client::connection::client::Client;
use crate::client::connection::paths;
use crate::client::failure::{Failure, code};
use crate::client::terminal::escape;
use crate::client::terminal::format::{age, money, now};
use crate::client::terminal::out::colours_wanted;
use crate::client::terminal::style::{Line, Tone, cut, pad, width};
use crate::client::ui::keys::Keys;
use crate::client::ui::request_list::home_relative;
use crate::client::ui::summary::one_line;
use crate::types::session::{Requires, SessionState, SessionView};
use crate::types::time::Timestamp;

/// Sessions that the list holds.
const MAX_SESSIONS: u32 = 200;

/// What was chosen.
pub(in crate::client) enum Picked {
    /// Attach to this session.
    Session(Box<SessionView>),
    /// Begin a new one.
    New,
    /// Nothing.
    Nothing,
}

/// The state of the list.
#[derive(Default)]
struct Picker {
    sessions: Vec<SessionView>,
    selected: usize,
    query: String,
    is_everywhere: bool,
    folder: String,
}

/// Lets the user choose a session.
pub(in crate::client) async fn pick(client: &Client) -> Result<Picked, Failure> {
    let folder = paths::current_folder()?.display().to_string();
    let mut picker = Picker { folder, ..Picker::default() };
    picker.load(client).await?;
    // Without sessions here, those of other folders are meant.
    if picker.sessions.is_empty() {
        picker.is_everywhere = true;
        picker.load(client).await?;
    }
    let mut keys = Keys::take_until_signal()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)?;
    let picked = picker.run(client, &mut keys).await;
    execute!(io::stdout(), Show, LeaveAlternateScreen)?;
    drop(keys);
    picked
}

impl Picker {
    async fn load(&mut self, client: &Client) -> Result<(), Failure> {
        let params = ListParams {
            cwd: (!self.is_everywhere).then(|| self.folder.clone()),
            search: Some(self.query.trim().to_owned()).filter(|query| !query.is_empty()),
            limit: Some(MAX_SESSIONS),
            ..ListParams::default()
        };
        let reply: ListReply = client.call("session.list", &params).await?;
        self.sessions = reply.sessions;
        self.selected = self.selected.min(self.sessions.len().saturating_sub(1));
        Ok(())
    }

    async fn run(&mut self, client: &Client, keys: &mut Keys) -> Result<Picked, Failure> {
        loop {
            let (columns, rows) = terminal::size()?;
            draw(&self.view(usize::from(columns), usize::from(rows), now()))?;
            let Some(input) = keys.next().await else { return Err(Failure::silent(code::ABORTED)) };
            let Input::Key(key) = input else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('c' | 'd') if is_control => return Ok(Picked::Nothing),
                KeyCode::Char('a') if is_control => {
                    self.is_everywhere = !self.is_everywhere;
                    self.load(client).await?;
                }
                KeyCode::Esc => return Ok(Picked::New),
                KeyCode::Enter => {
                    if let Some(session) = self.sessions.get(self.selected) {
                        return Ok(Picked::Session(Box::new(session.clone())));
                    }
                }
                KeyCode::Up => self.selected = self.selected.saturating_sub(1),
                KeyCode::Down => {
                    self.selected = (self.selected + 1).min(self.sessions.len().saturating_sub(1))
                }
                KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
                KeyCode::PageDown => {
                    self.selected = (self.selected + 10).min(self.sessions.len().saturating_sub(1))
                }
                KeyCode::Backspace => {
                    self.query.pop();
                    self.load(client).await?;
                }
                KeyCode::Char(c) if !is_control => {
                    self.query.push(c);
                    self.selected = 0;
                    self.load(client).await?;
                }
                _ => {}
            }
        }
    }

    fn view(&self, columns: usize, rows: usize, now: Timestamp) -> Vec<Line> {
        let places = if self.is_everywhere {
            ("this folder", "[all folders]")
        } else {
            ("[this folder]", "all folders")
        };
        let folder = cut(&escape::line(&home_relative(&self.folder)), columns / 3);
        let head =
            Line::new(Tone::Bold, "Resume  ").and(Tone::Dim, format!("{folder}  {}  {}", places.0, places.1));
        let typed = match self.query.as_str() {
            "" => "type to search".into(),
            query => format!("search: {}", escape::line(query)),
        };
        let mut shown = vec![head.with_right(&typed, columns).cut(columns)];
        let wide = columns >= 60;
        let title_width = (columns / 3).clamp(10, 40);
        let state_width = 20;
        let header = match wide {
            true => format!(
                "  {:<5}{}  {}{:>5} {:>8}  LAST LINE",
                "#",
                pad("TITLE", title_width),
                pad("STATE", state_width),
                "AGE",
                "COST"
            ),
            false => format!("  {:<5}{}  AGE", "#", pad("TITLE", title_width)),
        };
        shown.push(Line::new(Tone::Dim, header).cut(columns));
        let height = rows.saturating_sub(5).max(1);
        let first = (self.selected + 1).saturating_sub(height);
        for (nth, session) in self.sessions.iter().enumerate().skip(first).take(height) {
            let is_here = nth == self.selected;
            let mark = if is_here { "› " } else { "  " };
            let tone = if is_here { Tone::Bold } else { Tone::Plain };
            let title = cut(&escape::line(&session.title), title_width);
            let old = u64::try_from(now.0 - session.updated_at_ms.0).unwrap_or(0);
            let mut line =
                Line::new(tone, format!("{mark}{:<5}{}  ", session.number, pad(&title, title_width)));
            if wide {
                let (tone, state) = state(session);
                let cost =
                    session.cost_usd_micros.or(Some(session.cost_at_least_usd_micros).filter(|it| *it > 0));
                line = line
                    .and(tone, pad(&cut(&state, state_width), state_width))
                    .and(Tone::Dim, format!("{:>5} {:>8}  ", age(old), money(cost)));
                let room = columns.saturating_sub(width(&line.plain()));
                line = line.and(Tone::Dim, one_line(&last_words(session), room));
            } else {
                line = line.and(Tone::Dim, age(old));
            }
            shown.push(line.cut(columns));
        }
        if self.sessions.is_empty() {
            shown.push(Line::new(Tone::Dim, "  no session"));
        }
        shown.resize(rows.saturating_sub(3).max(shown.len()), Line::default());
        let details = self.sessions.get(self.selected).map(|session| {
            let folder = home_relative(&session.cwd);
            format!("{} · {} · {}", escape::line(&folder), escape::line(&session.model), session.mode.name())
        });
        shown.push(Line::new(Tone::Dim, cut(&details.unwrap_or_default(), columns)));
        shown.push(Line::new(
            Tone::Dim,
            cut("Enter attach · Ctrl-A all folders · Esc new · Ctrl-C leave", columns),
        ));
        shown
    }
}

/// Where the search matched, or the last line.
fn last_words(session: &SessionView) -> String {
    session.matches.first().map_or_else(|| session.last_line.clone(), |found| found.snippet.clone())
}

fn state(session: &SessionView) -> (Tone, String) {
    match (session.state, session.requires) {
        (SessionState::RequiresAction, Some(Requires::Question)) => (Tone::Warn, "asks you".into()),
        (SessionState::RequiresAction, Some(Requires::UnknownOutcome)) => {
            (Tone::Warn, "outcome unknown".into())
        }
        (SessionState::RequiresAction, _) => (Tone::Warn, "waits: permission".into()),
        (SessionState::Running, _) => (Tone::Good, "running".into()),
        (SessionState::Failed, _) => (Tone::Bad, "failed".into()),
        (other, _) => (Tone::Dim, other.name().into()),
    }
}

fn draw(rows: &[Line]) -> io::Result<()> {
    let mut frame: Vec<u8> = Vec::new();
    queue!(frame, MoveTo(0, 0))?;
    for (nth, row) in rows.iter().enumerate() {
        if nth > 0 {
            frame.write_all(b"\r\n")?;
        }
        frame.write_all(row.ansi(colours_wanted()).as_bytes())?;
        queue!(frame, Clear(ClearType::UntilNewLine))?;
    }
    queue!(frame, Clear(ClearType::FromCursorDown))?;
    io::stdout().write_all(&frame)?;
    io::stdout().flush()
}

#[cfg(test)]
mod tests {
    use crate::client::resolve_id::sample;
    use crate::client::ui::picker::*;

    #[test]
    fn picker_shows_one_row_for_each_session() {
        let session = |nth: u64, title: &str| {
            let view: SessionView = serde_json::from_value(sample(
                &format!("ses_0190f2a4-0000-7000-8000-00000000000{nth}"),
                title,
            ))
            .expect("a session");
            SessionView { number: nth, updated_at_ms: Timestamp(1_000), ..view }
        };
        let picker = Picker {
            sessions: vec![session(9, "fix login"), session(8, &"a very long title ".repeat(4))],
            folder: "/w/proj".into(),
            query: "lo".into(),
            ..Picker::default()
        };
        let shown: Vec<String> = picker.view(80, 10, Timestamp(61_000)).iter().map(Line::plain).collect();
        assert_eq!(
            shown,
            [
                "Resume  /w/proj  [this folder]  all folders                           search: lo",
                "  #    TITLE                       STATE                 AGE     COST  LAST LINE",
                "› 9    fix login                   idle                   1m        ?  hello",
                "  8    a very long title a very …  idle                   1m        ?  hello",
                "",
                "",
                "",
                "/w · demo/replay · default",
                "Enter attach · Ctrl-A all folders · Esc new · Ctrl-C leave",
            ]
        );
        for columns in [20, 40, 59, 60, 200] {
            let rows = picker.view(columns, 10, Timestamp(61_000));
            assert!(rows.iter().all(|row| row.width() <= columns), "{columns}");
        }
    }
}
