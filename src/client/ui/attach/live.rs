//! The loop that connects daemon, keyboard and screen.

use std::io::{self, IsTerminal as _, Stdout};
use std::time::Instant;

use futures_util::FutureExt as _;
use ratatui::crossterm::event::Event as Input;
use ratatui::crossterm::{cursor, terminal};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::api::params::{AbortParams, AbortReply, AnswerReply, ApproveReply};
use crate::client::args::Thinking;
use crate::client::connection::client::{CallError, Client};
use crate::client::connection::connector::Connector;
use crate::client::connection::follow::{Follow, Step};
use crate::client::connection::session_calls;
use crate::client::failure::{Failure, code};
use crate::client::resolve_id;
use crate::client::terminal::escape;
use crate::client::terminal::format::short_id;
use crate::client::terminal::out::{Out, colours_wanted};
use crate::client::ui::attach::app::{App, Effect};
use crate::client::ui::attach::plain;
use crate::client::ui::attach::screen::Screen;
use crate::client::ui::attach::view::view;
use crate::client::ui::keys::Keys;
use crate::client::ui::request_timing::wait_until;

/// Maximum number of events that are handled before the screen is drawn again.
const BATCH: usize = 500;

pub(in crate::client) async fn attach(
    reach: &Connector,
    name: &str,
    thinking: Thinking,
    out: &mut Out,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session = if name == "." {
        resolve_id::newest_here(&client).await?
    } else {
        resolve_id::session(&client, name).await?
    };
    let follow = Follow::start_with(reach, &client, session.session_id, 0, thinking.include()).await?;
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        return plain::plain(client, follow, session, &mut Out::all_on_stdout()).await;
    }
    let short = short_id(session.session_id);
    let title = escape::line(&session.title).into_owned();
    out.note(&format!("session {short} · {title} · {}", escape::line(&session.cwd)))?;
    let ended = {
        let mut keys = Keys::take_until_signal()?;
        let row = cursor::position().map_or(u16::MAX, |(_, row)| row);
        let mut screen = Screen::new(io::stdout(), terminal::size()?, row, colours_wanted())?;
        let app = App::new(session, reach.places.flags.clone());
        let live = Live { app, client, follow, calls: JoinSet::new() };
        let ended = live.run(&mut keys, &mut screen).await;
        // Restoring a closed terminal fails; the reason of the exit matters more.
        let finished = screen.finish();
        ended.and_then(|()| Ok(finished?))
    };
    ended?;
    Ok(out.note(&format!("detached; it goes on without you · agentctl attach {short}"))?)
}

/// Result of an effect.
enum Done {
    Taken,
    Said(&'static str),
    /// The daemon did not accept it: the text goes back into the input line.
    Unsent(String, Failure),
    Failed(Failure),
}

struct Live {
    app: App,
    client: Client,
    follow: Follow,
    calls: JoinSet<Done>,
}

impl Live {
    async fn run(mut self, keys: &mut Keys, screen: &mut Screen<Stdout>) -> Result<(), Failure> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        loop {
            self.app.update(Instant::now());
            let next_change = self.app.next_change();
            let (columns, rows) = screen.size();
            let history = self.app.take_history(columns);
            screen.render(&history, &view(&self.app, columns, rows))?;
            tokio::select! {
                step = self.follow.next() => self.steps(step?).await?,
                input = keys.next() => match input {
                    Some(Input::Resize(columns, rows)) => {
                        let row = cursor::position().ok().map(|(_, row)| row);
                        screen.resized((columns, rows), row)?;
                    }
                    Some(input) => match self.app.on_input(&input, Instant::now()) {
                        Some(Effect::Detach) => return Ok(()),
                        Some(effect) => self.start(effect),
                        None => {}
                    },
                    None => return Err(Failure::silent(code::ABORTED)),
                },
                () = wait_until(next_change) => {}
                Some(done) = self.calls.join_next() => self.done(done.unwrap_or(Done::Taken)),
                _ = interrupt.recv() => self.start(Effect::Abort),
                _ = terminate.recv() => return Err(Failure::silent(code::ABORTED)),
                _ = hangup.recv() => return Err(Failure::silent(code::ABORTED)),
            }
        }
    }

    /// Handles a step and all steps that are available: a long history is not drawn line by line.
    async fn steps(&mut self, first: Step) -> Result<(), Failure> {
        self.step(first);
        for _ in 0..BATCH {
            match self.follow.next().now_or_never() {
                Some(step) => self.step(step?),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Event(received) => self.app.on_event(&received),
            Step::Lost => self.app.lost = true,
            Step::Back(client) => {
                self.client = client;
                self.app.lost = false;
                self.app.notify("the daemon is back");
            }
        }
    }

    fn start(&mut self, effect: Effect) {
        let client = self.client.clone();
        let session_id = self.app.session.session_id;
        self.calls.spawn(async move {
            match effect {
                Effect::Submit(text) => {
                    match session_calls::submit(&client, session_id, text.clone(), None).await {
                        // An event reports the queued input to all clients.
                        Ok(_) => Done::Taken,
                        Err(failure) => Done::Unsent(text, failure),
                    }
                }
                Effect::Approve(params) => {
                    answered(client.call::<ApproveReply>("session.approve", &params).await.map(|_| ()))
                }
                Effect::Answer(params) => {
                    answered(client.call::<AnswerReply>("session.answer", &params).await.map(|_| ()))
                }
                Effect::Choose(params) => {
                    answered(client.call::<AnswerReply>("session.feedback", &params).await.map(|_| ()))
                }
                Effect::Abort => {
                    let params =
                        AbortParams { session_id, turn_id: None, call_id: None, idempotency_key: None };
                    match client.call::<AbortReply>("session.abort", &params).await {
                        Ok(_) => Done::Said("aborted"),
                        Err(error) => Done::Failed(error.into()),
                    }
                }
                Effect::Detach => Done::Taken,
            }
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Taken => {}
            Done::Said(text) => self.app.notify(text),
            Done::Failed(failure) => self.app.notice = failure.message,
            Done::Unsent(text, failure) => {
                if self.app.editor.is_empty() {
                    self.app.editor.insert(&text);
                }
                self.app.notice = format!("not sent: {failure}");
            }
        }
    }
}

/// The outcome of an answer to a request or question.
fn answered(sent: Result<(), CallError>) -> Done {
    match sent {
        Ok(()) => Done::Taken,
        Err(CallError::Fault(fault)) if fault.kind() == "not_pending" => {
            Done::Said("another client answered first")
        }
        Err(error) => Done::Failed(error.into()),
    }
}
