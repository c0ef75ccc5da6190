//! Opening and closing: pragmas, migrations, the writer task and the pool of readers.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, SqlitePool};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::error::StoreError;
use super::rows::{Append, Idempotency, NewSession, SessionKey};
use super::writer::{self, Command, Deletion};
use crate::types::time::Timestamp;

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
        // The writer last: only a connection that may write can fold the log into the database.
        self.store.readers.close().await;
        let _ = self.store.commands.send(Command::Close).await;
        let _ = self.writer.await;
    }
}

impl Store {
    /// Opens (and makes, if need be) the database at `path` and brings its schema up to date.
    ///
    /// # Errors
    /// The file cannot be opened or migrated, or it was written by a newer version.
    pub async fn open(path: &Path) -> Result<(Self, StoreOwner), StoreError> {
        make_private(path)?;
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
        keep_a_copy(&mut connection, &migrations, path).await?;
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
    pub async fn delete(
        &self,
        key: SessionKey,
        idempotency: Option<Idempotency>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let deletion = Deletion { key, idempotency, at };
        self.ask(|answer| Command::Delete(Box::new(deletion), answer)).await
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

/// Before an older database is changed, it is copied beside itself (S11): `agentd.db.before-N`, where
/// `N` is the schema that is about to come.
async fn keep_a_copy(
    connection: &mut sqlx::SqliteConnection,
    migrations: &sqlx::migrate::Migrator,
    path: &Path,
) -> Result<(), StoreError> {
    let table: Option<String> = sqlx::query_scalar(
        "select name from sqlite_master where type = 'table' and name = '_sqlx_migrations'",
    )
    .fetch_optional(&mut *connection)
    .await?;
    if table.is_none() {
        return Ok(());
    }
    let have: Option<i64> =
        sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(&mut *connection).await?;
    let wanted = migrations.iter().map(|migration| migration.version).max();
    let (Some(have), Some(wanted)) = (have, wanted) else { return Ok(()) };
    if have >= wanted {
        return Ok(());
    }
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".before-{wanted}"));
    let copy = std::path::PathBuf::from(copy);
    if copy.exists() {
        // Of an attempt that did not come through; the first copy is the one to keep.
        return Ok(());
    }
    make_private(&copy)?;
    sqlx::query("vacuum into ?").bind(copy.to_string_lossy().into_owned()).execute(connection).await?;
    tracing::info!(copy = %copy.display(), "the database was copied before its schema changes");
    Ok(())
}

/// Makes the file for its owner alone; SQLite gives its companions the same mode.
fn make_private(path: &Path) -> Result<(), StoreError> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(StoreError::Unwritable(format!("{}: {error}", path.display())))
        }
        _ => Ok(()),
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
