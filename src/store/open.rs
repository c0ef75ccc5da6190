//! Opening and closing: pragmas, migrations, the writer task and the pool of readers.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlitePool};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::error::StoreError;
use super::rows::{Append, NewSession, SessionKey};
use super::writer::{self, Command};

/// Commands that may wait for the writer; senders wait beyond that.
const QUEUE: usize = 1024;

/// A handle on the database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    commands: mpsc::Sender<Command>,
    pub(super) readers: SqlitePool,
}

/// The writer task; [`StoreOwner::close`] ends it after everything queued is written.
pub struct StoreOwner {
    writer: JoinHandle<()>,
    store: Store,
}

impl StoreOwner {
    /// Writes what is queued, checkpoints, closes. Later calls on the store answer `Closed`.
    pub async fn close(self) {
        let _ = self.store.commands.send(Command::Close).await;
        let _ = self.writer.await;
        self.store.readers.close().await;
    }
}

/// Makes the file for us alone; SQLite gives its companions the same mode. What fails here, SQLite
/// will tell of in better words.
fn make_private(path: &Path) {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file = std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    let _ = file.and_then(|file| file.set_permissions(std::fs::Permissions::from_mode(0o600)));
}

impl Store {
    /// Opens (and makes, if need be) the database at `path` and brings its schema up to date.
    ///
    /// # Errors
    /// The file cannot be opened or migrated, or it was written by a newer version.
    pub async fn open(path: &Path) -> Result<(Self, StoreOwner), StoreError> {
        make_private(path);
        let base = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            .disable_statement_logging();
        let mut connection = base
            .clone()
            .create_if_missing(true)
            .pragma("cache_size", "-8000")
            .connect()
            .await
            .map_err(StoreError::from)?;
        let migrations = sqlx::migrate!();
        migrations.run(&mut connection).await?;

        let readers = SqlitePoolOptions::new()
            .max_connections(3)
            .idle_timeout(None)
            .max_lifetime(None)
            .test_before_acquire(false)
            .connect_lazy_with(base.read_only(true).pragma("query_only", "1").pragma("cache_size", "-2000"));

        let (commands, inbox) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(writer::run(connection, inbox));
        let store = Self { commands, readers };
        Ok((store.clone(), StoreOwner { writer, store }))
    }

    /// Appends one transaction. When this returns `Ok`, it is committed as surely as it asked for.
    /// Not cancel-safe in its answer: a dropped call may still be committed.
    ///
    /// # Errors
    /// Nothing of it was written.
    pub async fn append(&self, append: Append) -> Result<(), StoreError> {
        self.ask(|answer| Command::Append(Box::new(append), answer)).await
    }

    /// Makes a session with its first events, synced.
    ///
    /// # Errors
    /// `Taken` if the id or the idempotency key is in use; nothing was written.
    pub async fn create(&self, new: NewSession) -> Result<SessionKey, StoreError> {
        self.ask(|answer| Command::Create(Box::new(new), answer)).await
    }

    /// Removes a session and all that belongs to it, synced.
    ///
    /// # Errors
    /// Nothing was removed.
    pub async fn delete(&self, key: SessionKey) -> Result<(), StoreError> {
        self.ask(|answer| Command::Delete(key, answer)).await
    }

    async fn ask<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (answer, reply) = oneshot::channel();
        self.commands.send(make(answer)).await.map_err(|_| StoreError::Closed)?;
        reply.await.map_err(|_| StoreError::Closed)?
    }
}

/// Says whether a failed group should be tried again one by one: one bad part must not fail others.
pub(super) fn is_worth_single_tries(error: &StoreError) -> bool {
    !matches!(error, StoreError::Unwritable(_) | StoreError::Corrupt(_) | StoreError::Closed)
}

/// Closes the writer's connection; errors are logged, since nobody is left to be told.
pub(super) async fn close_connection(connection: sqlx::SqliteConnection) {
    if let Err(error) = connection.close().await {
        tracing::warn!(%error, "could not close the database cleanly");
    }
}
