//! `agentctl wait` and `result`: wait until a session reaches a state, and print its last answer.

use api::methods;

use crate::connection::connector::Connector;
use crate::connection::waiting::call_through_restarts;
use crate::failure::{Failure, code};
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::params::{WaitParams, WaitReply};
use types::session::{SessionState, TurnResult};

/// Prints the state, then the text of the newest result. Without `until`, the exit code is that of the result.
pub(crate) async fn wait(
    reach: &Connector,
    name: &str,
    until: Vec<SessionState>,
    timeout_ms: Option<u64>,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let mut client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let judges_result = until.is_empty();
    let until = Some(until).filter(|states| !states.is_empty());
    let params = |timeout_ms| WaitParams { session_id, until: until.clone(), timeout_ms };
    let reply: WaitReply =
        call_through_restarts::<methods::session::Wait>(reach, &mut client, timeout_ms, params, out).await?;
    let state = reply.session.summary.state;
    if json {
        out.json(&reply)?;
    } else if !reply.timed_out {
        out.say(state.name())?;
        let text = reply.result.as_ref().filter(|_| state == SessionState::Idle).map(|result| &result.text);
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            out.say_text(text)?;
        }
    }
    if reply.timed_out {
        return Err(Failure::internal(format!("the time is over; the session is {}", state.name())));
    }
    match reply.result.filter(|_| judges_result && state == SessionState::Idle) {
        Some(result) => outcome(&result),
        None => Ok(()),
    }
}

/// Prints the answer of the last turn. The exit code is that of the turn.
pub(crate) async fn result(
    reach: &Connector,
    name: &str,
    json: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.as_observer().connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?;
    let params = WaitParams { session_id: session.session_id, until: None, timeout_ms: Some(0) };
    let reply: WaitReply = client.call::<methods::session::Wait>(&params).await?;
    let Some(result) = reply.result else {
        return Err(Failure::internal(format!(
            "#{} has no result yet; `agentctl wait {}` waits for one",
            session.number, session.number
        )));
    };
    if reply.timed_out {
        out.note("a further turn runs; this is the result of the one before")?;
    }
    if json {
        out.json(&result)?;
    } else {
        out.say_text(&result.text)?;
    }
    outcome(&result)
}

fn outcome(result: &TurnResult) -> Result<(), Failure> {
    match crate::failure::code_of(result.subtype.name()) {
        code::SUCCESS => Ok(()),
        code => {
            let message = result.errors.first().map_or("", |error| error.message.as_str());
            let message = if message.is_empty() { result.subtype.name() } else { message };
            Err(Failure::new(code, escape::line(message)))
        }
    }
}
