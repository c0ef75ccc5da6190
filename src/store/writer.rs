//! The one task that writes. It commits what waits as a group: one sync serves many sessions.

use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::open::{close_connection, is_worth_single_tries};
use super::processes;
use super::rows::{Append, Idempotency, ItemRow, NewSession, RequestRow, Row, SessionKey, Summary, Sync};
use super::script::Script;
use crate::types::ids::{CallId, RequestId};
use crate::types::time::Timestamp;

/// Commands taken into one transaction at most.
const GROUP: usize = 256;
/// Rows of one INSERT statement.
const CHUNK: usize = 64;
/// Rows up to which a statement's text recurs often enough to keep it prepared.
const FEW: usize = 8;

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// A session to be removed, and the reply to remember of it.
pub(super) struct Deletion {
    pub key: SessionKey,
    pub idempotency: Option<Idempotency>,
    pub at: Timestamp,
}

/// What the writer is asked to do.
pub(super) enum Command {
    Append(Box<Append>, Answer<()>),
    Create(Box<NewSession>, Answer<SessionKey>),
    Delete(Box<Deletion>, Answer<()>),
    Forget(Vec<CallId>, Answer<()>),
    Close,
}

/// Runs until it is told to close or nobody is left to ask.
pub(super) async fn run(mut connection: SqliteConnection, mut inbox: mpsc::Receiver<Command>) {
    let mut sync = Sync::Full;
    let mut batch = Vec::with_capacity(GROUP);
    loop {
        if inbox.recv_many(&mut batch, GROUP).await == 0 {
            break;
        }
        let mut appends = Vec::new();
        let mut closing = false;
        for command in batch.drain(..) {
            match command {
                Command::Append(append, answer) => appends.push((append, answer)),
                Command::Create(new, answer) => {
                    // Order matters: what came before is written before.
                    flush(&mut connection, &mut sync, &mut appends).await;
                    let _ = set_sync(&mut connection, &mut sync, Sync::Full).await;
                    let _ = answer.send(create(&mut connection, *new).await);
                }
                Command::Delete(deletion, answer) => {
                    flush(&mut connection, &mut sync, &mut appends).await;
                    let _ = set_sync(&mut connection, &mut sync, Sync::Full).await;
                    let _ = answer.send(delete(&mut connection, &deletion).await);
                }
                Command::Forget(calls, answer) => {
                    flush(&mut connection, &mut sync, &mut appends).await;
                    let done = processes::forget(&mut connection, &calls).await;
                    let _ = answer.send(undone(&mut connection, done).await);
                }
                Command::Close => closing = true,
            }
        }
        flush(&mut connection, &mut sync, &mut appends).await;
        if closing {
            break;
        }
    }
    close_connection(connection).await;
}

async fn flush(
    connection: &mut SqliteConnection,
    sync: &mut Sync,
    appends: &mut Vec<(Box<Append>, Answer<()>)>,
) {
    if appends.is_empty() {
        return;
    }
    let wanted = appends.iter().map(|(append, _)| append.sync).max().unwrap_or(Sync::Full);
    let group: Vec<&Append> = appends.iter().map(|(append, _)| &**append).collect();
    let result = match set_sync(connection, sync, wanted).await {
        Ok(()) => commit(connection, &group).await,
        Err(error) => Err(error),
    };
    match result {
        Err(error) if appends.len() > 1 && is_worth_single_tries(&error) => {
            for (append, answer) in appends.drain(..) {
                let _ = answer.send(commit(connection, &[&append]).await);
            }
        }
        result => {
            for (_, answer) in appends.drain(..) {
                let _ = answer.send(result.clone());
            }
        }
    }
}

/// Only between transactions: SQLite ignores the pragma inside one.
async fn set_sync(
    connection: &mut SqliteConnection,
    current: &mut Sync,
    wanted: Sync,
) -> Result<(), StoreError> {
    if *current == wanted {
        return Ok(());
    }
    let statement = match wanted {
        Sync::Full => "pragma synchronous = full",
        Sync::Normal => "pragma synchronous = normal",
    };
    sqlx::query(statement).execute(&mut *connection).await?;
    *current = wanted;
    Ok(())
}

async fn commit(connection: &mut SqliteConnection, group: &[&Append]) -> Result<(), StoreError> {
    let done = write_group(connection, group).await;
    undone(connection, done).await
}

