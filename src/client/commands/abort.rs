//! `agentctl abort`, `kill` and `rm`: abort a turn, end a session, delete a session.

use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::resolve_id::{self, OPEN_STATES};
use crate::terminal::confirm::confirm;
use crate::terminal::escape;
use crate::terminal::format::session_name;
use crate::terminal::out::OutputStreams;
use api::params::{AbortParams, AbortReply, EndParams, ListParams};
use api::{ApiMethod, methods};
use types::ids::{CallId, TurnId};
use types::session::{SessionState, SessionView};

pub(crate) async fn abort(
    reach: &Connector,
    name: &str,
    turn: Option<&str>,
    call: Option<&str>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let call_id = call
        .map(|text| text.parse::<CallId>().map_err(|e| Failure::usage(format!("--call: {e}"))))
        .transpose()?;
    let turn_id = turn
        .map(|text| text.parse::<TurnId>().map_err(|e| Failure::usage(format!("--turn: {e}"))))
        .transpose()?;
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?;
    let session_id = session.session_id;
    let params = AbortParams { session_id, turn_id, call_id, idempotency_key: None };
    let reply: AbortReply = client.call::<methods::session::Abort>(&params).await?;
    if reply.stopped.is_empty() {
        out.note("nothing was running")?;
    }
    match reply.stopped.as_slice() {
        [_, ..] if out.is_terminal() => out.say(&format!("{}: stopped", session_name(&session)))?,
        stopped => stopped.iter().try_for_each(|id| out.say(&escape::line(id)))?,
    }
    if reply.survivors.is_empty() {
        return Ok(());
    }
    let pids: Vec<String> = reply.survivors.iter().map(ToString::to_string).collect();
    Err(Failure::internal(format!("these processes could not be stopped: {}", pids.join(" "))))
}

pub(crate) async fn kill(
    reach: &Connector,
    names: &[String],
    all: bool,
    force: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let sessions = if all {
        let mut every = resolve_id::all_sessions(&client, &ListParams::default()).await?;
        every.retain(|session| OPEN_STATES.contains(&session.summary.state));
        if !force && !every.is_empty() {
            confirm(&all_question(&every), "-f")?;
        }
        every
    } else {
        find(&client, names).await?
    };
    for session in &sessions {
        end::<methods::session::Kill>(&client, session).await?;
        // For one session, the note below has its number.
        if !out.is_terminal() || sessions.len() > 1 {
            out.say(&reply_name(session, out))?;
        }
    }
    match sessions.as_slice() {
        [] => Ok(out.note("no session was open")?),
        [one] => Ok(
            out.note(&format!("ended #{0}; `agentctl fork {0}` continues it as a new session", one.number))?
        ),
        several => Ok(
            out.note(&format!("ended {}; `agentctl fork N` continues one as a new session", several.len()))?
        ),
    }
}

fn all_question(sessions: &[SessionView]) -> String {
    let folders: std::collections::BTreeSet<&str> = sessions.iter().map(|it| it.cwd.as_str()).collect();
    let is_working =
        |it: &&SessionView| matches!(it.summary.state, SessionState::Running | SessionState::RequiresAction);
    let working = sessions.iter().filter(is_working).count();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "End {} session{} in {} folder{}, {working} of them at work? They take no further input.",
        sessions.len(),
        plural(sessions.len()),
        folders.len(),
        plural(folders.len())
    )
}

pub(crate) async fn remove(
    reach: &Connector,
    names: &[String],
    force: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let sessions = find(&client, names).await?;
    let busy =
        |s: &&SessionView| matches!(s.summary.state, SessionState::Running | SessionState::RequiresAction);
    if let Some(busy) = sessions.iter().find(busy).filter(|_| !force) {
        return Err(Failure::internal(format!(
            "{} is working ({}); abort or kill it first, or use -f. Nothing was removed",
            session_name(busy),
            busy.summary.state.name()
        )));
    }
    for session in sessions {
        end::<methods::session::Delete>(&client, &session).await?;
        out.say(&reply_name(&session, out))?;
    }
    Ok(())
}

