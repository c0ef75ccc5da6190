//! Chooses a session: a list with search, on the alternate screen. [`list`] holds the content and handles keys
//! (pure), [`view`] lays out (pure).

mod list;
mod view;

use api::methods;
use std::io::{self, Write as _};

use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::event::{Event as Input, KeyEventKind};
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{execute, queue, terminal};

use crate::connection::client::Client;
use crate::connection::{paths, session_calls};
use crate::failure::{Failure, code};
use crate::terminal::format::now;
use crate::terminal::out::allows_colours;
use crate::terminal::style::StyledLine;
use crate::ui::keys::Keys;
use crate::ui::picker::list::{Action, Picker};
use api::params::{ItemsParams, ItemsReply, ListParams, ListReply};
use types::ids::SessionId;
use types::session::{ItemKind, SessionView};

/// Maximum number of sessions in the list. The search also finds older ones.
const MAX_SESSIONS: u32 = 200;
/// Maximum number of messages of a preview.
const PREVIEW_MESSAGES: u32 = 20;

pub(crate) enum PickerChoice {
    Session(Box<SessionView>),
    /// Begin a new conversation.
    New,
    /// The user chose nothing.
    Nothing,
}

/// Lets the user choose a session.
pub(crate) async fn pick(client: &Client) -> Result<PickerChoice, Failure> {
    let folder = paths::current_folder()?.display().to_string();
    let mut picker = Picker { folder, ..Picker::default() };
    load(&mut picker, client).await?;
    // If this folder has no sessions, the list begins with those of other folders.
    if picker.sessions.is_empty() {
        picker.is_everywhere = true;
        load(&mut picker, client).await?;
    }
    let mut keys = Keys::enter_raw_mode_with_signals()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide)?;
    let picked = run(&mut picker, client, &mut keys).await;
    execute!(io::stdout(), Show, LeaveAlternateScreen)?;
    drop(keys);
    picked
}

/// Reads the sessions that match the search. The daemon searches titles, folders and all messages.
async fn load(picker: &mut Picker, client: &Client) -> Result<(), Failure> {
    let params = ListParams {
        cwd: (!picker.is_everywhere).then(|| picker.folder.clone()),
        search: Some(picker.query.trim().to_owned()).filter(|query| !query.is_empty()),
        limit: Some(MAX_SESSIONS),
        ..ListParams::default()
    };
    let reply: ListReply = client.call::<methods::session::List>(&params).await?;
    picker.set_sessions(reply.sessions, reply.next_cursor.is_some());
    Ok(())
}

async fn run(picker: &mut Picker, client: &Client, keys: &mut Keys) -> Result<PickerChoice, Failure> {
    loop {
        let (columns, rows) = terminal::size()?;
        draw(&view::view(picker, (usize::from(columns), usize::from(rows)), now()))?;
        let Some(input) = keys.next().await else { return Err(Failure::silent(code::ABORTED)) };
        let action = match input {
            Input::Key(key) if key.kind != KeyEventKind::Release => picker.on_key(key),
            Input::Paste(text) => picker.on_paste(&text),
            _ => None,
        };
        match action {
            None => {}
            Some(Action::Leave) => return Ok(PickerChoice::Nothing),
            Some(Action::New) => return Ok(PickerChoice::New),
            Some(Action::Open) => {
                if let Some(session) = picker.current() {
                    return Ok(PickerChoice::Session(Box::new(session.clone())));
                }
            }
            Some(Action::Load) => load(picker, client).await?,
            Some(Action::Preview(session)) => match preview(client, session).await {
                Ok(messages) => picker.set_preview(session, messages),
                Err(failure) => picker.notice = failure.message,
            },
            Some(Action::Rename(session, title)) => {
                match session_calls::update(client, session, None, Some(title)).await {
                    Ok(_) => load(picker, client).await?,
                    Err(error) => picker.notice = Failure::from(error).message,
                }
            }
        }
    }
}

/// The last messages of a session, the oldest first. The flag says whether a message is the user's.
async fn preview(client: &Client, session: SessionId) -> Result<Vec<(bool, String)>, Failure> {
    let params = ItemsParams {
        newest_first: true,
        limit: Some(PREVIEW_MESSAGES),
        kinds: vec![ItemKind::UserMessage, ItemKind::AssistantMessage],
        ..ItemsParams::for_session(session)
    };
    let reply: ItemsReply = client.call::<methods::session::Items>(&params).await?;
    let message = |item: &types::session::Item| {
        let text = item.text.clone().filter(|text| !text.trim().is_empty())?;
        Some((item.kind == ItemKind::UserMessage, text))
    };
    Ok(reply.items.iter().rev().filter_map(message).collect())
}

fn draw(rows: &[StyledLine]) -> io::Result<()> {
    let mut frame: Vec<u8> = Vec::new();
    queue!(frame, MoveTo(0, 0))?;
    for (nth, row) in rows.iter().enumerate() {
        if nth > 0 {
            frame.write_all(b"\r\n")?;
        }
        frame.write_all(row.ansi(allows_colours()).as_bytes())?;
        queue!(frame, Clear(ClearType::UntilNewLine))?;
    }
    queue!(frame, Clear(ClearType::FromCursorDown))?;
    io::stdout().write_all(&frame)?;
    io::stdout().flush()
}