/// After an error, rolls back what may have been begun.
async fn undone<T>(connection: &mut SqliteConnection, done: Result<T, StoreError>) -> Result<T, StoreError> {
    if let Err(error) = &done {
        tracing::warn!(%error, "a transaction failed and is rolled back");
        // SQLite itself rolls back after some errors; then this one has nothing to do.
        let _ = sqlx::query("rollback").execute(connection).await;
    }
    done
}

/// Whether one statement is enough: rows of a stream that belong to nothing else yet.
fn is_only_rows(group: &[&Append]) -> bool {
    matches!(group, [Append { rows, folds, items, requests, processes, summary: None, idempotency: None, .. }]
        if rows.len() <= CHUNK
            && folds.is_empty() && items.is_empty() && requests.is_empty() && processes.is_empty())
}

/// Whether this is one of the few shapes that the days of most sessions are made of.
fn is_everyday(group: &[&Append]) -> bool {
    matches!(group, [append] if append.rows.len() <= FEW && append.items.len() + append.requests.len() <= FEW)
}

async fn write_group(connection: &mut SqliteConnection, group: &[&Append]) -> Result<(), StoreError> {
    let rows: Vec<(SessionKey, &Row)> =
        group.iter().flat_map(|append| append.rows.iter().map(|row| (append.key, row))).collect();
    if is_only_rows(group) {
        return insert_rows(&mut Script::single(connection), &rows).await;
    }
    let mut script = Script::begin(connection, is_everyday(group)).await?;
    insert_rows(&mut script, &rows).await?;
    for append in group {
        for fold in &append.folds {
            let fold = integer(*fold);
            script.sql().push("delete from event where session = ").push_bind(append.key.0);
            script.sql().push(" and seq > ").push_bind(fold).push(" and fold = ").push_bind(fold);
            script.end(true).await?;
        }
        for item in &append.items {
            update_item(&mut script, append.key, item).await?;
        }
        for request in &append.requests {
            update_request(&mut script, append.key, request).await?;
        }
        for process in &append.processes {
            processes::update(&mut script, append.key, process).await?;
        }
        if let Some(summary) = &append.summary {
            let last_seq = append.rows.last().map(|row| row.seq);
            update_summary(&mut script, append.key, summary, last_seq).await?;
        }
        if let Some(idempotency) = &append.idempotency {
            let at = append.rows.last().map_or(0, |row| row.at.0);
            remember(&mut script, Some(append.key), idempotency, at).await?;
        }
    }
    script.commit().await
}

async fn insert_rows(script: &mut Script<'_>, rows: &[(SessionKey, &Row)]) -> Result<(), StoreError> {
    for chunk in rows.chunks(CHUNK) {
        script.sql().push("insert into event (session, seq, at_ms, kind, fold, body) ");
        script.sql().push_values(chunk, |mut values, (key, row)| {
            values
                .push_bind(key.0)
                .push_bind(integer(row.seq))
                .push_bind(row.at.0)
                .push_bind(row.kind)
                .push_bind(row.fold.map(integer))
                .push_bind(&*row.body);
        });
        // Few sizes recur: full chunks and the small batches of a quiet session.
        script.end(chunk.len() == CHUNK || chunk.len() <= FEW).await?;
    }
    Ok(())
}

async fn update_item(script: &mut Script<'_>, key: SessionKey, item: &ItemRow) -> Result<(), StoreError> {
    script.sql().push("insert into item (session, first_seq, last_seq, kind, status) ");
    script.sql().push_values([item], |mut values, item| {
        values
            .push_bind(key.0)
            .push_bind(integer(item.first_seq))
            .push_bind(integer(item.last_seq))
            .push_bind(item.kind.name())
            .push_bind(item.status.name());
    });
    script.sql().push(
        " on conflict (session, first_seq) \
         do update set last_seq = excluded.last_seq, status = excluded.status",
    );
    script.end(true).await
}

async fn update_request(
    script: &mut Script<'_>,
    key: SessionKey,
    request: &RequestRow,
) -> Result<(), StoreError> {
    let (RequestRow::Raised { request_id, seq } | RequestRow::Settled { request_id, seq }) = request;
    let table = match request_id {
        RequestId::Permission(_) => "permission_request",
        RequestId::Question(_) => "question",
    };
    match request {
        RequestRow::Raised { .. } => {
            script.sql().push("insert into ").push(table).push(" (request_id, session, seq) ");
            script.sql().push_values([request_id], |mut values, id| {
                values.push_bind(id.to_string()).push_bind(key.0).push_bind(integer(*seq));
            });
        }
        RequestRow::Settled { .. } => {
            let sql = script.sql().push("update ").push(table).push(" set settled_seq = ");
            sql.push_bind(integer(*seq)).push(" where request_id = ").push_bind(request_id.to_string());
        }
    }
    script.end(true).await
}

