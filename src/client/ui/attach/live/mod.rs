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

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::follow::{FollowStep, SessionFollower, stop_words};
use crate::connection::wire::ReceivedEvent;
use crate::failure::{Failure, code};
use crate::terminal::format;
use crate::terminal::out::allows_colours;
use crate::ui::attach::app::{App, Effect};
use crate::ui::attach::attachments::pasted;
use crate::ui::attach::calls::{Caller, EffectResult};
use crate::ui::attach::screen::Screen;
use crate::ui::attach::start_lines::StartFacts;
use crate::ui::attach::view::view;
use crate::ui::keys::Keys;
use crate::ui::request_timing::wait_until;
use crate::ui::watch::{TurnEnd, find_turn_end};
use api::params::{CreateParams, Include};
use types::event::Event;
use types::ids::{Seq, SessionId};
use types::session::SessionState;

/// Maximum number of events that are handled before the screen is drawn again.
const BATCH_EVENTS: usize = 500;

/// Time between two frames while events arrive. Keys are shown at once.
const FRAME_INTERVAL: Duration = Duration::from_millis(33);

/// Time between two frames while nothing arrives, for the spinner and the seconds.
const TICK_INTERVAL: Duration = Duration::from_millis(250);
const SLOW_TICK_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why the view was closed.
#[derive(Debug)]
pub(super) enum LeaveReason {
    /// The user detached; the session continues.
    Detached,
    /// The one turn that was followed has ended.
    Ended(TurnEnd),
    /// The user opens another session.
    Open(SessionId),
    /// The user begins a new conversation.
    New,
}

pub(super) struct ConversationStart {
    pub(super) reach: Connector,
    pub(super) client: Client,
    pub(super) app: App,
    /// The folder of a new conversation. The lines above the conversation are completed after the first
    /// frame.
    pub(super) place: Option<StartFacts>,
    /// `None` until the session exists.
    pub(super) follow: Option<SessionFollower>,
    pub(super) include: Include,
    /// The session that the first input creates.
    pub(super) create: CreateParams,
}

