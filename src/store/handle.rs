//! The handles on the database. Access is split by type: [`StoreReader`] only reads, [`JournalWriter`] appends to
//! the journal of one session, and [`Store`] creates and deletes sessions and changes the other tables.

use std::ops::Deref;

use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::rows::{Append, Idempotency, NewSession, SessionKey};
use crate::command::{Deletion, KeptReply, WriterCommand};
use crate::database_file::DatabaseFile;
use crate::health::Health;
use crate::readers::Readers;
use types::time::Timestamp;

/// Reads the database. Cheap to clone.
#[derive(Clone)]
pub struct StoreReader {
    pub(super) readers: Readers,
    pub(super) health: Health,
    pub(super) database_file: DatabaseFile,
    /// Whether the last daemon left its log file, which means that it did not stop cleanly.
    pub(super) after_crash: bool,
}

/// Creates and deletes sessions, changes the tables that are no journals, and makes the [`JournalWriter`] of a
/// session. Reads like a [`StoreReader`]. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    reader: StoreReader,
    writer: WriterHandle,
}

/// Appends to the journal of one session. It cannot be cloned: the session's task owns the only one.
pub struct JournalWriter {
    key: SessionKey,
    writer: WriterHandle,
}

/// Sends commands to the writer thread.
#[derive(Clone)]
pub(super) struct WriterHandle(mpsc::Sender<WriterCommand>);

/// Owner of the writer thread. [`StoreOwner::close`] ends it after all queued commands are written.
pub struct StoreOwner {
    /// Ends when the thread ends, because the thread then drops the sender.
    over: oneshot::Receiver<()>,
    store: Store,
}

impl StoreOwner {
    pub(super) fn new(over: oneshot::Receiver<()>, store: Store) -> Self {
        Self { over, store }
    }

    /// Writes queued commands, checkpoints the log and closes the database. Later calls on the store return
    /// `Closed`.
    pub async fn close(self) {
        // Close the writer last: only a writable connection can checkpoint the log.
        self.store.readers.close().await;
        let _ = self.store.writer.0.send(WriterCommand::Close).await;
        let _ = self.over.await;
    }
}

impl WriterHandle {
    pub fn new(commands: mpsc::Sender<WriterCommand>) -> Self {
        Self(commands)
    }

    pub async fn ask<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriterCommand,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        self.0.send(make(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

impl JournalWriter {
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// Appends one transaction. `Ok` means that it is committed with the requested durability. Not cancel-safe:
    /// after a dropped call, the transaction may still be committed.
    ///
    /// # Errors
    /// Nothing was written, except for [`StoreError::CommitUnknown`].
    pub async fn append(&self, append: Append) -> Result<(), StoreError> {
        debug_assert_eq!(append.key, self.key, "a journal writer writes one journal");
        self.writer.ask(|answer| WriterCommand::Append(Box::new(append), answer)).await
    }
}

impl Deref for Store {
    type Target = StoreReader;

    fn deref(&self) -> &StoreReader {
        &self.reader
    }
}

impl Store {
    pub(super) fn new(reader: StoreReader, writer: WriterHandle) -> Self {
        Self { reader, writer }
    }

    /// The reader, which cannot write.
    #[must_use]
    pub fn reader(&self) -> StoreReader {
        self.reader.clone()
    }

    /// The writer of a session's journal. Make it only for the session's task.
    #[must_use]
    pub fn journal_writer(&self, key: SessionKey) -> JournalWriter {
        JournalWriter { key, writer: self.writer.clone() }
    }

    /// Appends to any journal.
    #[cfg(test)]
    pub async fn append(&self, append: Append) -> Result<(), StoreError> {
        self.journal_writer(append.key).append(append).await
    }

    /// Creates a session with its first events, synced.
    ///
    /// # Errors
    /// `Taken` if the id or the idempotency key is in use. Nothing was written.
    pub async fn create(&self, new: NewSession) -> Result<SessionKey, StoreError> {
        self.ask(|answer| WriterCommand::Create(Box::new(new), answer)).await
    }

    /// Removes a session and all its rows, synced.
    ///
    /// # Errors
    /// Nothing was removed.
    pub async fn delete(
        &self,
        key: SessionKey,
        idempotency: Option<Idempotency>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let deletion = Deletion { key, idempotency, at };
        self.ask(|answer| WriterCommand::Delete(Box::new(deletion), answer)).await
    }

    /// Stores the reply of a call that wrote to no journal, synced.
    ///
    /// # Errors
    /// `Taken` if the key is in use. Nothing was written.
    pub async fn keep_reply(
        &self,
        key: Option<SessionKey>,
        idempotency: Idempotency,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let reply = KeptReply { key, idempotency, at };
        self.ask(|answer| WriterCommand::KeepReply(Box::new(reply), answer)).await
    }

    /// Frees the page cache of the writer, which keeps up to 16 MB after a burst of writes. Pages that are needed later are
    /// read again.
    pub async fn release_cache(&self) -> Result<(), StoreError> {
        self.ask(WriterCommand::ReleaseCache).await
    }

    /// Reports trouble with the storage. If the last write failed, tries another write now, so that past
    /// trouble is not reported forever.
    ///
    /// # Errors
    /// The current trouble.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.database_file.check_identity()?;
        if self.health.cannot_write() {
            self.ask(WriterCommand::Try).await?;
        }
        self.health.newest_trouble().map_or(Ok(()), Err)
    }

    pub(super) async fn ask<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> WriterCommand,
    ) -> Result<T, StoreError> {
        self.writer.ask(make).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A type without `Clone` has one implementation of `CloneCheck`. If `JournalWriter` had `Clone`, a
    /// second implementation would make the call ambiguous, and this test would not compile.
    #[test]
    fn journal_writer_cannot_be_cloned() {
        trait CloneCheck<Case> {
            fn has_one_owner() -> bool {
                true
            }
        }
        struct Cloneable;
        impl<T: ?Sized> CloneCheck<()> for T {}
        impl<T: Clone> CloneCheck<Cloneable> for T {}
        assert!(<JournalWriter as CloneCheck<_>>::has_one_owner());
    }
}
