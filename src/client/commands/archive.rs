//! `agentctl archive`: archives sessions, or restores them.

use crate::commands::abort::{find, reply_name};
use crate::connection::connector::Connector;
use crate::failure::Failure;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{ArchiveParams, SessionReply};

pub(crate) async fn archive(
    reach: &Connector,
    names: &[String],
    undo: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    for session in find(&client, names).await? {
        let session_id = session.session_id;
        let params = ArchiveParams { session_id, archived: !undo, idempotency_key: None };
        let SessionReply { session } = client.call::<methods::session::Archive>(&params).await?;
        out.say(&reply_name(&session, out))?;
    }
    Ok(())
}
