//! The one task that writes. It commits what waits as a group: one sync serves many sessions.

use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};
use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::open::{close_connection, is_worth_single_tries};
use super::rows::{Append, Idempotency, NewSession, RequestRow, Row, SessionKey, Summary, Sync};

/// Commands taken into one transaction at most.
const GROUP: usize = 256;
/// Rows of one INSERT statement.
const CHUNK: usize = 64;

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What the writer is asked to do.
pub(super) enum Command {
    Append(Box<Append>, Answer<()>),
    Create(Box<NewSession>, Answer<SessionKey>),
    Delete(SessionKey, Answer<()>),
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
                Command::Delete(key, answer) => {
                    flush(&mut connection, &mut sync, &mut appends).await;
                    let _ = set_sync(&mut connection, &mut sync, Sync::Full).await;
                    let _ = answer.send(delete(&mut connection, key).await);
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

async fn begin(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query("begin immediate").execute(connection).await?;
    Ok(())
}

/// Commits, or rolls back and reports why the work or the commit failed.
async fn finish<T>(connection: &mut SqliteConnection, done: Result<T, StoreError>) -> Result<T, StoreError> {
    let done = match done {
        Ok(value) => {
            sqlx::query("commit").execute(&mut *connection).await.map(|_| value).map_err(StoreError::from)
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &done {
        tracing::warn!(%error, "a transaction failed and is rolled back");
        // SQLite itself rolls back after some errors; then this one has nothing to do.
        let _ = sqlx::query("rollback").execute(connection).await;
    }
    done
}

async fn commit(connection: &mut SqliteConnection, group: &[&Append]) -> Result<(), StoreError> {
    begin(connection).await?;
    let done = write_group(connection, group).await;
    finish(connection, done).await
}

async fn write_group(connection: &mut SqliteConnection, group: &[&Append]) -> Result<(), StoreError> {
    let rows: Vec<(SessionKey, &Row)> =
        group.iter().flat_map(|append| append.rows.iter().map(|row| (append.key, row))).collect();
    insert_rows(connection, &rows).await?;
    for append in group {
        for fold in &append.folds {
            sqlx::query("delete from event where session = ? and seq > ? and fold = ?")
                .bind(append.key.0)
                .bind(integer(*fold))
                .bind(integer(*fold))
                .execute(&mut *connection)
                .await?;
        }
        for item in &append.items {
            sqlx::query(
                "insert into item (session, first_seq, last_seq, kind, status) values (?, ?, ?, ?, ?) \
                 on conflict (session, first_seq) do update set last_seq = excluded.last_seq, status = excluded.status",
            )
            .bind(append.key.0)
            .bind(integer(item.first_seq))
            .bind(integer(item.last_seq))
            .bind(item.kind.name())
            .bind(item.status.name())
            .execute(&mut *connection)
            .await?;
        }
        for request in &append.requests {
            match request {
                RequestRow::Raised { request_id, seq } => {
                    sqlx::query("insert into permission_request (request_id, session, seq) values (?, ?, ?)")
                        .bind(request_id.to_string())
                        .bind(append.key.0)
                        .bind(integer(*seq))
                        .execute(&mut *connection)
                        .await?;
                }
                RequestRow::Settled { request_id, seq } => {
                    sqlx::query("update permission_request set settled_seq = ? where request_id = ?")
                        .bind(integer(*seq))
                        .bind(request_id.to_string())
                        .execute(&mut *connection)
                        .await?;
                }
            }
        }
        if let Some(summary) = &append.summary {
            let last_seq = append.rows.last().map(|row| row.seq);
            update_summary(connection, append.key, summary, last_seq).await?;
        }
        if let Some(idempotency) = &append.idempotency {
            let at = append.rows.last().map_or(0, |row| row.at.0);
            remember(connection, Some(append.key), idempotency, at).await?;
        }
    }
    Ok(())
}

async fn insert_rows(
    connection: &mut SqliteConnection,
    rows: &[(SessionKey, &Row)],
) -> Result<(), StoreError> {
    for chunk in rows.chunks(CHUNK) {
        let mut builder =
            QueryBuilder::<Sqlite>::new("insert into event (session, seq, at_ms, kind, fold, body) ");
        builder.push_values(chunk, |mut values, (key, row)| {
            values
                .push_bind(key.0)
                .push_bind(integer(row.seq))
                .push_bind(row.at.0)
                .push_bind(row.kind)
                .push_bind(row.fold.map(integer))
                .push_bind(&*row.body);
        });
        // Few sizes recur: full chunks and the small batches of a quiet session.
        builder
            .build()
            .persistent(chunk.len() == CHUNK || chunk.len() <= 8)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn update_summary(
    connection: &mut SqliteConnection,
    key: SessionKey,
    summary: &Summary,
    last_seq: Option<u64>,
) -> Result<(), StoreError> {
    sqlx::query(
        "update session set title = ?, model = ?, mode = ?, state = ?, requires = ?, turn_id = ?, updated_at_ms = ?, \
         last_seq = coalesce(?, last_seq), usage = ?, cost_usd_micros = ?, last_line = ? where id = ?",
    )
    .bind(&summary.title)
    .bind(&summary.model)
    .bind(summary.mode.name())
    .bind(summary.state.name())
    .bind(summary.requires.map(to_text))
    .bind(summary.turn_id.map(|id| id.to_string()))
    .bind(summary.updated_at.0)
    .bind(last_seq.map(integer))
    .bind(serde_json::to_string(&summary.usage).unwrap_or_default())
    .bind(summary.cost_usd_micros.map(integer))
    .bind(&summary.last_line)
    .bind(key.0)
    .execute(connection)
    .await?;
    Ok(())
}

async fn remember(
    connection: &mut SqliteConnection,
    session: Option<SessionKey>,
    row: &Idempotency,
    at_ms: i64,
) -> Result<(), StoreError> {
    sqlx::query(
        "insert into idempotency (method, key, session, digest, reply, at_ms) values (?, ?, ?, ?, ?, ?)",
    )
    .bind(row.method)
    .bind(&row.key)
    .bind(session.map(|key| key.0))
    .bind(&row.digest)
    .bind(&row.reply)
    .bind(at_ms)
    .execute(connection)
    .await?;
    Ok(())
}

async fn create(connection: &mut SqliteConnection, new: NewSession) -> Result<SessionKey, StoreError> {
    begin(connection).await?;
    let done = insert_session(connection, &new).await;
    finish(connection, done).await
}

async fn insert_session(
    connection: &mut SqliteConnection,
    new: &NewSession,
) -> Result<SessionKey, StoreError> {
    let last_seq = new.rows.last().map_or(0, |row| row.seq);
    let inserted = sqlx::query(
        "insert into session (session_id, title, cwd, model, mode, background, state, created_at_ms, updated_at_ms, \
         last_seq, usage, cost_usd_micros, last_line) values (?, ?, ?, ?, ?, ?, 'idle', ?, ?, ?, '{}', 0, '')",
    )
    .bind(new.session_id.to_string())
    .bind(&new.spec.title)
    .bind(&new.spec.cwd)
    .bind(&new.spec.model)
    .bind(new.spec.mode.name())
    .bind(new.spec.background)
    .bind(new.at.0)
    .bind(new.at.0)
    .bind(integer(last_seq))
    .execute(&mut *connection)
    .await?;
    let key = SessionKey(inserted.last_insert_rowid());
    let rows: Vec<(SessionKey, &Row)> = new.rows.iter().map(|row| (key, row)).collect();
    insert_rows(connection, &rows).await?;
    if let Some(idempotency) = &new.idempotency {
        remember(connection, Some(key), idempotency, new.at.0).await?;
    }
    Ok(key)
}

async fn delete(connection: &mut SqliteConnection, key: SessionKey) -> Result<(), StoreError> {
    begin(connection).await?;
    let done = sqlx::query("delete from session where id = ?").bind(key.0).execute(&mut *connection).await;
    finish(connection, done.map(|_| ()).map_err(StoreError::from)).await
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