/// Uses the terminal until the user exits. Returns the app in its final state.
pub(super) async fn run(start: ConversationStart) -> Result<(LeaveReason, App), Failure> {
    let keys = Keys::enter_raw_mode_with_cursor()?;
    let mut screen = Screen::new(io::stdout(), terminal::size()?, keys.cursor_row(), allows_colours())?;
    let ConversationStart { reach, client, app, place, follow, include, create } = start;
    let mut calls = JoinSet::new();
    if let Some(place) = place {
        let client = client.clone();
        calls.spawn(async move { EffectResult::StartLines(place.complete(client).await) });
    }
    let caller = Caller { client, session: app.session.session_id };
    let last_known = follow.is_some().then_some(app.session.last_seq);
    let mut live = LiveConversation {
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
    // Restoring a closed terminal fails. The reason of the exit matters more, so report that first.
    let finished = screen.finish();
    drop(live.keys.take());
    let left = left?;
    finished?;
    Ok((left, live.app))
}

struct LiveConversation {
    reach: Connector,
    caller: Caller,
    app: App,
    follow: Option<SessionFollower>,
    /// Seq of the last event that existed at the start, until that event was received.
    last_known: Option<Seq>,
    include: Include,
    create: CreateParams,
    keys: Option<Keys>,
    calls: JoinSet<EffectResult>,
    stop_shell: Option<oneshot::Sender<()>>,
    left: Option<LeaveReason>,
}

impl LiveConversation {
    async fn run(&mut self, screen: &mut Screen<Stdout>) -> Result<LeaveReason, Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        self.load_commands();
        // Existing events arrive within a moment. They are shown once all of them have arrived.
        let (mut is_dirty, mut is_urgent) = (true, self.last_known.is_none());
        let mut drawn_at = Instant::now();
        loop {
            let now = Instant::now();
            self.app.set_environment(screen.size(), format::now());
            self.app.update(now);
            for effect in self.app.take_queued_effects() {
                self.start_effect(effect, screen).await?;
            }
            self.load_context();
            // Do not draw if another conversation follows at once, because the screen would flicker.
            let is_replaced = matches!(self.left, Some(LeaveReason::Open(_) | LeaveReason::New));
            let is_due = is_urgent || is_dirty && now.duration_since(drawn_at) >= FRAME_INTERVAL;
            if !is_replaced && (self.left.is_some() || is_due) {
                self.draw(screen, now)?;
                (is_dirty, is_urgent, drawn_at) = (false, false, now);
            }
            if let Some(left) = self.left.take() {
                return Ok(left);
            }
            let wake = self.next_draw(is_dirty, drawn_at);
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
                            screen.handle_resize((columns, rows), row)?;
                        }
                        Some(input) => {
                            let input = match input {
                                Input::Paste(text) => Input::Paste(pasted(&self.app, text)),
                                other => other,
                            };
                            if let Some(effect) = self.app.on_input(&input, Instant::now()) {
                                self.start_effect(effect, screen).await?;
                            }
                        }
                        None => return Err(Failure::silent(code::ABORTED)),
                    }
                }
                () = wait_until(wake) => is_dirty = true,
                Some(done) = self.calls.join_next() => {
                    self.handle_result(done.unwrap_or(EffectResult::Taken));
                    is_urgent = true;
                }
                _ = interrupt.recv() => self.start_effect(Effect::Abort, screen).await?,
                _ = terminate.recv() => return Err(Failure::silent(code::ABORTED)),
                _ = hangup.recv() => return Err(Failure::silent(code::ABORTED)),
            }
        }
    }

    fn draw(&mut self, screen: &mut Screen<Stdout>, now: Instant) -> Result<(), Failure> {
        if let Some(text) = self.app.take_alert(now) {
            screen.alert(&text)?;
        }
        // The event of a resize may still be queued behind those of the stream. Rows for the old width would wrap, and
        // parts of them would stay in the scrollback.
        let size = terminal::size()?;
        if screen.is_resized(size) {
            screen.handle_resize(size, cursor::position().ok().map(|(_, row)| row))?;
            self.app.set_environment(screen.size(), format::now());
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

    /// The time of the next frame if no event and no key arrives.
    fn next_draw(&self, is_dirty: bool, drawn_at: Instant) -> Option<Instant> {
        let frame = is_dirty.then(|| drawn_at + FRAME_INTERVAL);
        let is_still = self.app.setup.is_plain || self.app.session.summary.state != SessionState::Running;
        let tick = self
            .app
            .is_moving()
            .then(|| drawn_at + if is_still { SLOW_TICK_INTERVAL } else { TICK_INTERVAL });
        [frame, tick, self.app.next_change()].into_iter().flatten().min()
    }

    /// Handles a step and all further available steps, so that a long history is not drawn line by line.
    fn steps(&mut self, first: FollowStep) -> Result<(), Failure> {
        self.step(first)?;
        for _ in 0..BATCH_EVENTS {
            let next = self.follow.as_mut().and_then(|follow| follow.next().now_or_never());
            match next {
                Some(step) => self.step(step?)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn step(&mut self, step: FollowStep) -> Result<(), Failure> {
        match step {
            FollowStep::Event(received) => {
                self.last_known = self.last_known.filter(|last| received.seq < *last);
                self.app.on_event(&received);
                self.watch_turn(&received)?;
            }
            FollowStep::Restarting(reason) => self.app.lost = Some(stop_words(reason)),
            FollowStep::Lost => self.app.lost = Some("connecting to the daemon…"),
            FollowStep::Back(client) => {
                self.caller.client = client;
                self.app.lost = None;
                self.app.notify("the daemon is back");
            }
        }
        Ok(())
    }

    /// Notices the end of the turn, if only one turn is followed.
    fn watch_turn(&mut self, received: &ReceivedEvent) -> Result<(), Failure> {
        let Some(turn) = self.app.setup.one_turn else { return Ok(()) };
        if let Some(Event::SessionEnded { .. }) = received.event.as_ref().map(|envelope| &envelope.event) {
            return Err(Failure::new(code::ABORTED, "the session was ended before the turn was done"));
        }
        if let Some(ended) = find_turn_end(received, self.app.session.session_id, turn)? {
            self.left = Some(LeaveReason::Ended(ended));
        }
        Ok(())
    }

    fn handle_result(&mut self, done: EffectResult) {
        let app = &mut self.app;
        match done {
            EffectResult::Taken => {}
            EffectResult::Said(text) => app.notify(text),
            EffectResult::Stopped => app.end_stop_hint(),
            EffectResult::Failed(failure) => app.show_failure(failure.message),
            EffectResult::Unsent(submission, failure) => app.restore_input(submission, &failure.message),
            EffectResult::StartLines(lines) => app.finish_start_lines(Some(lines)),
            EffectResult::Commands(commands) => app.set_commands(commands),
            EffectResult::Files(files) => app.set_files(files),
            EffectResult::Picture(data) => app.line.editor.paste_picture(data),
            EffectResult::History(older, next) => app.add_history(older, next),
            EffectResult::Points(points) => app.set_points(points),
            EffectResult::Models(models) => app.set_models(models),
            EffectResult::Earlier(lines) => app.add_earlier(lines),
            EffectResult::Context(used, window) => app.progress.context = Some((used, window)),
            EffectResult::Rewound(text, files) => {
                if app.line.editor.is_empty() {
                    app.line.editor.insert(&text);
                }
                let what =
                    if files { "the conversation and the files" } else { "the conversation, not the files" };
                app.notify(&format!("rewound {what}; your input is in the line again"));
            }
            EffectResult::Shell { output, end, ms } => app.finish_shell(&output, &end, ms),
        }
    }
}

async fn next_step(follow: &mut Option<SessionFollower>) -> Result<FollowStep, Failure> {
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
