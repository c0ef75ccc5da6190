//! The only thread that writes. It commits waiting requests as a group, so that one sync serves many sessions.
//!
//! The writer is a plain thread without tasks in between. A caller that waits for a commit wakes the thread
//! directly, and the thread wakes the caller. A database driver with a thread of its own woke both sides up
//! to a dozen times per decision. These wake-ups cost more than SQLite itself (`proto-docs/performance.md`,
//! B4 and B8).

pub(super) mod checkpoint;
mod connection;
pub(super) mod statements;

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::error::StoreError;
use crate::command::{Deletion, ReplyTo, WriterCommand};
use crate::database_file::DatabaseFile;
use crate::fault_injection::Faults;
use crate::health::Health;
use crate::job_rows::JobCommit;
use crate::readers::Readers;
use crate::rows::{Append, Durability, NewSession, SessionKey, TrustChange};
use crate::sql_batch::{SqlBatch, values};
use crate::tables::{audit, blobs, grants, jobs, processes};
use crate::wal;
use base::crash;
use checkpoint::Checkpointer;
use connection::{close, is_committed, is_worth_single_tries, rewrite_nothing, roll_back};
use types::audit::{AuditHead, AuditNote};

/// Maximum number of commands in one transaction.
const MAX_GROUP_COMMANDS: usize = 256;
/// Minimum time between two writes of the audit head file, which stores the audit log's newest row next to the
/// database.
const HEAD_FILE_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two attempts to reopen the database.
const REOPEN_INTERVAL: Duration = Duration::from_millis(250);

/// The state of the writer thread.
pub(super) struct Writer {
    connection: Connection,
    checkpointer: Checkpointer,
    readers: Readers,
    /// The current durability of the connection's commits; `None` if it is unknown.
    sync: Option<Durability>,
    database_file: DatabaseFile,
    health: Health,
    faults: Faults,
    /// Time of the last attempt to open a new connection after a failed write.
    renewed: Option<Instant>,
    /// The kind of the last write failure; `None` if the last write succeeded.
    failed: Option<WriteFailure>,
    /// The newest row of the audit log; `None` if it must be read from the database.
    head: Option<AuditHead>,
    noted: HeadFileState,
}

/// The kind of a write failure.
enum WriteFailure {
    /// The write left no data in the database.
    NothingWritten,
    /// The log may have a gap, so nothing may be written before SQLite has restarted the log.
    LogGap(StoreError),
}

/// State of the audit head file and its last write.
#[derive(Default)]
enum HeadFileState {
    /// The existing file has not been compared with the database yet.
    #[default]
    Unknown,
    At(Instant),
    /// The file names rows that the database does not have. It is left unchanged as evidence.
    Contradicts,
}

