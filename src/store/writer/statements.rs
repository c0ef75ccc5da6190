//! The SQL statements of decisions.

use crate::rows::{
    Append, Idempotency, ItemRow, NewSession, RequestRow, Row, SessionKey, WITHOUT_SESSION_MS,
};
use crate::sql_batch::{SqlBatch, integer, to_text, values};
use crate::tables::audit;
use crate::tables::blobs;
use crate::tables::grants;
use crate::tables::ledger;
use crate::tables::processes;
use crate::tables::texts;
use types::audit::AuditHead;
use types::ids::RequestId;
use types::session::SessionSummary;

/// All statements of a group of decisions. Audit rows continue the chain at `head`, which moves to the last of
/// them.
pub(crate) fn group_statements(group: &[&Append], head: &mut AuditHead) -> SqlBatch {
    let mut script = SqlBatch::default();
    for append in group {
        let key = append.key;
        rows(&mut script, key, &append.rows);
        blobs::insert(&mut script, key, &append.blobs);
        for opener in &append.prune_deltas_of {
            let opener = integer(*opener);
            script.add(
                "delete from event where session = ? and seq > ? and delta_of = ?",
                values![key.0, opener, opener],
            );
        }
        append.items.iter().for_each(|row| item(&mut script, key, row));
        append.requests.iter().for_each(|row| request(&mut script, key, row));
        append.bookings.iter().for_each(|booking| ledger::insert(&mut script, booking));
        append.pending_grant.iter().for_each(|grant| grants::enqueue(&mut script, grant));
        append.processes.iter().for_each(|row| processes::update(&mut script, key, row));
        audit::insert(&mut script, head, &append.audit);
        if let Some(seq) = append.rewound_to {
            texts::rewind(&mut script, key, seq);
        }
        texts::insert(&mut script, key, &append.texts);
        if let Some(row) = &append.summary {
            summary(&mut script, key, row, append.rows.last().map(|row| row.seq));
        }
        if let Some(row) = &append.idempotency {
            let at = append.rows.last().map_or(0, |row| row.at.0);
            store_reply(&mut script, Some(key), row, at);
        }
    }
    script
}

/// The session's own row. Its other rows need the key that the database assigns: see [`new_session_statements`].
pub(crate) fn session(new: &NewSession) -> SqlBatch {
    let spec = &new.spec;
    let mut script = SqlBatch::default();
    script.add(
        "insert into session (session_id, title, cwd, model, mode, thinking, temperature_thousandths, \
         top_p_thousandths, background, created_at_ms, updated_at_ms, last_seq, forked_from, \
         parent_session_id, parent_call_id, agent, job_id, state, usage, cost_usd_micros, last_line) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'idle', '{}', 0, '')",
        values![
            new.session_id.to_string(),
            &spec.title,
            &spec.cwd,
            &spec.model,
            spec.mode.name(),
            spec.thinking.map(|thinking| thinking.to_string()),
            spec.sampling.temperature.map(|it| it.get()),
            spec.sampling.top_p.map(|it| it.get()),
            spec.background,
            new.at.0,
            new.at.0,
            integer(new.rows.last().map_or(0, |row| row.seq)),
            spec.forked_from.as_ref().and_then(|from| serde_json::to_string(from).ok()),
            spec.parent.map(|parent| parent.session_id.to_string()),
            spec.parent.map(|parent| parent.call_id.to_string()),
            spec.agent.as_ref().map(|agent| agent.name.clone()),
            spec.job_id.map(|id| id.to_string()),
        ],
    );
    script
}

/// All other rows of a new session.
pub(crate) fn new_session_statements(key: SessionKey, new: &NewSession, head: &mut AuditHead) -> SqlBatch {
    let mut script = SqlBatch::default();
    rows(&mut script, key, &new.rows);
    new.items.iter().for_each(|it| item(&mut script, key, it));
    blobs::insert(&mut script, key, &new.blobs);
    let history = &new.history;
    if let Some((source, ids)) = &history.copied_blobs {
        blobs::copy(&mut script, *source, key, ids);
    }
    texts::insert(&mut script, key, &history.texts);
    if let Some(row) = &history.summary {
        summary(&mut script, key, row, new.rows.last().map(|row| row.seq));
    }
    audit::insert(&mut script, head, &new.audit);
    if let Some(idempotency) = &new.idempotency {
        store_reply(&mut script, Some(key), idempotency, new.at.0);
    }
    script
}

