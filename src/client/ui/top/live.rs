//! The loop of `top`: daemon, keyboard, screen.

use api::methods;
use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use ratatui::crossterm::event::{Event as Input, KeyEventKind};
use ratatui::crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::crossterm::{cursor, execute};
use tokio::time::{MissedTickBehavior, interval};

use crate::answer::permission::{self, PermissionChoice};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::input_files::{mentioned_resources, with_attachments};
use crate::connection::session_calls;
use crate::connection::session_feed::SessionFeed;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::format::now;
use crate::terminal::out::allows_colours;
use crate::ui::keys::Keys;
use crate::ui::top::overview::{Action, DaemonFacts, Dialog, Overview};
use crate::ui::top::view::view;
use api::params::{
    AbortParams, AbortReply, Approved, EndParams, ModelListParams, ModelListReply, ModelUsageParams,
    ModelUsageReply, NoParams, StatusReply,
};
use types::ids::SessionId;
use types::time::Timestamp;

/// Interval at which times are drawn again.
const TICK: Duration = Duration::from_secs(1);
/// Number of ticks between two requests for memory and cost.
const FACTS_TICKS: u32 = 5;
/// Models per request.
const PAGE_MODELS: u32 = 500;
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// Shows all sessions until the user exits or opens one. The terminal is restored afterwards.
pub(crate) async fn choose(sessions: &mut SessionsScreen) -> Result<TopOutcome, Failure> {
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return Err(Failure::usage(
            "top needs a terminal; `agentctl ps -A` and `agentctl stats` print the same once",
        ));
    }
    screen(&mut sessions.feed, &mut sessions.overview).await
}

/// The content of the screen, for example the selected session. It is kept while the screen is closed.
pub(crate) struct SessionsScreen {
    feed: SessionFeed,
    overview: Overview,
}

impl SessionsScreen {
    /// Connects to the daemon and reads all sessions.
    pub(crate) async fn load(reach: &Connector) -> Result<Self, Failure> {
        let feed = SessionFeed::start(reach).await?;
        let windows = windows(feed.client()).await?;
        let overview = Overview { facts: facts(feed.client(), windows).await?, ..Overview::default() };
        Ok(Self { feed, overview })
    }

    /// Shows a text in one line of the screen.
    pub(crate) fn set_notice(&mut self, text: String) {
        self.overview.notice = Some(text);
    }
}

/// The reason why the screen was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopOutcome {
    /// The user returns to the view from which the screen was opened.
    Quit,
    /// The user opens this session.
    Attach(SessionId),
    /// The user begins a conversation in the current folder.
    New,
}

/// The alternate screen; dropping it restores the terminal.
struct AlternateScreen;

impl AlternateScreen {
    fn enter() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(Self)
    }

    /// Draws over the last frame, because clearing first would flicker.
    fn draw(&self, overview: &Overview, home: Option<&str>) -> io::Result<()> {
        let (columns, rows) = terminal::size()?;
        let size = (usize::from(columns), usize::from(rows));
        let colour = allows_colours();
        let lines = view(overview, now(), home, size);
        let lines: Vec<String> = lines.iter().map(|line| format!("{}\x1b[K", line.ansi(colour))).collect();
        let mut out = io::stdout().lock();
        out.write_all(format!("\x1b[?2026h\x1b[H{}\x1b[J\x1b[?2026l", lines.join("\r\n")).as_bytes())?;
        out.flush()
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    }
}

