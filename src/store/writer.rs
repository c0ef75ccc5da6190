//! The one task that writes. It commits what waits as a group: one sync serves many sessions.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::audit;
use super::blobs;
use super::error::StoreError;
use super::grants;
use super::health::Health;
use super::ledger;
use super::lies::Lies;
use super::open::{close_connection, is_worth_single_tries};
use super::processes;
use super::rows::{Append, Idempotency, ItemRow, NewSession, RequestRow, Row, SessionKey, Summary, Sync};
use super::script::Script;
use super::site::Site;
use super::trust::TrustChange;
use crate::crash;
use crate::types::audit::{AuditHead, AuditNote};
use crate::types::ids::{CallId, RequestId};
use crate::types::time::Timestamp;

/// Commands taken into one transaction at most.
const GROUP: usize = 256;
/// Between two notes of the audit log's newest row beside the database.
const NOTE_HEAD: Duration = Duration::from_secs(1);
/// Between two tries to open the database again.
const RENEW: Duration = Duration::from_millis(250);
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
    /// Writes something that changes nothing.
    Try(Answer<()>),
    Forget(Vec<CallId>, Answer<()>),
    Trust(Box<TrustChange>, Answer<()>),
    Paid(Vec<String>, Answer<()>),
    /// Decisions that belong to no journal.
    Record(Vec<AuditNote>, Sync, Answer<()>),
    Close,
}

/// The task's state.
pub(super) struct Writer {
    connection: SqliteConnection,
    /// How sure the connection's commits are just now.
    sync: Sync,
    site: Site,
    health: Health,
    lies: Lies,
    /// When a new connection was last tried after a failed write.
    renewed: Option<Instant>,
    /// The newest row of the audit log; `None` if it must be looked up.
    head: Option<AuditHead>,
    noted: Noted,
}

/// How the note of the audit log's newest row stands.
#[derive(Default)]
enum Noted {
    /// Nobody has looked whether the one that is there fits.
    #[default]
    Unknown,
    At(Instant),
    /// It speaks of rows that are not there: it stays as it is, for people to see.
    Contradicts,
}

impl Writer {
    /// Over a fresh connection of the site.
    pub fn new(connection: SqliteConnection, site: Site, health: Health, lies: Lies) -> Self {
        Self {
            connection,
            sync: Sync::Full,
            site,
            health,
            lies,
            renewed: None,
            head: None,
            noted: Noted::default(),
        }
    }

