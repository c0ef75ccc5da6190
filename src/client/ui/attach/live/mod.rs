//! The loop that connects daemon, keyboard and screen.

mod effects;

use std::io::{self, Stdout};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use ratatui::crossterm::event::Event as Input;
use ratatui::crossterm::{cursor, terminal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::api::params::{CreateParams, Include};
use crate::client::connection::client::Client;
use crate::client::connection::connector::Connector;
use crate::client::connection::follow::{Follow, Step};
use crate::client::connection::wire::Received;
use crate::client::failure::{Failure, code};
use crate::client::terminal::format;
use crate::client::terminal::out::colours_wanted;
use crate::client::ui::attach::app::{App, Effect};
use crate::client::ui::attach::calls::{Caller, Done};
use crate::client::ui::attach::screen::Screen;
use crate::client::ui::attach::start_lines::Place;
use crate::client::ui::attach::view::view;
use crate::client::ui::keys::Keys;
use crate::client::ui::request_timing::wait_until;
use crate::client::ui::watch::{Ended, ended};
use crate::types::event::Event;
use crate::types::ids::{Seq, SessionId};
use crate::types::session::SessionState;

/// Maximum number of events that are handled before the screen is drawn again.
const BATCH: usize = 500;

/// Time between two frames while events arrive. Keys are shown at once.
const FRAME: Duration = Duration::from_millis(33);

/// Time between two frames while nothing arrives, for the spinner and the seconds.
const TICK: Duration = Duration::from_millis(250);
const SLOW_TICK: Duration = Duration::from_secs(1);

/// How the view was left.
#[derive(Debug)]
pub(super) enum Left {
    /// The user left; the session goes on.
    Detached,
    /// The one turn that was followed has ended.
    Ended(Ended),
    /// The user opens another session.
    Open(SessionId),
    /// The user begins a new conversation.
    New,
}

/// What a conversation begins with.
pub(super) struct Start {
    pub(super) reach: Connector,
    pub(super) client: Client,
    pub(super) app: App,
    /// Where a new conversation is; its lines are completed after the first frame.
    pub(super) place: Option<Place>,
    /// `None` until the session exists.
    pub(super) follow: Option<Follow>,
    pub(super) include: Include,
    /// The session that the first input creates.
    pub(super) create: CreateParams,
}

/// Takes the terminal over until the user leaves. Returns the app as it was at the end.
pub(super) async fn run(start: Start) -> Result<(Left, App), Failure> {
    let keys = Keys::take_with_cursor()?;
    let mut screen = Screen::new(io::stdout(), terminal::size()?, keys.cursor_row(), colours_wanted())?;
    let Start { reach, client, app, place, follow, include, create } = start;
    let mut calls = JoinSet::new();
    if let Some(place) = place {
        let client = client.clone();
        calls.spawn(async move { Done::StartLines(place.complete(client).await) });
    }
    let caller = Caller { client, session: app.session.session_id };
    let last_known = follow.is_some().then_some(app.session.last_seq);
    let mut live = Live {
        reach,
        caller,
        app,
        follow,
        last_known,
        include,
        create,
        keys: Some(keys),
        calls,
        stop_shell: None,
        left: None,
    };
    let left = live.run(&mut screen).await;
    // Restoring a closed terminal fails; the reason of the exit matters more.
    let finished = screen.finish();
    drop(live.keys.take());
    let left = left?;
    finished?;
    Ok((left, live.app))
}

struct Live {
    reach: Connector,
    caller: Caller,
    app: App,
    follow: Option<Follow>,
    /// The last event that existed at the start, until it was received.
    last_known: Option<Seq>,
    include: Include,
    create: CreateParams,
    keys: Option<Keys>,
    calls: JoinSet<Done>,
    stop_shell: Option<oneshot::Sender<()>>,
    left: Option<Left>,
}

impl Live {
    async fn run(&mut self, screen: &mut Screen<Stdout>) -> Result<Left, Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        self.load_commands();
        // What exists already is there within a moment, and then shown at once.
        let (mut is_dirty, mut is_urgent) = (true, self.last_known.is_none());
        let mut drawn_at = Instant::now();
        loop {
            let now = Instant::now();
            self.app.set_surroundings(screen.size(), format::now());
            self.app.update(now);
            for effect in self.app.take_wanted() {
                self.start(effect, screen).await?;
            }
            self.load_context();
            // Another conversation follows at once: drawing this one would flicker.
            let is_replaced = matches!(self.left, Some(Left::Open(_) | Left::New));
            let is_due = is_urgent || is_dirty && now.duration_since(drawn_at) >= FRAME;
            if !is_replaced && (self.left.is_some() || is_due) {
                self.draw(screen, now)?;
                (is_dirty, is_urgent, drawn_at) = (false, false, now);
            }
            if let Some(left) = self.left.take() {
                return Ok(left);
            }
            let wake = self.wake(is_dirty, drawn_at);
            tokio::select! {
                step = next_step(&mut self.follow) => {
                    let was_behind = self.last_known.is_some();
                    self.steps(step?)?;
                    is_dirty = true;
                    is_urgent |= was_behind && self.last_known.is_none();
                }
                input = next_key(&mut self.keys) => {
                    is_urgent = true;
                    match input {
                        Some(Input::Resize(columns, rows)) => {
                            let row = cursor::position().ok().map(|(_, row)| row);
                            screen.resized((columns, rows), row)?;
                        }
                        Some(input) => {
                            if let Some(effect) = self.app.on_input(&input, Instant::now()) {
                                self.start(effect, screen).await?;
                            }
                        }
                        None => return Err(Failure::silent(code::ABORTED)),
                    }
                }
                () = wait_until(wake) => is_dirty = true,
                Some(done) = self.calls.join_next() => {
                    self.done(done.unwrap_or(Done::Taken));
                    is_urgent = true;
                }
                _ = interrupt.recv() => self.start(Effect::Abort, screen).await?,
                _ = terminate.recv() => return Err(Failure::silent(code::ABORTED)),
                _ = hangup.recv() => return Err(Failure::silent(code::ABORTED)),
            }
        }
    }

    fn draw(&mut self, screen: &mut Screen<Stdout>, now: Instant) -> Result<(), Failure> {
        if let Some(text) = self.app.take_alert(now) {
            screen.alert(&text)?;
        }
        let (columns, rows) = screen.size();
        if let Some(pager) = &mut self.app.pager {
            return Ok(screen.show_page(&pager.view(columns, rows))?);
        }
        screen.leave_page()?;
        if self.left.is_some() {
            self.app.finish_start_lines(None);
        }
        let history = self.app.take_history();
        Ok(screen.render(&history, &view(&self.app))?)
    }

    /// When to draw next if nothing happens.
    fn wake(&self, is_dirty: bool, drawn_at: Instant) -> Option<Instant> {
        let frame = is_dirty.then(|| drawn_at + FRAME);
        let is_still = self.app.setup.is_plain || self.app.session.state != SessionState::Running;
        let tick = self.app.is_moving().then(|| drawn_at + if is_still { SLOW_TICK } else { TICK });
        [frame, tick, self.app.next_change()].into_iter().flatten().min()
    }

    /// Handles a step and all steps that are available: a long history is not drawn line by line.
    fn steps(&mut self, first: Step) -> Result<(), Failure> {
        self.step(first)?;
        for _ in 0..BATCH {
            let next = self.follow.as_mut().and_then(|follow| follow.next().now_or_never());
            match next {
                Some(step) => self.step(step?)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Event(received) => {
                self.last_known = self.last_known.filter(|last| received.seq < *last);
                self.app.on_event(&received);
                self.watch_turn(&received)?;
            }
            Step::Lost => self.app.lost = true,
            Step::Back(client) => {
                self.caller.client = client;
                self.app.lost = false;
                self.app.notify("the daemon is back");
            }
        }
        Ok(())
    }

    /// With one turn to follow: notices its end.
    fn watch_turn(&mut self, received: &Received) -> Result<(), Failure> {
        let Some(turn) = self.app.setup.one_turn else { return Ok(()) };
        if let Some(Event::SessionEnded { .. }) = received.event.as_ref().map(|envelope| &envelope.event) {
            return Err(Failure::new(code::ABORTED, "the session was ended before the turn was done"));
        }
        if let Some(ended) = ended(received, self.app.session.session_id, turn)? {
            self.left = Some(Left::Ended(ended));
        }
        Ok(())
    }

    fn done(&mut self, done: Done) {
        let app = &mut self.app;
        match done {
            Done::Taken => {}
            Done::Said(text) => app.notify(text),
            Done::Failed(failure) => app.failed(failure.message),
            Done::Unsent(submission, failure) => app.unsent(submission, &failure.message),
            Done::StartLines(lines) => app.finish_start_lines(Some(lines)),
            Done::Commands(commands) => app.set_commands(commands),
            Done::Files(files) => app.set_files(files),
            Done::History(older, next) => app.add_history(older, next),
            Done::Points(points) => app.set_points(points),
            Done::Models(models) => app.set_models(models),
            Done::Earlier(lines) => app.add_earlier(lines),
            Done::Context(used, window) => app.progress.context = Some((used, window)),
            Done::Rewound(text) => {
                if app.editor.is_empty() {
                    app.editor.insert(&text);
                }
                app.notify("went back; your input is here again");
            }
            Done::Shell { output, end, ms } => app.shell_ended(&output, &end, ms),
        }
    }
}

async fn next_step(follow: &mut Option<Follow>) -> Result<Step, Failure> {
    match follow {
        Some(follow) => follow.next().await,
        None => std::future::pending().await,
    }
}

async fn next_key(keys: &mut Option<Keys>) -> Option<Input> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
