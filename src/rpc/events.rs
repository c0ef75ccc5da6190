//! `session.events`: the journal for clients that poll.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use super::convert;
use super::params::Caller;
use crate::context::RpcContext;
use crate::redact_thinking::redact;
use api::Fault;
use api::params::EventsParams;
use session::{Page, SessionError};
use types::ids::Seq;

/// An `EventsReply` whose events are passed on as stored in the journal, without parsing.
#[derive(Clone, Serialize)]
pub(super) struct RawEvents {
    events: Vec<Box<RawValue>>,
    last_seq: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) async fn events(ctx: Arc<RpcContext>, _: Caller, p: EventsParams) -> Result<RawEvents, Fault> {
    let after = convert::cursor(p.cursor.as_deref())?.unwrap_or(p.after_seq);
    let limit = convert::limit(p.limit, 500, 1_000);
    let (key, last_seq) = ctx.registry.journal(p.session_id).await.map_err(convert::fault)?;
    if after > last_seq {
        return Err(convert::fault(SessionError::CursorAhead { last_seq }));
    }
    let store = &ctx.registry.shared().store;
    let Page { mut rows, is_last } = store
        .events_after(key, after, limit, convert::PAGE_BYTES)
        .await
        .map_err(|error| convert::fault(error.into()))?;
    rows.retain(|row| row.seq <= last_seq);
    let next_cursor = rows.last().map(|row| row.seq).filter(|seq| !is_last && *seq < last_seq);
    let next_cursor = next_cursor.map(|seq| seq.to_string());
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        let body = match p.include.is_all() {
            true => row.body,
            false => match redact(row.body.into(), p.include) {
                Some(body) => body.to_string(),
                None => continue,
            },
        };
        // Return an error, because a client would not notice a missing event.
        let event = RawValue::from_string(body)
            .map_err(|error| convert::fault(store.unreadable(row.seq, &error.to_string()).into()))?;
        events.push(event);
    }
    Ok(RawEvents { events, last_seq, next_cursor })
}
