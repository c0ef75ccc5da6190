//! The one thread that writes. It commits what waits as a group: one sync serves many sessions.
//!
//! It has a thread of its own and no tasks between: who waits for a commit wakes it, and is woken by it.
//! A database driver with another thread behind it woke each of them up to a dozen times for a decision, and
//! that cost more than SQLite did (`proto-docs/performance.md`, B4 and B8).

pub(super) mod checkpoint;
pub(super) mod sql_batch;
pub(super) mod statements;

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::rows::{Append, Idempotency, NewSession, Row, SessionKey, Sync};
use crate::crash;
use crate::store::database_file::DatabaseFile;
use crate::store::fault_injection::Faults;
use crate::store::read::pool::Readers;
use crate::store::recovery::health::Health;
use crate::store::tables::audit;
use crate::store::tables::blobs;
use crate::store::tables::grants;
use crate::store::tables::processes;
use crate::store::tables::trust::TrustChange;
use crate::types::audit::{AuditHead, AuditNote};
use crate::types::ids::CallId;
use crate::types::time::Timestamp;
use checkpoint::Checkpointer;
use sql_batch::{SqlBatch, values};
use statements::integer;

/// Commands taken into one transaction at most.
const GROUP: usize = 256;
/// Between two notes of the audit log's newest row beside the database.
const NOTE_HEAD: Duration = Duration::from_secs(1);
/// Between two tries to open the database again.
const RENEW: Duration = Duration::from_millis(250);

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// A session to be removed, and the reply to remember of it.
pub(super) struct Deletion {
    pub key: SessionKey,
    pub idempotency: Option<Idempotency>,
    pub at: Timestamp,
}

/// A reply to keep by itself, with the session that it belongs to, if it does.
pub(super) struct KeptReply {
    pub key: Option<SessionKey>,
    pub idempotency: Idempotency,
    pub at: Timestamp,
}

/// What the writer is asked to do.
pub(super) enum WriterCommand {
    Append(Box<Append>, Answer<()>),
    Create(Box<NewSession>, Answer<SessionKey>),
    Delete(Box<Deletion>, Answer<()>),
    KeepReply(Box<KeptReply>, Answer<()>),
    /// Writes something that changes nothing.
    Try(Answer<()>),
    Forget(Vec<CallId>, Answer<()>),
    Trust(Box<TrustChange>, Answer<()>),
    Paid(Vec<String>, Answer<()>),
    /// Decisions that belong to no journal.
    Record(Vec<AuditNote>, Sync, Answer<()>),
    Close,
}

/// The thread's state.
pub(super) struct Writer {
    connection: Connection,
    checkpointer: Checkpointer,
    readers: Readers,
    /// How sure the connection's commits are just now; `None` if that is not known.
    sync: Option<Sync>,
    database_file: DatabaseFile,
    health: Health,
    faults: Faults,
    /// When a new connection was last tried after a failed write.
    renewed: Option<Instant>,
    /// How the last write failed.
    failed: Option<Failed>,
    /// The newest row of the audit log; `None` if it must be looked up.
    head: Option<AuditHead>,
    noted: Noted,
}