/// The session in the reply of a command: its number for a person, and its id for a pipe.
pub(crate) fn reply_name(session: &SessionView, out: &OutputStreams) -> String {
    if out.is_terminal() { session_name(session) } else { session.session_id.to_string() }
}

/// The turn in the reply of a command: the number of its session for a person, and its own id for a pipe.
pub(crate) fn turn_name(session: &SessionView, turn_id: TurnId, out: &OutputStreams) -> String {
    if out.is_terminal() { session_name(session) } else { turn_id.to_string() }
}

/// Resolves all names before the first session is changed.
pub(crate) async fn find(client: &Client, names: &[String]) -> Result<Vec<SessionView>, Failure> {
    let mut sessions: Vec<SessionView> = Vec::new();
    for name in names {
        let session = resolve_id::session(client, name).await?;
        if !sessions.iter().any(|s| s.session_id == session.session_id) {
            sessions.push(session);
        }
    }
    Ok(sessions)
}

async fn end<M>(client: &Client, session: &SessionView) -> Result<(), Failure>
where
    M: ApiMethod<Params = EndParams>,
{
    let params = EndParams { session_id: session.session_id, idempotency_key: None };
    client.call::<M>(&params).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::commands::abort::*;
    use crate::fake_daemon::{FakeDaemon, SESSION};
    use crate::resolve_id::sample;
    use crate::terminal::out::testing::{captured_output, captured_pipe};
    use serde_json::json;

    fn shared(state: &'static str) -> FakeDaemon {
        FakeDaemon::start(move |_, method, _| {
            let mut session = sample(SESSION, "one");
            (session["state"], session["number"]) = (json!(state), json!(12));
            match method {
                "session.list" => Ok(json!({"sessions": [session]})),
                "session.abort" => Ok(json!({"stopped": ["turn_x"], "survivors": [7]})),
                "session.kill" => Ok(json!({"stopped": [], "survivors": []})),
                _ => Ok(json!({})),
            }
        })
    }

    #[tokio::test]
    async fn rm_of_running_session_requires_force() {
        let fake = shared("running");
        let (mut out, text, _) = captured_output();
        let names = ["one".to_string(), "0190f2a4".to_string()];
        let failure = remove(&fake.connector(), &names, false, &mut out).await.expect_err("refused");
        assert!(failure.message.contains("working (running)"), "{failure}");
        assert!(fake.calls().iter().all(|(method, _)| method == "session.list"));
        remove(&fake.connector(), &names, true, &mut out).await.expect("removed");
        assert_eq!(text.text(), "#12\n");
        // A script reads ids.
        let (mut out, text, _) = captured_pipe();
        remove(&fake.connector(), &names, true, &mut out).await.expect("removed");
        assert_eq!(text.text(), format!("{SESSION}\n"));
    }

    #[tokio::test]
    async fn kill_all_skips_ended_sessions() {
        for (state, expected) in [("idle", 1), ("ended", 0)] {
            let fake = shared(state);
            let (mut out, _, _) = captured_output();
            kill(&fake.connector(), &[], true, true, &mut out).await.expect("killed");
            assert_eq!(fake.calls().iter().filter(|(m, _)| m == "session.kill").count(), expected, "{state}");
        }
    }

    #[tokio::test]
    async fn abort_with_surviving_processes_is_failure() {
        let fake = shared("running");
        let (mut out, text, _) = captured_output();
        let failure = abort(&fake.connector(), "one", None, None, &mut out).await.expect_err("survivors");
        assert_eq!((text.text().as_str(), failure.code), ("#12: stopped\n", 4));
        assert!(failure.message.ends_with(": 7"));
        assert_eq!(
            abort(&fake.connector(), "one", None, Some("call_x"), &mut out).await.expect_err("bad id").code,
            64
        );
    }
}
