//! The rows of a session that is created with a history.

use std::collections::{BTreeMap, BTreeSet};

use crate::actor::{audit, journal};
use crate::journal_copy::JournalCopy;
use store::{InitialHistory, ItemRow, MessageText, NewSession};
use types::event::{Envelope, Event, Origin};
use types::ids::{ItemId, Seq};
use types::session::ItemStatus;
use types::time::Timestamp;

/// The kind and the seq in the text of an event.
#[derive(serde::Deserialize)]
struct EventHeader {
    #[serde(rename = "type")]
    kind: String,
    seq: Seq,
}

/// The rows of a session with this history. `bodies` are, by seq, the texts of events that are stored
/// unchanged. `None` if the history has no first event, or if a text does not match its event.
pub(super) fn new_session(
    copy: JournalCopy,
    mut bodies: BTreeMap<Seq, String>,
    at: Timestamp,
    origin: &Origin,
) -> Option<NewSession> {
    let JournalCopy { mut events, blobs: _, ending } = copy;
    // Drop the start of an answer that was never completed, so that no message stays open.
    let ends = |event: &Envelope| match &event.event {
        Event::MessageCompleted { item, .. } => Some(item.item_id),
        _ => None,
    };
    let complete: BTreeSet<ItemId> = events.iter().filter_map(ends).collect();
    let stays = |event: &Envelope| {
        !matches!(event.event, Event::MessageStarted { .. })
            || event.item_id.is_some_and(|item_id| complete.contains(&item_id))
    };
    events.retain(stays);
    let created = events.first_mut()?;
    created.origin = Some(origin.clone());
    let Event::SessionCreated(spec) = &created.event else { return None };
    let (session_id, spec) = (created.session_id, spec.clone());
    let snapshot = ending.next.snapshot();
    let audit = audit::creation_notes(created, snapshot.mode);
    let plan = ending.plan;
    let all = || events.iter().chain(plan.events.iter().map(|entry| &entry.envelope));
    let mut items = ItemRow::from_journal(all());
    items.retain(|item| item.status != ItemStatus::Running);
    let texts = MessageText::from_journal(all());
    let (mut rows, mut blobs) = (Vec::with_capacity(events.len() + plan.events.len()), plan.blobs.clone());
    for envelope in all() {
        let (mut row, _, cut) = journal::encode_event(envelope, None);
        if let Some(body) = bodies.remove(&envelope.seq) {
            let named: EventHeader = serde_json::from_str(&body).ok()?;
            if (named.kind.as_str(), named.seq) != (envelope.event.kind(), row.seq) {
                return None;
            }
            row.body = body.into();
        }
        rows.push(row);
        blobs.extend(cut);
    }
    let summary = Some(snapshot);
    let history = InitialHistory { texts, copied_blobs: None, summary };
    Some(NewSession { session_id, spec: *spec, at, rows, items, blobs, audit, idempotency: None, history })
}