/// How a write failed.
enum Failed {
    /// Nothing of it is there.
    Plainly,
    /// The log may have a hole: nothing is written before it has begun anew.
    LogGap(StoreError),
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
    ///
    /// # Errors
    /// The database could not be opened once more.
    pub fn new(
        connection: Connection,
        database_file: DatabaseFile,
        health: Health,
        faults: Faults,
        readers: Readers,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            connection,
            checkpointer: Checkpointer::new(database_file.clone(), health.clone(), faults)?,
            readers,
            sync: None,
            database_file,
            health,
            faults,
            renewed: None,
            failed: None,
            head: None,
            noted: Noted::default(),
        })
    }

    /// Runs until it is told to close or nobody is left to ask. Blocking, for as long as the store is open.
    pub fn run(mut self, mut inbox: mpsc::Receiver<WriterCommand>) {
        let mut batch = Vec::with_capacity(GROUP);
        while inbox.blocking_recv_many(&mut batch, GROUP) > 0 {
            if self.failed.is_some() || self.checkpointer.doubt().is_some() {
                self.renew();
            }
            let mut appends = Vec::new();
            let mut closing = false;
            for command in batch.drain(..) {
                if let WriterCommand::Append(append, answer) = command {
                    appends.push((append, answer));
                    continue;
                }
                // Order matters: what came before is written before.
                self.flush(&mut appends);
                match command {
                    WriterCommand::Append(..) => {}
                    WriterCommand::Create(new, answer) => drop(answer.send(self.create(&new))),
                    WriterCommand::Delete(deletion, answer) => drop(answer.send(self.delete(&deletion))),
                    WriterCommand::KeepReply(kept, answer) => {
                        let mut script = SqlBatch::default();
                        statements::remember(&mut script, kept.key, &kept.idempotency, kept.at.0);
                        drop(answer.send(self.perform(Sync::Full, &script)));
                    }
                    WriterCommand::Try(answer) => drop(answer.send(self.try_to_write())),
                    WriterCommand::Forget(calls, answer) => {
                        drop(answer.send(self.perform(Sync::Normal, &processes::forget(&calls))));
                    }
                    WriterCommand::Trust(change, answer) => drop(answer.send(self.trust(&change))),
                    WriterCommand::Paid(requests, answer) => {
                        drop(answer.send(self.perform(Sync::Full, &grants::discard(&requests))));
                    }
                    WriterCommand::Record(notes, sync, answer) => {
                        drop(answer.send(self.record(sync, SqlBatch::default(), &notes)));
                    }
                    WriterCommand::Close => closing = true,
                }
            }
            self.flush(&mut appends);
            self.checkpointer.after_commit(&self.connection);
            if let Some(error) = self.checkpointer.doubt().filter(|_| !self.health.cannot_write()) {
                // A commit that was under way came through.
                self.health.wrote::<()>(&Err(error));
            }
            self.note_head(false);
            if closing {
                break;
            }
        }
        self.note_head(true);
        self.checkpointer.end();
        if self.checkpointer.doubt().is_some() {
            checkpoint::keep_log(&self.connection);
        }
        close(self.connection);
    }

    /// After a failed write: a connection that fell back to reading never gets well, so a new one is taken
    /// if there is one to be had.
    ///
    /// A failed sync may also have left a hole in the log: Linux forgets the pages that it could not
    /// write (<https://wiki.postgresql.org/wiki/Fsync_Errors>), and commits behind a hole are lost with
    /// it. So the log is folded into the database and begun anew before anything is promised again.
    fn renew(&mut self) {
        if self.renewed.is_some_and(|at| at.elapsed() < RENEW) {
            return;
        }
        self.renewed = Some(Instant::now());
        let is_in_doubt = self.checkpointer.doubt().is_some();
        match if is_in_doubt { self.start_over() } else { self.take_another() } {
            Ok(()) => self.failed = None,
            Err(error) => {
                tracing::debug!(%error, "the database could not be opened again");
                if is_in_doubt {
                    self.checkpointer.explain(&error);
                    self.failed = None;
                }
            }
        }
    }

    fn take_another(&mut self) -> Result<(), StoreError> {
        let fresh = self.database_file.open_to_write()?;
        // The new one first: the last to close the database would fold the log.
        self.replace(fresh);
        // It would hear of the same failure of the disk once more.
        self.checkpointer.release();
        match self.checkpointer.checkpoint_all(&self.connection) {
            // Without a hole there is no need of it: a full disk, for one, has no place to fold it to.
            Err(error) if matches!(self.failed, Some(Failed::Plainly)) => {
                tracing::debug!(%error, "the log could not be folded");
                Ok(())
            }
            folded => folded,
        }
    }

    /// Closes the database for everybody and opens it again: what folds the log then begins at its start.
    fn start_over(&mut self) -> Result<(), StoreError> {
        self.checkpointer.wait_for_exclusive_access()?;
        let readers = self.readers.clone();
        let nobody_reads = readers.close_for_now()?;
        self.checkpointer.release();
        checkpoint::keep_log(&self.connection);
        // Until it is open again, the doubt keeps everything from being written to this one.
        self.replace(Connection::open_in_memory()?);
        let fresh = self.database_file.open_to_write()?;
        self.replace(fresh);
        Checkpointer::starts_at_first_frame(&self.connection)?;
        drop(nobody_reads);
        self.checkpointer.checkpoint_from_start(&self.connection)
    }

    fn replace(&mut self, fresh: Connection) {
        close(std::mem::replace(&mut self.connection, fresh));
        self.sync = None;
        self.head = None;
    }

    fn flush(&mut self, appends: &mut Vec<(Box<Append>, Answer<()>)>) {
        if appends.is_empty() {
            return;
        }
        let wanted = appends.iter().map(|(append, _)| append.sync).max().unwrap_or(Sync::Full);
        let group: Vec<&Append> = appends.iter().map(|(append, _)| &**append).collect();
        match self.commit(&group, wanted) {
            Err(error) if appends.len() > 1 && is_worth_single_tries(&error) => {
                for (append, answer) in appends.drain(..) {
                    let _ = answer.send(self.commit(&[&append], wanted));
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
    fn commit(&mut self, group: &[&Append], sync: Sync) -> Result<(), StoreError> {
        if let Some(error) = self.denied() {
            return self.said(Err(error));
        }
        let done = self.set_sync(sync).and_then(|()| self.write_group(group));
        let Err(error) = self.faults.report_commit(done) else { return self.said(Ok(())) };
        self.head = None;
        roll_back(&self.connection, &error);
        // A commit may come through and be reported as failed, and a session that was told so tries
        // again: whether the rows stand there is what counts.
        let there = if self.faults.blinds() {
            Err(StoreError::Unwritable("blinded by a test".into()))
        } else {
            is_committed(&self.connection, group)
        };
        self.said(match there {
            Ok(true) => Ok(()),
            Ok(false) => Err(error),
            Err(unread) => Err(StoreError::CommitUnknown(format!("{error}; then: {unread}"))),
        })
    }

    fn write_group(&mut self, group: &[&Append]) -> Result<(), StoreError> {
        if group.iter().all(|append| append.audit.is_empty()) {
            return statements::of_group(group, &mut AuditHead::default()).commit(&self.connection);
        }
        let mut head = self.take_head()?;
        statements::of_group(group, &mut head).commit(&self.connection)?;
        crash::point("C24.decided");
        self.head = Some(head);
        Ok(())
    }

    fn create(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        // Whoever asks again, with the same id or key, finds the session if it came through after all.
        let done = self.set_sync(Sync::Full).and_then(|()| self.insert_session(new));
        self.undone(done)
    }

    fn insert_session(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        let mut head = if new.audit.is_empty() { AuditHead::default() } else { self.take_head()? };
        self.connection.prepare_cached("begin immediate")?.execute([])?;
        statements::session(new).run(&self.connection)?;
        let key = SessionKey(self.connection.last_insert_rowid());
        statements::of_new(key, new, &mut head).run(&self.connection)?;
        self.connection.prepare_cached("commit")?.execute([])?;
        if !new.audit.is_empty() {
            self.head = Some(head);
        }
        Ok(key)
    }

    fn delete(&mut self, deletion: &Deletion) -> Result<(), StoreError> {
        let done = self.delete_session(deletion);
        let files = self.undone(done)?;
        blobs::remove_files(&self.database_file.path, &files);
        Ok(())
    }

    /// Gives the files that are to be removed.
    fn delete_session(&mut self, deletion: &Deletion) -> Result<Vec<String>, StoreError> {
        self.set_sync(Sync::Full)?;
        let files = blobs::files_of(&self.connection, deletion.key)?;
        let mut script = SqlBatch::default();
        script.add("delete from session where id = ?", values![deletion.key.0]);
        if let Some(row) = &deletion.idempotency {
            // It belongs to no session: it outlives this one.
            statements::remember(&mut script, None, row, deletion.at.0);
        }
        script.commit(&self.connection)?;
        Ok(files)
    }

    fn trust(&mut self, change: &TrustChange) -> Result<(), StoreError> {
        let mut script = SqlBatch::default();
        match &change.digest {
            Some(digest) => script.add(
                "insert or replace into trust (cwd, digest, at_ms) values (?, ?, ?)",
                values![&change.cwd, digest, change.note.at_ms.0],
            ),
            None => script.add("delete from trust where cwd = ?", values![&change.cwd]),
        }
        self.record(Sync::Full, script, std::slice::from_ref(&change.note))
    }

    /// Writes what was decided, and the rows of the audit log that tell of it.
    fn record(&mut self, sync: Sync, script: SqlBatch, notes: &[AuditNote]) -> Result<(), StoreError> {
        let done = self.write_record(sync, script, notes);
        self.undone(done)
    }

    fn write_record(
        &mut self,
        sync: Sync,
        mut script: SqlBatch,
        notes: &[AuditNote],
    ) -> Result<(), StoreError> {
        self.set_sync(sync)?;
        let mut head = self.take_head()?;
        audit::insert(&mut script, &mut head, notes);
        script.commit(&self.connection)?;
        self.head = Some(head);
        Ok(())
    }

    fn try_to_write(&mut self) -> Result<(), StoreError> {
        let done = self.set_sync(Sync::Full).and_then(|()| rewrite_nothing(&self.connection));
        self.undone(done)
    }

    fn perform(&mut self, sync: Sync, script: &SqlBatch) -> Result<(), StoreError> {
        let done = self.set_sync(sync).and_then(|()| script.commit(&self.connection));
        self.undone(done)
    }

    /// The newest row of the audit log; it is to be given back once what follows it is committed.
    fn take_head(&mut self) -> Result<AuditHead, StoreError> {
        match self.head.take() {
            Some(head) => Ok(head),
            None => audit::head(&self.connection),
        }
    }

    /// Notes the audit log's newest row beside the database, not too often.
    fn note_head(&mut self, now: bool) {
        let Some(head) = self.head.as_ref().filter(|head| head.id > 0) else { return };
        match self.noted {
            Noted::Contradicts => return,
            Noted::At(at) if !now && at.elapsed() < NOTE_HEAD => return,
            Noted::At(_) => {}
            Noted::Unknown => {
                if !audit::fits_note(&self.connection, &self.database_file.path) {
                    tracing::error!("rows of the audit log are missing: `agentctl audit verify` says which");
                    self.noted = Noted::Contradicts;
                    return;
                }
            }
        }
        if let Err(error) = audit::note_head(&self.database_file.path, head) {
            tracing::debug!(%error, "the audit log's newest row could not be noted");
        }
        self.noted = Noted::At(Instant::now());
    }

    /// Notes how a write ended; after an error, rolls back what may have been begun.
    fn undone<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &done {
            roll_back(&self.connection, error);
        }
        self.said(done)
    }

    fn said<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.health.wrote(&result);
        match &result {
            Err(error @ (StoreError::Unsynced(_) | StoreError::CommitUnknown(_))) => {
                self.failed = Some(Failed::LogGap(error.clone()));
            }
            Err(StoreError::Unwritable(_)) => {
                self.failed.get_or_insert(Failed::Plainly);
            }
            Ok(_) if matches!(self.failed, Some(Failed::Plainly)) => self.failed = None,
            _ => {}
        }
        result
    }

    /// Why nothing may be written just now.
    fn denied(&self) -> Option<StoreError> {
        match &self.failed {
            Some(Failed::LogGap(error)) => Some(error.clone()),
            _ => self.checkpointer.doubt(),
        }
    }

    /// To be called before each transaction, and only between them: SQLite ignores the pragma inside one.
    ///
    /// # Errors
    /// Nothing may be written just now.
    fn set_sync(&mut self, wanted: Sync) -> Result<(), StoreError> {
        if let Some(error) = self.denied() {
            return Err(error);
        }
        if self.sync == Some(wanted) {
            return Ok(());
        }
        self.sync = None;
        self.connection.execute_batch(match wanted {
            Sync::Full => "pragma synchronous = full",
            Sync::Normal => "pragma synchronous = normal",
        })?;
        self.sync = Some(wanted);
        Ok(())
    }
}

/// Says whether a failed group should be tried again one by one: one bad part must not fail others.
fn is_worth_single_tries(error: &StoreError) -> bool {
    matches!(error, StoreError::Taken | StoreError::Sql(_))
}

/// Closes the writer's connection; errors are logged, since nobody is left to be told.
fn close(connection: Connection) {
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "could not close the database cleanly");
    }
}

fn roll_back(connection: &Connection, error: &StoreError) {
    tracing::debug!(%error, "a transaction failed and is rolled back");
    // SQLite itself rolls back after some errors; then this one has nothing to do.
    let _ = connection.execute_batch("rollback");
}

/// Whether a whole group is in the journal already, to the letter: all rows but those that it itself
/// removes. What else it changes came with them in one transaction.
fn is_committed(connection: &Connection, group: &[&Append]) -> Result<bool, StoreError> {
    let mut find = connection.prepare_cached("select body from event where session = ? and seq = ?")?;
    for append in group {
        let stays = |row: &&Row| row.fold.is_none_or(|fold| !append.folds.contains(&fold));
        if !append.rows.iter().any(|row| stays(&row)) {
            return Ok(false);
        }
        for row in append.rows.iter().filter(stays) {
            let place = [append.key.0, integer(row.seq)];
            let body: Option<String> = find.query_row(place, |row| row.get(0)).optional()?;
            if body.as_deref() != Some(&*row.body) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A page goes to the log as it was: enough to see whether the disk takes it.
fn rewrite_nothing(connection: &Connection) -> Result<(), StoreError> {
    let version: i64 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    Ok(connection.pragma_update(None, "user_version", version)?)
}