    /// Runs until it is told to close or nobody is left to ask.
    pub async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        let mut batch = Vec::with_capacity(GROUP);
        while inbox.recv_many(&mut batch, GROUP).await > 0 {
            if self.health.cannot_write() {
                self.renew().await;
            }
            let mut appends = Vec::new();
            let mut closing = false;
            for command in batch.drain(..) {
                match command {
                    Command::Append(append, answer) => appends.push((append, answer)),
                    Command::Create(new, answer) => {
                        // Order matters: what came before is written before.
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.create(&new).await);
                    }
                    Command::Delete(deletion, answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.delete(&deletion).await);
                    }
                    Command::Try(answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.try_to_write().await);
                    }
                    Command::Forget(calls, answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.forget(&calls).await);
                    }
                    Command::Trust(change, answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.trust(&change).await);
                    }
                    Command::Paid(requests, answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.paid(&requests).await);
                    }
                    Command::Record(notes, sync, answer) => {
                        self.flush(&mut appends).await;
                        let _ = answer.send(self.record(&notes, sync).await);
                    }
                    Command::Close => closing = true,
                }
            }
            self.flush(&mut appends).await;
            self.note_head(false).await;
            if closing {
                break;
            }
        }
        self.note_head(true).await;
        close_connection(self.connection).await;
    }

    /// After a failed write: a connection that fell back to reading, or whose thread is gone, never
    /// gets well, so a new one is taken if there is one to be had.
    ///
    /// A failed sync may also have left a hole in the log: Linux forgets the pages that it could not
    /// write (<https://wiki.postgresql.org/wiki/Fsync_Errors>), and commits behind a hole are lost with
    /// it. So the log is folded into the database and begun anew before anything is promised again.
    async fn renew(&mut self) {
        if self.renewed.is_some_and(|at| at.elapsed() < RENEW) {
            return;
        }
        self.renewed = Some(Instant::now());
        match self.site.connect().await {
            Ok(fresh) => {
                // The new one first: the last to close the database would fold the log.
                close_connection(std::mem::replace(&mut self.connection, fresh)).await;
                self.sync = Sync::Full;
                self.head = None;
                let folded = sqlx::query("pragma wal_checkpoint(truncate)").execute(&mut self.connection);
                if let Err(error) = folded.await {
                    tracing::debug!(%error, "the log could not be folded");
                }
            }
            Err(error) => tracing::debug!(%error, "the database could not be opened again"),
        }
    }

    async fn flush(&mut self, appends: &mut Vec<(Box<Append>, Answer<()>)>) {
        if appends.is_empty() {
            return;
        }
        let wanted = appends.iter().map(|(append, _)| append.sync).max().unwrap_or(Sync::Full);
        let group: Vec<&Append> = appends.iter().map(|(append, _)| &**append).collect();
        match self.commit(&group, wanted).await {
            Err(error) if appends.len() > 1 && is_worth_single_tries(&error) => {
                for (append, answer) in appends.drain(..) {
                    let _ = answer.send(self.commit(&[&append], wanted).await);
                }
            }
            result => {
                for (_, answer) in appends.drain(..) {
                    let _ = answer.send(result.clone());
                }
            }
        }
    }

    /// Writes a group as one transaction. An error means that nothing of it was written, but for
    /// [`StoreError::Unsure`].
    async fn commit(&mut self, group: &[&Append], sync: Sync) -> Result<(), StoreError> {
        let done = match self.set_sync(sync).await {
            Ok(()) => self.write_group(group).await,
            Err(error) => Err(error),
        };
        let done = self.lies.told(done);
        let Err(error) = done else { return self.said(Ok(())) };
        self.head = None;
        roll_back(&mut self.connection, &error).await;
        // A commit may come through and be reported as failed, and a session that was told so tries
        // again: whether the rows stand there is what counts.
        let there = if self.lies.blinds() {
            Err(StoreError::Unwritable("blinded by a test".into()))
        } else {
            stands(&mut self.connection, group).await
        };
        self.said(match there {
            Ok(true) => Ok(()),
            Ok(false) => Err(error),
            Err(unread) => Err(StoreError::Unsure(format!("{error}; then: {unread}"))),
        })
    }

    async fn create(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        let done = match self.set_sync(Sync::Full).await {
            Ok(()) => self.insert_session(new).await,
            Err(error) => Err(error),
        };
        // Whoever asks again, with the same id or key, finds the session if it came through after all.
        let done = self.undone(done).await;
        self.said(done)
    }

    async fn delete(&mut self, deletion: &Deletion) -> Result<(), StoreError> {
        let done = match self.set_sync(Sync::Full).await {
            Ok(()) => delete_session(&mut self.connection, deletion).await,
            Err(error) => Err(error),
        };
        let done = self.undone(done).await;
        let done = done.map(|files| blobs::remove_files(&self.site.path, &files));
        self.said(done)
    }

    async fn forget(&mut self, calls: &[CallId]) -> Result<(), StoreError> {
        let done = processes::forget(&mut self.connection, calls).await;
        let done = self.undone(done).await;
        self.said(done)
    }

    async fn paid(&mut self, requests: &[String]) -> Result<(), StoreError> {
        let done = match self.set_sync(Sync::Full).await {
            Ok(()) => grants::pay(&mut self.connection, requests).await,
            Err(error) => Err(error),
        };
        let done = self.undone(done).await;
        self.said(done)
    }

    async fn insert_session(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        let mut head = if new.audit.is_empty() { AuditHead::default() } else { self.take_head().await? };
        let key = insert_session(&mut self.connection, new, &mut head).await?;
        if !new.audit.is_empty() {
            self.head = Some(head);
        }
        Ok(key)
    }

    async fn record(&mut self, notes: &[AuditNote], sync: Sync) -> Result<(), StoreError> {
        let done = match self.set_sync(sync).await {
            Ok(()) => self.write_notes(notes).await,
            Err(error) => Err(error),
        };
        let done = self.undone(done).await;
        self.said(done)
    }

    async fn trust(&mut self, change: &TrustChange) -> Result<(), StoreError> {
        let done = match self.set_sync(Sync::Full).await {
            Ok(()) => self.write_trust(change).await,
            Err(error) => Err(error),
        };
        let done = self.undone(done).await;
        self.said(done)
    }

    async fn write_trust(&mut self, change: &TrustChange) -> Result<(), StoreError> {
        let mut head = self.take_head().await?;
        let mut script = Script::begin(&mut self.connection, true).await?;
        match &change.digest {
            Some(digest) => {
                script.sql().push("insert or replace into trust (cwd, digest, at_ms) ");
                script.sql().push_values([digest], |mut values, digest| {
                    values.push_bind(&change.cwd).push_bind(digest).push_bind(change.note.at_ms.0);
                });
            }
            None => {
                script.sql().push("delete from trust where cwd = ").push_bind(&change.cwd);
            }
        }
        script.end(true).await?;
        audit::insert(&mut script, &mut head, std::slice::from_ref(&change.note)).await?;
        script.commit().await?;
        self.head = Some(head);
        Ok(())
    }

    async fn write_notes(&mut self, notes: &[AuditNote]) -> Result<(), StoreError> {
        let mut head = self.take_head().await?;
        let mut script = Script::begin(&mut self.connection, notes.len() <= FEW).await?;
        audit::insert(&mut script, &mut head, notes).await?;
        script.commit().await?;
        self.head = Some(head);
        Ok(())
    }

    async fn write_group(&mut self, group: &[&Append]) -> Result<(), StoreError> {
        if group.iter().all(|append| append.audit.is_empty()) {
            return write_group(&mut self.connection, group, &mut AuditHead::default()).await;
        }
        let mut head = self.take_head().await?;
        write_group(&mut self.connection, group, &mut head).await?;
        crash::point("C24.decided");
        self.head = Some(head);
        Ok(())
    }

    /// The newest row of the audit log; it is to be given back once what follows it is committed.
    async fn take_head(&mut self) -> Result<AuditHead, StoreError> {
        match self.head.take() {
            Some(head) => Ok(head),
            None => audit::head(&mut self.connection).await,
        }
    }

    /// Notes the audit log's newest row beside the database, not too often.
    async fn note_head(&mut self, now: bool) {
        let Some(head) = self.head.clone().filter(|head| head.id > 0) else { return };
        match self.noted {
            Noted::Contradicts => return,
            Noted::At(at) if !now && at.elapsed() < NOTE_HEAD => return,
            Noted::At(_) => {}
            Noted::Unknown => {
                if !audit::fits_note(&mut self.connection, &self.site.path).await {
                    tracing::error!("rows of the audit log are missing: `agentctl audit verify` says which");
                    self.noted = Noted::Contradicts;
                    return;
                }
            }
        }
        let path = self.site.path.clone();
        let noted = tokio::task::spawn_blocking(move || audit::note_head(&path, &head)).await;
        if let Ok(Err(error)) = noted {
            tracing::debug!(%error, "the audit log's newest row could not be noted");
        }
        self.noted = Noted::At(Instant::now());
    }

    async fn try_to_write(&mut self) -> Result<(), StoreError> {
        let done = match self.set_sync(Sync::Full).await {
            Ok(()) => rewrite_nothing(&mut self.connection).await,
            Err(error) => Err(error),
        };
        let done = self.undone(done).await;
        self.said(done)
    }

    /// After an error, rolls back what may have been begun.
    async fn undone<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &done {
            roll_back(&mut self.connection, error).await;
        }
        done
    }

    fn said<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.health.wrote(&result);
        result
    }

    /// Only between transactions: SQLite ignores the pragma inside one.
    async fn set_sync(&mut self, wanted: Sync) -> Result<(), StoreError> {
        if self.sync == wanted {
            return Ok(());
        }
        let statement = match wanted {
            Sync::Full => "pragma synchronous = full",
            Sync::Normal => "pragma synchronous = normal",
        };
        sqlx::query(statement).execute(&mut self.connection).await?;
        self.sync = wanted;
        Ok(())
    }
}