async fn update_summary(
    script: &mut Script<'_>,
    key: SessionKey,
    summary: &Summary,
    last_seq: Option<u64>,
) -> Result<(), StoreError> {
    let sql = script.sql();
    sql.push("update session set title = ").push_bind(&summary.title);
    sql.push(", model = ").push_bind(&summary.model);
    sql.push(", mode = ").push_bind(summary.mode.name());
    sql.push(", state = ").push_bind(summary.state.name());
    sql.push(", requires = ").push_bind(summary.requires.map(to_text));
    sql.push(", turn_id = ").push_bind(summary.turn_id.map(|id| id.to_string()));
    sql.push(", updated_at_ms = ").push_bind(summary.updated_at.0);
    sql.push(", last_seq = coalesce(").push_bind(last_seq.map(integer)).push(", last_seq)");
    sql.push(", usage = ").push_bind(serde_json::to_string(&summary.usage).unwrap_or_default());
    sql.push(", cost_usd_micros = ").push_bind(summary.cost_usd_micros.map(integer));
    sql.push(", last_line = ").push_bind(&summary.last_line);
    sql.push(" where id = ").push_bind(key.0);
    script.end(true).await
}

async fn remember(
    script: &mut Script<'_>,
    key: Option<SessionKey>,
    row: &Idempotency,
    at_ms: i64,
) -> Result<(), StoreError> {
    script.sql().push("insert into idempotency (method, key, session, digest, reply, at_ms) ");
    script.sql().push_values([row], |mut values, row| {
        values
            .push_bind(row.method)
            .push_bind(&row.key)
            .push_bind(key.map(|key| key.0))
            .push_bind(&row.digest)
            .push_bind(&row.reply)
            .push_bind(at_ms);
    });
    script.end(true).await
}

async fn create(connection: &mut SqliteConnection, new: NewSession) -> Result<SessionKey, StoreError> {
    let done = insert_session(connection, &new).await;
    undone(connection, done).await
}

async fn insert_session(
    connection: &mut SqliteConnection,
    new: &NewSession,
) -> Result<SessionKey, StoreError> {
    let mut script = Script::begin(connection, new.rows.len() <= FEW).await?;
    let last_seq = new.rows.last().map_or(0, |row| row.seq);
    script.sql().push(
        "insert into session (session_id, title, cwd, model, mode, background, created_at_ms, updated_at_ms, \
         last_seq, state, usage, cost_usd_micros, last_line) ",
    );
    script.sql().push_values([&new.spec], |mut values, spec| {
        values
            .push_bind(new.session_id.to_string())
            .push_bind(&spec.title)
            .push_bind(&spec.cwd)
            .push_bind(&spec.model)
            .push_bind(spec.mode.name())
            .push_bind(spec.background)
            .push_bind(new.at.0)
            .push_bind(new.at.0)
            .push_bind(integer(last_seq))
            .push("'idle', '{}', 0, ''");
    });
    let key = SessionKey(script.end_for_key().await?);
    let rows: Vec<(SessionKey, &Row)> = new.rows.iter().map(|row| (key, row)).collect();
    insert_rows(&mut script, &rows).await?;
    if let Some(idempotency) = &new.idempotency {
        remember(&mut script, Some(key), idempotency, new.at.0).await?;
    }
    script.commit().await?;
    Ok(key)
}

async fn delete(connection: &mut SqliteConnection, deletion: &Deletion) -> Result<(), StoreError> {
    let done = delete_session(connection, deletion).await;
    undone(connection, done).await
}

async fn delete_session(connection: &mut SqliteConnection, deletion: &Deletion) -> Result<(), StoreError> {
    let mut script = Script::begin(connection, false).await?;
    script.sql().push("delete from session where id = ").push_bind(deletion.key.0);
    script.end(true).await?;
    if let Some(row) = &deletion.idempotency {
        // It belongs to no session: it outlives this one.
        remember(&mut script, None, row, deletion.at.0).await?;
    }
    script.commit().await
}

/// SQLite's integers are signed; sequence numbers and money never come near the edge.
pub(super) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The wire name of a unit variant.
pub(super) fn to_text<T: serde::Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}
