//! `agentctl fork`: creates a session with the conversation of another one.

use crate::connection::connector::Connector;
use crate::connection::session_calls;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{ForkParams, SessionReply};
use types::ids::ItemId;

pub(crate) async fn fork(
    reach: &Connector,
    name: &str,
    item_id: Option<ItemId>,
    title: Option<String>,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let idempotency_key = Some(session_calls::idempotency_key());
    let params = ForkParams { session_id, item_id, title, idempotency_key };
    let SessionReply { session } = client.call::<methods::session::Fork>(&params).await?;
    let worktree = session.details.as_ref().and_then(|details| details.worktree.as_ref());
    if let Some(worktree) = worktree
        && let Some(other) = worktree.shared_with
    {
        let path = escape::line(&worktree.path);
        out.note(&format!("it shares the worktree {path} with {other}, which stays until both have ended"))?;
    }
    Ok(out.say(&session.session_id.to_string())?)
}