/// One statement per row. Before a statement of many rows changes a page, SQLite copies the page in case a
/// later row fails. Beyond 64 KiB these copies go to a file (<https://www.sqlite.org/tempfiles.html>, statement
/// journals).
fn rows(script: &mut SqlBatch, key: SessionKey, rows: &[Row]) {
    for row in rows {
        let delta_of = row.delta_of.map(integer);
        script.add(
            "insert into event (session, seq, at_ms, kind, delta_of, body) values (?, ?, ?, ?, ?, ?)",
            values![key.0, integer(row.seq), row.at.0, row.kind, delta_of, &row.body],
        );
    }
}

fn item(script: &mut SqlBatch, key: SessionKey, item: &ItemRow) {
    let (first, last) = (integer(item.first_seq), integer(item.last_seq));
    script.add(
        "insert into item (session, first_seq, last_seq, kind, status) values (?, ?, ?, ?, ?) \
         on conflict (session, first_seq) do update set last_seq = excluded.last_seq, status = excluded.status",
        values![key.0, first, last, item.kind.name(), item.status.name()],
    );
}

fn request(script: &mut SqlBatch, key: SessionKey, request: &RequestRow) {
    match request {
        RequestRow::Raised { request_id, seq } => script.add(
            match request_id {
                RequestId::Permission(_) => {
                    "insert into permission_request (request_id, session, seq) values (?, ?, ?)"
                }
                RequestId::Question(_) => "insert into question (request_id, session, seq) values (?, ?, ?)",
            },
            values![request_id.to_string(), key.0, integer(*seq)],
        ),
        RequestRow::Settled { request_id, seq } => script.add(
            match request_id {
                RequestId::Permission(_) => {
                    "update permission_request set settled_seq = ? where request_id = ?"
                }
                RequestId::Question(_) => "update question set settled_seq = ? where request_id = ?",
            },
            values![integer(*seq), request_id.to_string()],
        ),
    }
}

fn summary(script: &mut SqlBatch, key: SessionKey, summary: &SessionSummary, last_seq: Option<u64>) {
    script.add(
        "update session set title = ?, model = ?, mode = ?, thinking = ?, temperature_thousandths = ?, \
         top_p_thousandths = ?, requires = ?, turn_id = ?, updated_at_ms = ?, \
         last_seq = coalesce(?, last_seq), usage = ?, cost_usd_micros = ?, cost_at_least_usd_micros = ?, \
         last_line = ?, last_turn = ?, activity = ?, context_tokens = ?, notice = ? where id = ?",
        values![
            &summary.title,
            &summary.model,
            summary.mode.name(),
            summary.thinking.map(|thinking| thinking.to_string()),
            summary.sampling.temperature.map(|it| it.get()),
            summary.sampling.top_p.map(|it| it.get()),
            summary.requires.map(to_text),
            summary.turn_id.map(|id| id.to_string()),
            summary.updated_at_ms.0,
            last_seq.map(integer),
            serde_json::to_string(&summary.usage).unwrap_or_default(),
            summary.cost_usd_micros.map(integer),
            integer(summary.cost_at_least_usd_micros),
            &summary.last_line,
            summary.last_turn.as_ref().and_then(|turn| serde_json::to_string(turn).ok()),
            summary.activity.clone(),
            summary.context_tokens.map(integer),
            summary.notice.clone(),
            key.0,
        ],
    );
    // Use a separate update: SQLite rewrites an index for each update that names the index's column, and the
    // state seldom changes.
    let state = summary.state.name();
    script.add("update session set state = ? where id = ? and state <> ?", values![state, key.0, state]);
}

/// How long the reply of a deletion is kept, in milliseconds: 30 days.
const DELETED_SESSION_MS: i64 = 30 * 24 * 3_600 * 1_000;

/// Stores a reply for as long as its session exists. A reply without a session expires, so that the table does
/// not grow without limit.
pub(crate) fn store_reply(script: &mut SqlBatch, key: Option<SessionKey>, row: &Idempotency, at_ms: i64) {
    if key.is_none() {
        script.add(
            "delete from idempotency where session is null and at_ms < case method when 'session.delete' then ? else ? end",
            values![at_ms - DELETED_SESSION_MS, at_ms - WITHOUT_SESSION_MS],
        );
    }
    script.add(
        "insert into idempotency (method, key, session, digest, reply, at_ms) values (?, ?, ?, ?, ?, ?)",
        values![row.method, &row.key, key.map(|key| key.0), &row.digest, &row.reply, at_ms],
    );
}
