//! The middle of the demonstration: the client disconnects while a request is pending, the daemon is killed, and the
//! same request is pending again.

use api::methods;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use crate::commands::approve;
use crate::commands::demo::{heading, say};
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::follow::{FollowStep, SessionFollower};
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use crate::terminal::style::{StyledLine, Tone};
use crate::ui::prompt;
use crate::ui::render::{OutputPiece, Transcript};
use api::params::{NoParams, StatusReply};
use types::event::Event;
use types::ids::{PermissionId, Seq, SessionId};

/// Time for the killed daemon to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Shows the interruption. Returns a new connection and the seq before the request's event. If the turn makes
/// no permission request, no daemon is killed.
pub(super) async fn show(
    reach: &Connector,
    client: Client,
    session: SessionId,
    out: &mut OutputStreams,
) -> Result<(Client, Seq), Failure> {
    let Some((request, seq)) = until_request(reach, &client, session, out).await? else {
        return Ok((client, 0));
    };
    heading(out, "Ctrl-D: this terminal goes away, the request stays")?;
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    heading(out, &format!("kill -9 {}: now the daemon has ended too", status.pid))?;
    let pid =
        i32::try_from(status.pid).map_err(|_| Failure::internal("the daemon has a strange process id"))?;
    kill(Pid::from_raw(pid), Signal::SIGKILL).map_err(|error| {
        Failure::internal(format!("could not kill the daemon of the demonstration: {error}"))
    })?;
    let deadline = Instant::now() + EXIT_TIMEOUT;
    while !client.is_closed() {
        if Instant::now() > deadline {
            return Err(Failure::internal("the killed daemon is still there after 10 s"));
        }
        sleep(Duration::from_millis(10)).await;
    }
    let killed_at = Instant::now();
    let killed = status.pid;
    let (client, status) = loop {
        let client = reach.connect_or_start().await?;
        // The killed process may still answer while it ends.
        match client.call::<methods::daemon::Status>(&NoParams {}).await {
            Ok(status) if status.pid != killed => break (client, status),
            Err(error) if Instant::now() > deadline => return Err(error.into()),
            Ok(_) if Instant::now() > deadline => {
                return Err(Failure::internal("the killed daemon still answers after 10 s"));
            }
            _ => sleep(Duration::from_millis(10)).await,
        }
    };
    let ms = killed_at.elapsed().as_millis();
    say(out, &format!("the next command starts another: process {}, after {ms} ms", status.pid))?;
    heading(out, "agentctl approvals")?;
    approve::list(reach, &[], false, out).await?;
    out.line(&StyledLine::new(Tone::Good, format!("the same request as before: {request}")))?;
    heading(out, "agentctl attach")?;
    Ok((client, seq.saturating_sub(1)))
}

/// Prints the turn until it asks for permission. Returns `None` if the turn ended before that.
async fn until_request(
    reach: &Connector,
    client: &Client,
    session: SessionId,
    out: &mut OutputStreams,
) -> Result<Option<(PermissionId, Seq)>, Failure> {
    let mut follow = SessionFollower::start(reach, client, session, 0).await?;
    let mut transcript = Transcript::default();
    loop {
        let FollowStep::Event(received) = follow.next().await? else { continue };
        let Some(envelope) = &received.event else { continue };
        if let Event::PermissionRequested { request, .. } = &envelope.event {
            out.fresh_line()?;
            for line in prompt::question(request) {
                out.line(&line)?;
            }
            return Ok(Some((request.request_id, envelope.seq)));
        }
        if matches!(envelope.event, Event::TurnCompleted { .. }) {
            return Ok(None);
        }
        for piece in transcript.render_event(envelope) {
            match piece {
                OutputPiece::Text(text) => out.stream_words(&text)?,
                OutputPiece::Break => out.fresh_line()?,
                OutputPiece::Line(line) => out.wrapped_line(&line)?,
                OutputPiece::Folded { shown, .. } => shown.iter().try_for_each(|line| out.line(line))?,
            }
        }
    }
}
