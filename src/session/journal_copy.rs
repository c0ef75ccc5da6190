//! Reads a journal up to an item, and computes the session's state at that item.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::error::SessionError;
use crate::shared::Shared;
use engine::{CopyEnd, CopyLimits, Decision, Engine, HistoryPoint, Input, JournalCopier, Now};
use store::{Page, SessionKey};
use types::event::{Envelope, Event};
use types::history::ForkedFrom;
use types::ids::{BlobId, ItemId, Seed, Seq, SessionId};
use types::session::SessionSpec;

/// Rows per read.
const PAGE_ROWS: u32 = 1_000;
/// Bytes per read.
const PAGE_BYTES: usize = 4 << 20;

/// The copy of a journal up to an item.
pub(crate) struct JournalCopy {
    /// The copied events as they are stored, with truncated values.
    pub events: Vec<Envelope>,
    /// The blobs that the events refer to.
    pub blobs: BTreeSet<BlobId>,
    /// The decision that ends the copy: it closes interrupted calls and an open turn, and adds the final event.
    pub ending: Box<Decision>,
}

/// The seqs of an item's first and last event. An item that is not complete is an error.
pub(crate) async fn history_point(
    shared: &Shared,
    key: SessionKey,
    item_id: ItemId,
) -> Result<HistoryPoint, SessionError> {
    let item = shared.store.find_item(key, Some(item_id)).await?;
    let item = item.ok_or(SessionError::NoSuchItem(item_id))?;
    if item.is_running {
        let why = "this item is not complete yet: wait for it, or name an earlier one";
        return Err(SessionError::BadParam("item_id", why.into()));
    }
    let Page { rows, .. } = shared.store.events_after(key, item.last_seq - 1, 1, PAGE_BYTES).await?;
    let last = rows.first().and_then(|row| serde_json::from_str::<Envelope>(&row.body).ok());
    if matches!(last.map(|last| last.event), Some(Event::MessageCompleted { candidate: true, .. })) {
        let why = "this is one of two answers to choose from; name the item that followed the choice";
        return Err(SessionError::BadParam("item_id", why.into()));
    }
    Ok(HistoryPoint { first_seq: item.first_seq, last_seq: item.last_seq })
}

/// Copies a journal up to an item to the session `to`. `limits` restricts the permissions of the copy,
/// and `change` sets the properties of the new session.
pub(crate) async fn copy_journal(
    shared: &Shared,
    (id, key): (SessionId, SessionKey),
    item_id: Option<ItemId>,
    point: HistoryPoint,
    (to, limits): (SessionId, CopyLimits),
    change: impl FnOnce(&mut SessionSpec),
) -> Result<JournalCopy, SessionError> {
    let mut engine = Engine::new(to, Arc::clone(&shared.components().settings.engine));
    let mut copier = JournalCopier::new(point, to, limits.clone());
    let (mut events, mut blobs, mut change) = (Vec::new(), BTreeSet::new(), Some(change));
    let mut cursor: Seq = 0;
    loop {
        let Page { rows, is_last } = shared.store.events_after(key, cursor, PAGE_ROWS, PAGE_BYTES).await?;
        cursor = rows.last().map_or(cursor, |row| row.seq);
        for row in rows.iter().filter(|row| row.seq <= point.last_seq) {
            if engine::UNCOPIED_KINDS.contains(&row.kind.as_str()) {
                continue;
            }
            // The copy stores the events with truncated values, but the engine needs the complete values.
            let Ok(stored) = serde_json::from_str::<Envelope>(&row.body) else { continue };
            let is_whole = stored.truncated_fields.is_empty();
            let Some(mut stored) = copier.copy(stored) else { continue };
            if let Event::SessionCreated(spec) = &mut stored.event
                && let Some(change) = change.take()
            {
                change(spec);
            }
            if is_whole {
                engine.apply(&stored);
            } else if let Some(whole) = shared.store.restored_event(key, row.seq, &row.body).await? {
                let mut once = JournalCopier::new(HistoryPoint::END, to, limits.clone());
                once.copy(whole).iter().for_each(|whole| engine.apply(whole));
            }
            blobs_in(&row.body, &mut blobs);
            events.push(stored);
        }
        if is_last || cursor >= point.last_seq {
            break;
        }
    }
    if events.is_empty() {
        // The session was deleted meanwhile.
        return Err(SessionError::NotFound);
    }
    let forked_from = ForkedFrom { session_id: id, item_id };
    let forked = CopyEnd { forked_from, context_tokens: copier.context_tokens() };
    let now = Now { at: shared.clock.now(), seed: Seed::random() };
    let ending = Box::new(engine.decide(Input::Forked(Box::new(forked)), now)?);
    Ok(JournalCopy { events, blobs, ending })
}

/// Adds the blobs that an event refers to. In the event's text, each blob id is a whole JSON string.
pub(crate) fn blobs_in(body: &str, blobs: &mut BTreeSet<BlobId>) {
    const BLOB_PREFIX: &str = "\"blob_";
    for (start, _) in body.match_indices(BLOB_PREFIX) {
        let text = &body[start + 1..];
        let id: Option<BlobId> = text.find('"').and_then(|end| text[..end].parse().ok());
        blobs.extend(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::blob::Blob;

    #[test]
    fn blob_ids_are_found_only_as_whole_strings() {
        let blob = Blob::text("x").blob_id;
        let mut found = BTreeSet::new();
        blobs_in(
            &format!("{{\"a\":\"{blob}\",\"b\":\"see {blob}\",\"c\":\"blob_x\",\"d\":\"blob_"),
            &mut found,
        );
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [blob]);
    }
}