async fn roll_back(connection: &mut SqliteConnection, error: &StoreError) {
    tracing::debug!(%error, "a transaction failed and is rolled back");
    // SQLite itself rolls back after some errors; then this one has nothing to do.
    let _ = sqlx::query("rollback").execute(connection).await;
}

/// Whether a whole group is in the journal already, to the letter: all rows but those that it itself
/// removes. What else it changes came with them in one transaction.
async fn stands(connection: &mut SqliteConnection, group: &[&Append]) -> Result<bool, StoreError> {
    for append in group {
        let stays = |row: &&Row| row.fold.is_none_or(|fold| !append.folds.contains(&fold));
        if !append.rows.iter().any(|row| stays(&row)) {
            return Ok(false);
        }
        for row in append.rows.iter().filter(stays) {
            let body: Option<String> =
                sqlx::query_scalar("select body from event where session = ? and seq = ?")
                    .bind(append.key.0)
                    .bind(integer(row.seq))
                    .fetch_optional(&mut *connection)
                    .await?;
            if body.as_deref() != Some(&*row.body) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A page goes to the log as it was: enough to see whether the disk takes it.
async fn rewrite_nothing(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let version: i64 = sqlx::query_scalar("pragma user_version").fetch_one(&mut *connection).await?;
    sqlx::query(sqlx::AssertSqlSafe(format!("pragma user_version = {version}"))).execute(connection).await?;
    Ok(())
}

/// Whether one statement is enough: rows of a stream that belong to nothing else yet.
fn is_only_rows(group: &[&Append]) -> bool {
    matches!(group, [Append {
        rows, folds, items, requests, bookings, processes, blobs, audit, summary: None, idempotency: None, owes: None, ..
    }]
        if rows.len() <= CHUNK && audit.is_empty() && blobs.is_empty()
            && folds.is_empty() && bookings.is_empty() && items.is_empty() && requests.is_empty() && processes.is_empty())
}

/// Whether this is one of the few shapes that the days of most sessions are made of.
fn is_everyday(group: &[&Append]) -> bool {
    matches!(group, [append] if append.rows.len() <= FEW && append.blobs.is_empty()
        && append.items.len() + append.requests.len() + append.audit.len() <= FEW)
}

async fn write_group(
    connection: &mut SqliteConnection,
    group: &[&Append],
    head: &mut AuditHead,
) -> Result<(), StoreError> {
    let rows: Vec<(SessionKey, &Row)> =
        group.iter().flat_map(|append| append.rows.iter().map(|row| (append.key, row))).collect();
    if is_only_rows(group) {
        return insert_rows(&mut Script::single(connection), &rows).await;
    }
    let mut script = Script::begin(connection, is_everyday(group)).await?;
    insert_rows(&mut script, &rows).await?;
    for append in group {
        blobs::insert(&mut script, append.key, &append.blobs).await?;
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
        for booking in &append.bookings {
            ledger::insert(&mut script, booking).await?;
        }
        if let Some(grant) = &append.owes {
            grants::owe(&mut script, grant).await?;
        }
        for process in &append.processes {
            processes::update(&mut script, append.key, process).await?;
        }
        audit::insert(&mut script, head, &append.audit).await?;
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

/// Inserts rows of one session as one statement for many, rows of several each by a statement of its own.
///
/// Before a statement of many rows changes a page, SQLite keeps a copy of it in case a later row fails,
/// beyond 64 KiB in a file (<https://www.sqlite.org/tempfiles.html>, statement journals). Rows of one
/// session stand on few pages; those of many sessions each on another.
async fn insert_rows(script: &mut Script<'_>, rows: &[(SessionKey, &Row)]) -> Result<(), StoreError> {
    let is_of_one = rows.iter().all(|(key, _)| Some(*key) == rows.first().map(|(key, _)| *key));
    if !is_of_one {
        return insert_each(script, rows).await;
    }
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

/// One statement a row, many statements a trip, in few numbers that recur.
async fn insert_each(script: &mut Script<'_>, mut rows: &[(SessionKey, &Row)]) -> Result<(), StoreError> {
    while !rows.is_empty() {
        let size = [CHUNK, CHUNK / 4, CHUNK / 16, 1].into_iter().find(|size| *size <= rows.len());
        let (trip, rest) = rows.split_at(size.unwrap_or(1));
        for (nth, (key, row)) in trip.iter().enumerate() {
            let sql = script.sql();
            sql.push(if nth == 0 { "" } else { "; " });
            sql.push("insert into event (session, seq, at_ms, kind, fold, body) values (");
            sql.push_bind(key.0).push(", ").push_bind(integer(row.seq));
            sql.push(", ").push_bind(row.at.0).push(", ").push_bind(row.kind);
            sql.push(", ").push_bind(row.fold.map(integer)).push(", ").push_bind(&*row.body).push(")");
        }
        script.end(true).await?;
        rows = rest;
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
    sql.push(", thinking = ").push_bind(summary.thinking.map(|thinking| thinking.to_string()));
    sql.push(", temperature_thousandths = ").push_bind(summary.sampling.temperature.map(|it| it.get()));
    sql.push(", top_p_thousandths = ").push_bind(summary.sampling.top_p.map(|it| it.get()));
    sql.push(", state = ").push_bind(summary.state.name());
    sql.push(", requires = ").push_bind(summary.requires.map(to_text));
    sql.push(", turn_id = ").push_bind(summary.turn_id.map(|id| id.to_string()));
    sql.push(", updated_at_ms = ").push_bind(summary.updated_at.0);
    sql.push(", last_seq = coalesce(").push_bind(last_seq.map(integer)).push(", last_seq)");
    sql.push(", usage = ").push_bind(serde_json::to_string(&summary.usage).unwrap_or_default());
    sql.push(", cost_usd_micros = ").push_bind(summary.cost_usd_micros.map(integer));
    sql.push(", cost_at_least_usd_micros = ").push_bind(integer(summary.cost_at_least_usd_micros));
    sql.push(", last_line = ").push_bind(&summary.last_line);
    sql.push(" where id = ").push_bind(key.0);
    script.end(true).await
}

/// How long the reply of a removed session is remembered, in milliseconds: 30 days.
const REMEMBERED: i64 = 30 * 24 * 3_600 * 1_000;

/// Remembers a reply as long as there is its session. One without a session is remembered for
/// [`REMEMBERED`], so that removing sessions makes nothing grow for ever.
async fn remember(
    script: &mut Script<'_>,
    key: Option<SessionKey>,
    row: &Idempotency,
    at_ms: i64,
) -> Result<(), StoreError> {
    if key.is_none() {
        script.sql().push("delete from idempotency where session is null and at_ms < ");
        script.sql().push_bind(at_ms - REMEMBERED);
        script.end(true).await?;
    }
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

async fn insert_session(
    connection: &mut SqliteConnection,
    new: &NewSession,
    head: &mut AuditHead,
) -> Result<SessionKey, StoreError> {
    let mut script = Script::begin(connection, new.rows.len() <= FEW && new.blobs.is_empty()).await?;
    let last_seq = new.rows.last().map_or(0, |row| row.seq);
    script.sql().push(
        "insert into session (session_id, title, cwd, model, mode, thinking, temperature_thousandths, \
         top_p_thousandths, background, created_at_ms, updated_at_ms, last_seq, state, usage, cost_usd_micros, last_line) ",
    );
    script.sql().push_values([&new.spec], |mut values, spec| {
        values
            .push_bind(new.session_id.to_string())
            .push_bind(&spec.title)
            .push_bind(&spec.cwd)
            .push_bind(&spec.model)
            .push_bind(spec.mode.name())
            .push_bind(spec.thinking.map(|thinking| thinking.to_string()))
            .push_bind(spec.sampling.temperature.map(|it| it.get()))
            .push_bind(spec.sampling.top_p.map(|it| it.get()))
            .push_bind(spec.background)
            .push_bind(new.at.0)
            .push_bind(new.at.0)
            .push_bind(integer(last_seq))
            .push("'idle', '{}', 0, ''");
    });
    let key = SessionKey(script.end_for_key().await?);
    let rows: Vec<(SessionKey, &Row)> = new.rows.iter().map(|row| (key, row)).collect();
    insert_rows(&mut script, &rows).await?;
    blobs::insert(&mut script, key, &new.blobs).await?;
    audit::insert(&mut script, head, &new.audit).await?;
    if let Some(idempotency) = &new.idempotency {
        remember(&mut script, Some(key), idempotency, new.at.0).await?;
    }
    script.commit().await?;
    Ok(key)
}

/// Returns the files that are to be removed.
async fn delete_session(
    connection: &mut SqliteConnection,
    deletion: &Deletion,
) -> Result<Vec<String>, StoreError> {
    let files = blobs::files_of(connection, deletion.key).await?;
    let mut script = Script::begin(connection, false).await?;
    script.sql().push("delete from session where id = ").push_bind(deletion.key.0);
    script.end(true).await?;
    if let Some(row) = &deletion.idempotency {
        // It belongs to no session: it outlives this one.
        remember(&mut script, None, row, deletion.at.0).await?;
    }
    script.commit().await?;
    Ok(files)
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
