//! `agentctl update`: changes the options of a session's turns.

use crate::api::params::{SessionReply, UpdateParams};
use crate::client::args::TurnArgs;
use crate::client::connection::connector::Connector;
use crate::client::connection::session_calls::idempotency_key;
use crate::client::failure::Failure;
use crate::client::resolve_id;
use crate::client::terminal::out::OutputStreams;
use crate::types::turn_options::TurnOptions;

pub(in crate::client) async fn update(
    reach: &Connector,
    name: &str,
    turn: &TurnArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let options = turn.options()?;
    if options == TurnOptions::default() {
        return Err(Failure::usage(
            "name at least one option to change; `agentctl update --help` lists them",
        ));
    }
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?.session_id;
    let params = UpdateParams { idempotency_key: Some(idempotency_key()), ..UpdateParams::new(session) };
    let _: SessionReply = client.call("session.update", &params.with_options(options)).await?;
    Ok(out.note("changed")?)
}
