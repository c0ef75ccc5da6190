//! A decision as one transaction: facts become rows and lines, serialised once.

use std::sync::Arc;

use super::feed::Line;
use super::follow::shape_of;
use crate::engine::{Engine, Plan, Snapshot};
use crate::store::{Append, Idempotency, ItemRow, RequestRow, Row, SessionKey, Summary, Sync};
use crate::types::event::Envelope;

#[cfg(test)]
mod tests;

/// One transaction and what to show once it is committed.
pub(super) struct Prepared {
    pub append: Append,
    pub lines: Vec<Line>,
}

/// The row and the line of one event.
pub(super) fn write(envelope: &Envelope, fold: Option<u64>) -> (Row, Line) {
    // Events are plain data with string keys: writing them to memory cannot fail.
    let body: Arc<str> = Arc::from(serde_json::to_string(envelope).unwrap_or_default());
    let row = Row {
        seq: envelope.seq,
        at: envelope.at_ms,
        kind: envelope.event.kind(),
        fold,
        body: Arc::clone(&body),
    };
    (row, Line { seq: envelope.seq, body, shape: shape_of(&envelope.event) })
}

/// Turns a plan into a transaction. `after` is the engine with the plan's facts applied, needed for
/// the summary; `None` leaves the summary as it is.
pub(super) fn prepare(
    key: SessionKey,
    plan: &Plan,
    after: Option<Snapshot>,
    idempotency: Option<Idempotency>,
) -> Prepared {
    let (rows, lines): (Vec<Row>, Vec<Line>) =
        plan.facts.iter().map(|entry| write(&entry.envelope, entry.fold)).unzip();
    let is_fact = plan.facts.iter().any(|entry| entry.envelope.event.is_fact());
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
        folds: plan.folds.clone(),
        items,
        requests,
        summary: after.map(summary),
        idempotency,
        sync: if is_fact { Sync::Full } else { Sync::Normal },
    };
    Prepared { append, lines }
}

fn summary(snapshot: Snapshot) -> Summary {
    Summary {
        title: snapshot.title,
        model: snapshot.model,
        mode: snapshot.mode,
        state: snapshot.state,
        requires: snapshot.requires,
        turn_id: snapshot.turn_id,
        updated_at: snapshot.updated_at,
        usage: snapshot.usage,
        cost_usd_micros: snapshot.cost_usd_micros,
        last_line: snapshot.last_line,
    }
}

/// What `session.list` shows of a session with these events, for journals that come from elsewhere
/// than a living session. `None` if there are none.
#[must_use]
pub fn summarise(events: &[Envelope]) -> Option<Summary> {
    let mut engine = Engine::new(events.first()?.session_id, Arc::default());
    events.iter().for_each(|event| engine.apply(event));
    Some(summary(engine.snapshot()))
}

/// Whether a plan changes what `session.list` shows.
pub(super) fn changes_summary(plan: &Plan) -> bool {
    plan.facts.iter().any(|entry| entry.envelope.event.is_fact())
}