async fn screen(feed: &mut SessionFeed, overview: &mut Overview) -> Result<TopOutcome, Failure> {
    let home = std::env::var("HOME").ok();
    let mut keys = Keys::enter_raw_mode_with_signals()?;
    let screen = AlternateScreen::enter()?;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ticks = 0_u32;
    refresh(feed, overview).await?;
    loop {
        screen.draw(overview, home.as_deref())?;
        tokio::select! {
            changed = feed.wait_change() => {
                changed?;
                refresh(feed, overview).await?;
            }
            _ = tick.tick() => {
                ticks += 1;
                if ticks.is_multiple_of(FACTS_TICKS)
                    && let Ok(facts) = facts(feed.client(), overview.facts.windows.clone()).await
                {
                    overview.facts = facts;
                }
            }
            input = keys.next() => {
                let action = match input {
                    None => return Ok(TopOutcome::Quit),
                    Some(Input::Key(key)) if key.kind != KeyEventKind::Release => overview.on_key(key, now()),
                    Some(Input::Paste(text)) => {
                        overview.on_paste(&text);
                        None
                    }
                    Some(_) => None,
                };
                match action {
                    None => {}
                    Some(Action::Quit) => return Ok(TopOutcome::Quit),
                    Some(Action::Attach(session)) => return Ok(TopOutcome::Attach(session)),
                    Some(Action::New) => return Ok(TopOutcome::New),
                    Some(action) => overview.notice = Some(done(feed.client(), action).await),
                }
            }
        }
    }
}

async fn refresh(feed: &SessionFeed, overview: &mut Overview) -> Result<(), Failure> {
    let sessions: Vec<_> =
        feed.sessions().into_iter().filter(|it| it.parent_session_id.is_none()).cloned().collect();
    // Read the requests only if some session waits. Otherwise there are none.
    let waits = sessions.iter().any(|it| it.summary.requires.is_some());
    overview.requests = match waits {
        // Ignore a lost connection here, because the feed detects it.
        true => resolve_id::all_requests(feed.client()).await.unwrap_or_default(),
        false => Vec::new(),
    };
    if !waits && matches!(overview.dialog, Dialog::Answer { .. }) {
        overview.dialog = Dialog::None;
    }
    overview.update(sessions, now());
    Ok(())
}

/// Runs an action and returns a line about its result.
async fn done(client: &Client, action: Action) -> String {
    let outcome: Result<&str, Failure> = async {
        match action {
            Action::Quit | Action::Attach(_) | Action::New => Ok(""),
            Action::Abort(session_id) => {
                let params = AbortParams { session_id, turn_id: None, call_id: None, idempotency_key: None };
                let reply: AbortReply = client.call::<methods::session::Abort>(&params).await?;
                Ok(if reply.stopped.is_empty() { "nothing was running" } else { "stopped by you" })
            }
            Action::Kill(session_id) => {
                let params = EndParams { session_id, idempotency_key: None };
                let _: serde_json::Value = client.call_as::<methods::session::Kill, _>(&params).await?;
                Ok("ended")
            }
            Action::Submit(session_id, text) => {
                let resources = mentioned_resources(&text);
                session_calls::submit(client, session_id, with_attachments(vec![text], resources), None)
                    .await?;
                Ok("sent")
            }
            Action::Answer(request, choice) => {
                let params = permission::params(&request, choice);
                let _: Approved = client.call_as::<methods::session::Approve, _>(&params).await?;
                Ok(match choice {
                    PermissionChoice::Deny => "denied by you",
                    _ => "allowed once by you",
                })
            }
        }
    }
    .await;
    outcome.map_or_else(|failure| failure.message, str::to_owned)
}

/// The context windows of the known models.
async fn windows(client: &Client) -> Result<HashMap<String, u64>, Failure> {
    let models = ModelListParams { limit: Some(PAGE_MODELS), ..ModelListParams::default() };
    let models: ModelListReply = client.call::<methods::model::List>(&models).await?;
    Ok(models.models.into_iter().filter_map(|it| Some((it.model, u64::from(it.context_window?)))).collect())
}

async fn facts(client: &Client, windows: HashMap<String, u64>) -> Result<DaemonFacts, Failure> {
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    let midnight = Timestamp(now().day() * DAY_MS);
    let usage = ModelUsageParams { since_ms: Some(midnight), limit: Some(1), ..Default::default() };
    let usage: ModelUsageReply = client.call::<methods::model::Usage>(&usage).await?;
    Ok(DaemonFacts {
        up_ms: now().since(status.started_at_ms),
        resident_bytes: status.resident_bytes,
        today: (usage.total.cost_usd_micros, usage.total.cost_at_least_usd_micros),
        jobs: status.jobs,
        windows,
    })
}