impl Writer {
    /// Creates the writer over a new connection.
    ///
    /// # Errors
    /// The database could not be opened again.
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
            noted: HeadFileState::default(),
        })
    }

    /// Handles commands until `Close` arrives or all senders are dropped. Blocks for as long as the store is
    /// open.
    pub fn run(mut self, mut inbox: mpsc::Receiver<WriterCommand>) {
        let mut batch = Vec::with_capacity(MAX_GROUP_COMMANDS);
        while inbox.blocking_recv_many(&mut batch, MAX_GROUP_COMMANDS) > 0 {
            if self.failed.is_some() || self.checkpointer.write_doubt().is_some() {
                self.renew();
            }
            let mut appends = Vec::new();
            let mut closing = false;
            for command in batch.drain(..) {
                if let WriterCommand::Append(append, answer) = command {
                    appends.push((append, answer));
                    continue;
                }
                // Commands must be written in the order of their arrival.
                self.flush(&mut appends);
                match command {
                    WriterCommand::Append(..) => {}
                    WriterCommand::Create(new, answer) => drop(answer.send(self.create(&new))),
                    WriterCommand::Delete(deletion, answer) => drop(answer.send(self.delete(&deletion))),
                    WriterCommand::KeepReply(reply, answer) => {
                        let mut script = SqlBatch::default();
                        statements::store_reply(&mut script, reply.key, &reply.idempotency, reply.at.0);
                        drop(answer.send(self.perform(Durability::Full, &script)));
                    }
                    WriterCommand::Try(answer) => drop(answer.send(self.try_to_write())),
                    WriterCommand::Forget(calls, answer) => {
                        drop(
                            answer
                                .send(self.perform(Durability::Normal, &processes::delete_processes(&calls))),
                        );
                    }
                    WriterCommand::Trust(change, answer) => drop(answer.send(self.trust(&change))),
                    WriterCommand::Paid(requests, answer) => {
                        drop(answer.send(self.perform(Durability::Full, &grants::discard(&requests))));
                    }
                    WriterCommand::Job(step, answer) => drop(answer.send(self.commit_job(&step))),
                    WriterCommand::Record(notes, sync, answer) => {
                        drop(answer.send(self.record(sync, SqlBatch::default(), &notes)));
                    }
                    WriterCommand::ReleaseCache(answer) => {
                        let released = self.connection.execute_batch("pragma shrink_memory");
                        drop(answer.send(released.map_err(StoreError::from)));
                    }
                    WriterCommand::Close => closing = true,
                }
            }
            self.flush(&mut appends);
            self.checkpointer.after_commit(&self.connection);
            if let Some(error) = self.checkpointer.write_doubt().filter(|_| !self.health.cannot_write()) {
                // The health may report success, because the running commit succeeded. Record that further
                // writes are refused.
                self.health.record_write::<()>(&Err(error));
            }
            self.note_head_sometimes();
            if closing {
                break;
            }
        }
        self.note_head();
        self.checkpointer.end();
        if self.checkpointer.write_doubt().is_some() {
            wal::keep_log(&self.connection);
        }
        close(self.connection);
    }

    /// Recovers after a failed write. A connection that became read-only stays read-only, so the writer opens
    /// a new connection if it can.
    ///
    /// A failed sync may also have left a gap in the log: Linux drops pages that it could not write
    /// (<https://wiki.postgresql.org/wiki/Fsync_Errors>), and SQLite loses all commits after the gap. So the
    /// writer checkpoints and restarts the log before it confirms another commit.
    fn renew(&mut self) {
        if self.renewed.is_some_and(|at| at.elapsed() < REOPEN_INTERVAL) {
            return;
        }
        self.renewed = Some(Instant::now());
        let is_in_doubt = self.checkpointer.write_doubt().is_some();
        match if is_in_doubt { self.restart_log() } else { self.reopen_connection() } {
            Ok(()) => self.failed = None,
            Err(error) => {
                tracing::debug!(%error, "could not reopen the database");
                if is_in_doubt {
                    self.checkpointer.explain(&error);
                    self.failed = None;
                }
            }
        }
    }

    fn reopen_connection(&mut self) -> Result<(), StoreError> {
        let fresh = self.database_file.open_to_write()?;
        // Open the new connection first: closing the last connection would checkpoint the log.
        self.replace(fresh);
        // The descriptor of the checkpoint thread's connection would report the same disk failure again.
        self.checkpointer.close_connection();
        match self.checkpointer.checkpoint_all(&self.connection) {
            // If the log has no gap, the checkpoint is optional. A full disk, for example, has no space for
            // it.
            Err(error) if matches!(self.failed, Some(WriteFailure::NothingWritten)) => {
                tracing::debug!(%error, "could not checkpoint the write-ahead log");
                Ok(())
            }
            pages => pages,
        }
    }

    /// Closes all connections and opens the database again, so that SQLite checkpoints the log from its first
    /// frame.
    fn restart_log(&mut self) -> Result<(), StoreError> {
        self.checkpointer.check_exclusive_access()?;
        let readers = self.readers.clone();
        let no_readers = readers.close_for_now()?;
        self.checkpointer.close_connection();
        wal::keep_log(&self.connection);
        // While the doubt is set, nothing is written to this temporary in-memory database.
        self.replace(Connection::open_in_memory()?);
        let fresh = self.database_file.open_to_write()?;
        self.replace(fresh);
        Checkpointer::starts_at_first_frame(&self.connection)?;
        drop(no_readers);
        self.checkpointer.checkpoint_from_start(&self.connection)
    }

    fn replace(&mut self, fresh: Connection) {
        close(std::mem::replace(&mut self.connection, fresh));
        self.sync = None;
        self.head = None;
    }

    fn flush(&mut self, appends: &mut Vec<(Box<Append>, ReplyTo<()>)>) {
        if appends.is_empty() {
            return;
        }
        let wanted = appends.iter().map(|(append, _)| append.sync).max().unwrap_or(Durability::Full);
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

    /// Writes a group as one transaction. An error means that nothing was written, except for
    /// [`StoreError::CommitUnknown`].
    fn commit(&mut self, group: &[&Append], sync: Durability) -> Result<(), StoreError> {
        if let Some(error) = self.write_refusal() {
            return self.note_result(Err(error));
        }
        let done = self.set_sync(sync).and_then(|()| self.write_group(group));
        let Err(error) = self.faults.report_commit(done) else { return self.note_result(Ok(())) };
        self.head = None;
        roll_back(&self.connection, &error);
        // SQLite can report an error for a commit that succeeded, and the session would then try again. So
        // check whether the rows are in the journal.
        let there = if self.faults.blinds_next_check() {
            Err(StoreError::Unwritable("blinded by a test".into()))
        } else {
            is_committed(&self.connection, group)
        };
        self.note_result(match there {
            Ok(true) => Ok(()),
            Ok(false) => Err(error),
            Err(unread) => Err(StoreError::CommitUnknown(format!("{error}; then: {unread}"))),
        })
    }

    fn write_group(&mut self, group: &[&Append]) -> Result<(), StoreError> {
        if group.iter().all(|append| append.audit.is_empty()) {
            return statements::group_statements(group, &mut AuditHead::default()).commit(&self.connection);
        }
        let mut head = self.take_head()?;
        statements::group_statements(group, &mut head).commit(&self.connection)?;
        crash::point("C24.decided");
        self.head = Some(head);
        Ok(())
    }

    fn create(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        // If the commit succeeded in spite of an error, a retry with the same id or key finds the session.
        let done = self.set_sync(Durability::Full).and_then(|()| self.insert_session(new));
        self.finish_write(done)
    }

    fn insert_session(&mut self, new: &NewSession) -> Result<SessionKey, StoreError> {
        let mut head = if new.audit.is_empty() { AuditHead::default() } else { self.take_head()? };
        self.connection.prepare_cached("begin immediate")?.execute([])?;
        statements::session(new).run(&self.connection)?;
        let key = SessionKey(self.connection.last_insert_rowid());
        statements::new_session_statements(key, new, &mut head).run(&self.connection)?;
        self.connection.prepare_cached("commit")?.execute([])?;
        if !new.audit.is_empty() {
            self.head = Some(head);
        }
        Ok(key)
    }

    fn delete(&mut self, deletion: &Deletion) -> Result<(), StoreError> {
        let done = self.delete_session(deletion);
        let files = self.finish_write(done)?;
        blobs::remove_files(&self.database_file.path, &files);
        Ok(())
    }

    /// Deletes a session. Returns the names of the files to remove.
    fn delete_session(&mut self, deletion: &Deletion) -> Result<Vec<String>, StoreError> {
        self.set_sync(Durability::Full)?;
        let files = blobs::files_of(&self.connection, deletion.key)?;
        let mut script = SqlBatch::default();
        script.add("delete from session where id = ?", values![deletion.key.0]);
        if let Some(row) = &deletion.idempotency {
            // The reply belongs to no session, because it must outlive the deleted one.
            statements::store_reply(&mut script, None, row, deletion.at.0);
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
        self.record(Durability::Full, script, std::slice::from_ref(&change.note))
    }

    fn commit_job(&mut self, step: &JobCommit) -> Result<(), StoreError> {
        let mut script = SqlBatch::default();
        jobs::statements(&mut script, &step.writes);
        if let Some(row) = &step.idempotency {
            statements::store_reply(&mut script, None, row, step.at.0);
        }
        if step.audit.is_empty() {
            return self.perform(Durability::Full, &script);
        }
        self.record(Durability::Full, script, &step.audit)
    }

    /// Writes the statements of a decision and its audit rows in one transaction.
    fn record(&mut self, sync: Durability, script: SqlBatch, notes: &[AuditNote]) -> Result<(), StoreError> {
        let done = self.write_record(sync, script, notes);
        self.finish_write(done)
    }

    fn write_record(
        &mut self,
        sync: Durability,
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
        let done = self.set_sync(Durability::Full).and_then(|()| rewrite_nothing(&self.connection));
        self.finish_write(done)
    }

    fn perform(&mut self, sync: Durability, script: &SqlBatch) -> Result<(), StoreError> {
        let done = self.set_sync(sync).and_then(|()| script.commit(&self.connection));
        self.finish_write(done)
    }

    /// Takes the newest row of the audit log. The caller must store the new head after the next commit.
    fn take_head(&mut self) -> Result<AuditHead, StoreError> {
        match self.head.take() {
            Some(head) => Ok(head),
            None => audit::head(&self.connection),
        }
    }

    /// Writes the newest row of the audit log to the head file, at most once per interval.
    fn note_head_sometimes(&mut self) {
        match self.noted {
            HeadFileState::At(at) if at.elapsed() < HEAD_FILE_INTERVAL => {}
            _ => self.note_head(),
        }
    }

    /// Writes the newest row of the audit log to the head file.
    fn note_head(&mut self) {
        let Some(head) = self.head.as_ref().filter(|head| head.id > 0) else { return };
        match self.noted {
            HeadFileState::Contradicts => return,
            HeadFileState::At(_) => {}
            HeadFileState::Unknown => {
                if !audit::fits_note(&self.connection, &self.database_file.path) {
                    tracing::error!(
                        "rows of the audit log are missing; run `agentctl audit verify` to list them"
                    );
                    self.noted = HeadFileState::Contradicts;
                    return;
                }
            }
        }
        if let Err(error) = audit::note_head(&self.database_file.path, head) {
            tracing::debug!(%error, "could not record the newest row of the audit log");
        }
        self.noted = HeadFileState::At(Instant::now());
    }

    /// Records the result of a write. After an error, rolls back a transaction that may be open.
    fn finish_write<T>(&mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &done {
            roll_back(&self.connection, error);
        }
        self.note_result(done)
    }

    fn note_result<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        self.health.record_write(&result);
        match &result {
            Err(error @ (StoreError::Unsynced(_) | StoreError::CommitUnknown(_))) => {
                self.failed = Some(WriteFailure::LogGap(error.clone()));
            }
            Err(StoreError::Unwritable(_)) => {
                self.failed.get_or_insert(WriteFailure::NothingWritten);
            }
            Ok(_) if matches!(self.failed, Some(WriteFailure::NothingWritten)) => self.failed = None,
            _ => {}
        }
        result
    }

    /// Returns why no write is allowed at the moment; `None` if writes are allowed.
    fn write_refusal(&self) -> Option<StoreError> {
        match &self.failed {
            Some(WriteFailure::LogGap(error)) => Some(error.clone()),
            _ => self.checkpointer.write_doubt(),
        }
    }

    /// Sets the durability of the next transaction. Call it between transactions only: SQLite ignores the
    /// pragma inside of one.
    ///
    /// # Errors
    /// No write is allowed at the moment.
    fn set_sync(&mut self, wanted: Durability) -> Result<(), StoreError> {
        if let Some(error) = self.write_refusal() {
            return Err(error);
        }
        if self.sync == Some(wanted) {
            return Ok(());
        }
        self.sync = None;
        self.connection.execute_batch(match wanted {
            Durability::Full => "pragma synchronous = full",
            Durability::Normal => "pragma synchronous = normal",
        })?;
        self.sync = Some(wanted);
        Ok(())
    }
}
