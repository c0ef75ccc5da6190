//! `agentctl rewind`: makes an earlier item the last one of a conversation, and restores files.

use crate::connection::connector::Connector;
use crate::connection::session_calls;
use crate::failure::Failure;
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::out::OutputStreams;
use api::methods;
use api::params::{RewindParams, RewindReply};
use types::history::FileAction;
use types::ids::ItemId;

pub(crate) async fn rewind(
    reach: &Connector,
    name: &str,
    item_id: ItemId,
    files: bool,
    dry_run: bool,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    let session_id = resolve_id::session(&client, name).await?.session_id;
    let idempotency_key = Some(session_calls::idempotency_key()).filter(|_| !dry_run);
    let params = RewindParams { session_id, item_id, files, dry_run, idempotency_key };
    let reply: RewindReply = client.call::<methods::session::Rewind>(&params).await?;
    if !reply.conflicts.is_empty() {
        let line = |path: &str, reason: &str| format!("\n  {}: {}", escape::line(path), escape::line(reason));
        let list: Vec<String> = reply.conflicts.iter().map(|it| line(&it.path, &it.reason)).collect();
        return Err(Failure::internal(format!(
            "nothing was changed, because of these files (without --files only the conversation is rewound):{}",
            list.concat()
        )));
    }
    for file in &reply.files {
        let action = match file.action {
            FileAction::Restored => "restored",
            FileAction::Deleted => "deleted",
            FileAction::Unchanged => "unchanged",
        };
        out.say(&format!("{action}  {}", escape::line(&file.path)))?;
    }
    let count = reply.removed_items.len();
    let items = if count == 1 { "item" } else { "items" };
    let done = if dry_run { "would be removed; nothing was changed" } else { "removed" };
    Ok(out.note(&format!("{count} {items} {done}"))?)
}
