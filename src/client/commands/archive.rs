//! `agentctl archive`: archives sessions, or restores them.

use crate::api::params::{ArchiveParams, SessionReply};
use crate::client::commands::abort::find;
use crate::client::connection::connector::Connector;
use crate::client::failure::Failure;
use crate::client::terminal::out::OutputStreams;

pub(in crate::client) async fn archive(
    reach: &Connector,
    names: &[String],
    undo: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for session in find(&client, names).await? {
        let session_id = session.session_id;
        let params = ArchiveParams { session_id, archived: !undo, idempotency_key: None };
        let SessionReply { session } = client.call("session.archive", &params).await?;
        out.say(&session.session_id.to_string())?;
    }
    Ok(())
}
