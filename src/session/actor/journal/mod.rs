//! Encodes a decision as one transaction. Each event becomes a row and a feed entry, and is serialised once.

use std::collections::HashSet;
use std::sync::Arc;

use crate::stream::feed::{FeedEntry, entry_kind};
use engine::{Engine, Plan};
use store::{Append, Durability, ItemRow, MessageText, ProcessRow, RequestRow, Row, SessionKey};
use types::blob::Blob;
use types::event::{Envelope, Event};
use types::ids::CallId;
use types::ledger::UsageRecord;
use types::session::SessionSummary;
use types::time::Timestamp;
use types::tool::ProcessRecord;
use types::wire;

#[cfg(test)]
mod tests;

/// One transaction, and the entries to publish after its commit.
pub(crate) struct JournalBatch {
    pub append: Append,
    pub entries: Vec<FeedEntry>,
}

/// The row and the feed entry of one event, and the blobs of its truncated values.
pub(crate) fn encode_event(envelope: &Envelope, delta_of: Option<u64>) -> (Row, FeedEntry, Vec<Blob>) {
    let (body, blobs) = wire::wire(envelope);
    let body: Arc<str> = Arc::from(body);
    let row = Row {
        seq: envelope.seq,
        at: envelope.at_ms,
        kind: envelope.event.kind(),
        delta_of,
        body: Arc::clone(&body),
    };
    (row, FeedEntry { seq: envelope.seq, body, kind: entry_kind(&envelope.event) }, blobs)
}

/// Turns the events of a plan into a transaction.
pub(crate) fn encode_plan(key: SessionKey, plan: &Plan) -> JournalBatch {
    let mut rows = Vec::with_capacity(plan.events.len());
    let mut entries = Vec::with_capacity(plan.events.len());
    let mut blobs = plan.blobs.clone();
    for entry in &plan.events {
        let (row, published, cut) = encode_event(&entry.envelope, entry.delta_of);
        // Events that the same decision prunes are published but need no row.
        if entry.delta_of.is_none_or(|opener| !plan.prune_deltas_of.contains(&opener)) {
            rows.push(row);
        }
        entries.push(published);
        blobs.extend(cut);
    }
    let needs_sync = plan.events.iter().any(|entry| entry.envelope.event.needs_sync());
    let items = plan
        .items
        .iter()
        .map(|item| ItemRow {
            first_seq: item.first_seq,
            last_seq: item.last_seq,
            kind: item.kind,
            status: item.status,
        })
        .collect();
    let requests = plan
        .requests
        .iter()
        .map(|change| {
            let (request_id, seq) = (change.request_id, change.seq);
            if change.settled {
                RequestRow::Settled { request_id, seq }
            } else {
                RequestRow::Raised { request_id, seq }
            }
        })
        .collect();
    let append = Append {
        key,
        rows,
        prune_deltas_of: plan.prune_deltas_of.clone(),
        items,
        requests,
        bookings: plan
            .events
            .iter()
            .filter_map(|entry| UsageRecord::from_envelope(&entry.envelope))
            .collect(),
        summary: None,
        idempotency: None,
        processes: Vec::new(),
        blobs,
        pending_grant: None,
        audit: Vec::new(),
        texts: plan.events.iter().filter_map(|entry| MessageText::from_envelope(&entry.envelope)).collect(),
        rewound_to: plan.events.iter().find_map(|entry| match &entry.envelope.event {
            Event::SessionRewound(rewound) => Some(rewound.last_item_seq),
            _ => None,
        }),
        sync: if needs_sync { Durability::Full } else { Durability::Normal },
    };
    JournalBatch { append, entries }
}

/// The transaction that records a started process. The row must survive a kill of the daemon, but not a power loss.
pub(crate) fn process_start(key: SessionKey, record: ProcessRecord, at: Timestamp) -> Append {
    Append {
        key,
        rows: Vec::new(),
        prune_deltas_of: Vec::new(),
        items: Vec::new(),
        requests: Vec::new(),
        bookings: Vec::new(),
        summary: None,
        idempotency: None,
        processes: vec![ProcessRow::Started { record, at }],
        blobs: Vec::new(),
        pending_grant: None,
        audit: Vec::new(),
        texts: Vec::new(),
        rewound_to: None,
        sync: Durability::Normal,
    }
}

/// The process records that the results of a plan end: those of calls without remaining processes.
pub(crate) fn ended_process_rows(plan: &Plan, recorded_calls: &HashSet<CallId>) -> Vec<ProcessRow> {
    let continues_in_background = |call: CallId| {
        let begins = |event: &Event| matches!(event, Event::ToolBackground { call_id, end: None, .. } if *call_id == call);
        plan.events.iter().any(|entry| begins(&entry.envelope.event))
    };
    let ended = plan.events.iter().filter_map(|entry| match &entry.envelope.event {
        Event::ToolBackground { call_id, end: Some(end), .. } if end.survivors.is_empty() => Some(*call_id),
        Event::ToolCompleted { call_id, detail, .. } | Event::ToolBlocked { call_id, detail, .. }
            if surviving_pids(detail.as_ref()).is_empty() =>
        {
            Some(*call_id)
        }
        _ => None,
    });
    ended
        .filter(|call_id| recorded_calls.contains(call_id) && !continues_in_background(*call_id))
        .map(ProcessRow::Gone)
        .collect()
}

/// The processes of a call that could not be killed, from its result's details.
pub(crate) fn surviving_pids(detail: Option<&serde_json::Value>) -> Vec<i32> {
    let list = detail.and_then(|detail| detail.get("survivors")).and_then(serde_json::Value::as_array);
    list.into_iter().flatten().filter_map(|pid| i32::try_from(pid.as_i64()?).ok()).collect()
}

/// The `session.list` columns of a session with these events, for a journal without a loaded session. `None` if
/// there are no events.
#[must_use]
pub fn summary_of_events(events: &[Envelope]) -> Option<SessionSummary> {
    let mut engine = Engine::new(events.first()?.session_id, Arc::default());
    events.iter().for_each(|event| engine.apply(event));
    Some(engine.snapshot())
}

/// Whether a plan changes the `session.list` columns.
pub(crate) fn changes_summary(plan: &Plan) -> bool {
    plan.events.iter().any(|entry| entry.envelope.event.needs_sync())
}
