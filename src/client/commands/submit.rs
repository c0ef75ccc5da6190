//! `agentctl submit`: submits input to a session and returns.

use std::path::Path;

use crate::args::TurnArgs;
use crate::commands::abort::turn_name;
use crate::connection::connector::Connector;
use crate::connection::input_files::{InputFileArgs, mentioned_in_argument};
use crate::connection::plain_text::is_plain_text;
use crate::connection::session_calls;
use crate::connection::stdin;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{CommandListParams, SubmitParams};
use types::outcome::{AcceptedState, SubmitOutcome};
use types::queue::WhenBusy;

pub(crate) async fn submit(
    reach: &Connector,
    name: &str,
    text: String,
    when_busy: Option<WhenBusy>,
    (turn, raw): (&TurnArgs, bool),
    input_files: &InputFileArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let is_piped = text == "-";
    let text = if is_piped { stdin::read_all()? } else { text };
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty"));
    }
    let piped = if is_piped { None } else { stdin::read_piped(out)? };
    let typed = text.clone();
    let machine = reach.machine();
    let options = turn.options(machine)?;
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?;
    let mentioned = match is_piped {
        true => Vec::new(),
        false => mentioned_in_argument(&text, (Path::new(&session.cwd), machine), out)?,
    };
    let input = input_files.input(text, piped, mentioned, machine)?;
    let session_id = session.session_id;
    let place = CommandListParams { session_id: Some(session_id), cwd: None };
    let raw = raw || is_plain_text(&client, &typed, &place, out).await?;
    let params = SubmitParams { raw, ..session_calls::submit_params(session_id, input, when_busy, options) };
    let reply: SubmitOutcome = client.call::<methods::session::Submit>(&params).await?;
    if let Some(text) = &reply.text {
        return Ok(out.say_text(text)?);
    }
    out.say(&turn_name(&session, reply.turn_id, out))?;
    match reply.state {
        AcceptedState::Running | AcceptedState::Completed => Ok(()),
        AcceptedState::Queued => Ok(out.note("queued: it starts when the running turn has ended")?),
        AcceptedState::Steered => Ok(out.note("given to the running turn")?),
    }
}
