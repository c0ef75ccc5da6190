//! `agentctl update`: changes the options of a session's turns.

use crate::args::TurnArgs;
use crate::connection::connector::Connector;
use crate::connection::environment::EnvironmentArgs;
use crate::connection::session_calls::idempotency_key;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{SessionReply, UpdateParams};
use types::turn_options::TurnOptions;

pub(crate) async fn update(
    reach: &Connector,
    name: &str,
    turn: &TurnArgs,
    variables: &EnvironmentArgs,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let options = turn.options(reach.machine())?;
    let env = if variables.env.is_empty() { None } else { Some(variables.collect(reach.machine())?) };
    if options == TurnOptions::default() && env.is_none() {
        return Err(Failure::usage(
            "name at least one option to change; `agentctl update --help` lists them",
        ));
    }
    let client = reach.connect_or_start().await?;
    let session = resolve_id::session(&client, name).await?.session_id;
    let params = UpdateParams { idempotency_key: Some(idempotency_key()), env, ..UpdateParams::new(session) };
    let _: SessionReply = client.call::<methods::session::Update>(&params.with_options(options)).await?;
    Ok(out.note("changed")?)
}
