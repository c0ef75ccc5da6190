//! Opens the store: pragmas, migrations, the writer thread and the pool of readers.

use std::path::Path;

use sqlx::Connection;
use sqlx::migrate::Migrator;
use tokio::sync::{mpsc, oneshot};

use super::error::StoreError;
use super::writer::Writer;
use crate::database_file::{DatabaseFile, make_private, open_to_read, sibling_path, sync_folder};
use crate::fault_injection::Faults;
use crate::handle::{Store, StoreOwner, StoreReader, WriterHandle};
use crate::health::Health;
use crate::readers::Readers;
use crate::tables::blobs::renew_outdated_events;

/// Capacity of the queue to the writer. When it is full, senders wait.
const QUEUE_CAPACITY: usize = 1024;

impl Store {
    /// Opens the database at `path`, creates it if necessary and migrates its schema.
    ///
    /// # Errors
    /// The file cannot be opened or migrated, or a newer version wrote it.
    pub async fn open(path: &Path) -> Result<(Self, StoreOwner), StoreError> {
        Self::open_with_faults(path, Faults::from_environment()).await
    }

    /// [`Store::open`] with injected disk faults.
    pub(super) async fn open_with_faults(
        path: &Path,
        faults: Faults,
    ) -> Result<(Self, StoreOwner), StoreError> {
        let log = std::fs::metadata(sibling_path(path, "-wal"));
        let database_file = DatabaseFile::create(path)?;
        let migrations = sqlx::migrate!("../../migrations");
        let current =
            database_file.open_to_write().ok().filter(|connection| is_current(connection, &migrations));
        let connection = match current {
            Some(connection) => connection,
            None => bring_up_to_date(&database_file, &migrations).await?,
        };

        let (commands, inbox) = mpsc::channel(QUEUE_CAPACITY);
        let health = Health::from_path(path);
        let readers = Readers::new(&database_file);
        let writer = Writer::new(connection, database_file.clone(), health.clone(), faults, readers.clone())?;
        let (ended, over) = oneshot::channel();
        let run = move || {
            writer.run(inbox);
            drop::<oneshot::Sender<()>>(ended);
        };
        std::thread::Builder::new()
            .name("journal".into())
            .spawn(run)
            .map_err(|error| StoreError::Sql(format!("no thread for the journal: {error}")))?;
        let after_crash = log.is_ok_and(|log| log.len() > 0);
        let reader = StoreReader { readers, health, database_file, after_crash };
        let store = Self::new(reader, WriterHandle::new(commands));
        Ok((store.clone(), StoreOwner::new(over, store)))
    }
}

/// Whether the database needs no preparation before use. This quick check uses the writer's connection and
/// succeeds on most starts. In case of doubt it returns false, and the full preparation runs.
fn is_current(connection: &rusqlite::Connection, migrations: &Migrator) -> bool {
    let look = || -> rusqlite::Result<bool> {
        let mode: String = connection.query_row("pragma journal_mode", [], |row| row.get(0))?;
        let left: i64 =
            connection.query_row("select exists (select 1 from outdated_event)", [], |row| row.get(0))?;
        let mut applied =
            connection.prepare("select version, checksum, success from _sqlx_migrations order by version")?;
        let applied = applied.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let applied: Vec<(i64, Vec<u8>, bool)> = applied.collect::<Result<_, _>>()?;
        let wanted: Vec<_> = migrations.iter().map(|it| (it.version, it.checksum.to_vec(), true)).collect();
        Ok(mode == "wal" && left == 0 && applied == wanted)
    };
    look().unwrap_or(false)
}

/// Checks that no newer program has migrated the database at `path`. Changes nothing.
///
/// # Errors
/// [`StoreError::NewerSchema`] if one has; others if the database could not be read.
pub async fn check_schema(path: &Path) -> Result<(), StoreError> {
    let known: Vec<i64> = sqlx::migrate!("../../migrations").iter().map(|it| it.version).collect();
    let mut connection = open_to_read(path).await?;
    let applied: Vec<i64> = match has_schema(&mut connection).await? {
        true => sqlx::query_scalar("select version from _sqlx_migrations").fetch_all(&mut connection).await?,
        false => Vec::new(),
    };
    connection.close().await?;
    match applied.into_iter().filter(|version| !known.contains(version)).max() {
        Some(version) => Err(StoreError::newer_schema(version)),
        None => Ok(()),
    }
}

/// Migrates the schema and opens the writer's connection.
async fn bring_up_to_date(
    database_file: &DatabaseFile,
    migrations: &Migrator,
) -> Result<rusqlite::Connection, StoreError> {
    let mut connection = database_file.connect().await?;
    #[cfg(debug_assertions)]
    crash_in_migration(&mut connection).await?;
    copy_before_migration(&mut connection, migrations, &database_file.path).await?;
    migrate(&mut connection, migrations).await?;
    renew_outdated_events(&mut connection).await?;
    #[cfg(debug_assertions)]
    connection.lock_handle().await?.remove_progress_handler();
    let writer = database_file.open_to_write()?;
    // Close this connection after the writer's connection is open. Otherwise the last close would checkpoint
    // and remove the log.
    connection.close().await?;
    Ok(writer)
}

/// Applies the migrations. A new database gets all of them in one transaction, because each transaction waits for the
/// disk.
async fn migrate(connection: &mut sqlx::SqliteConnection, migrations: &Migrator) -> Result<(), StoreError> {
    if has_schema(connection).await? {
        return Ok(migrations.run(connection).await?);
    }
    let mut first = connection.begin().await?;
    migrations.run(&mut *first).await?;
    Ok(first.commit().await?)
}

/// Whether any migration was applied to the database.
async fn has_schema(connection: &mut sqlx::SqliteConnection) -> Result<bool, StoreError> {
    let table: Option<String> = sqlx::query_scalar(
        "select name from sqlite_master where type = 'table' and name = '_sqlx_migrations'",
    )
    .fetch_optional(connection)
    .await?;
    Ok(table.is_some())
}

/// While the schema is migrated, every step of SQLite's virtual machine is a crash point. Each statement has
/// several of these steps, including the copy before the migration and the bookkeeping after it.
#[cfg(debug_assertions)]
async fn crash_in_migration(connection: &mut sqlx::SqliteConnection) -> Result<(), StoreError> {
    connection.lock_handle().await?.set_progress_handler(1, || {
        base::crash::point("C20");
        true
    });
    Ok(())
}

/// Before an older database is migrated, it is copied to `agentd.db.before-N` in the same folder, where `N` is
/// the new schema version.
async fn copy_before_migration(
    connection: &mut sqlx::SqliteConnection,
    migrations: &Migrator,
    path: &Path,
) -> Result<(), StoreError> {
    if !has_schema(connection).await? {
        return Ok(());
    }
    let have: Option<i64> =
        sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(&mut *connection).await?;
    let wanted = migrations.iter().map(|migration| migration.version).max();
    let (Some(have), Some(wanted)) = (have, wanted) else { return Ok(()) };
    if have >= wanted {
        return Ok(());
    }
    let copy = sibling_path(path, &format!(".before-{wanted}"));
    if copy.exists() {
        // An earlier attempt did not finish. Keep its copy, because it shows the database before any
        // migration.
        return Ok(());
    }
    // The copy gets its name when it is complete, so that a crash never leaves a partial copy under that name.
    let part = sibling_path(&copy, ".part");
    let _ = std::fs::remove_file(&part);
    make_private(&part)?;
    sqlx::query("vacuum into ?").bind(part.to_string_lossy().into_owned()).execute(connection).await?;
    std::fs::File::open(&part)
        .and_then(|file| file.sync_all())
        .and_then(|()| std::fs::rename(&part, &copy))
        .and_then(|()| sync_folder(&copy))
        .map_err(|error| StoreError::Unwritable(format!("{}: {error}", copy.display())))?;
    tracing::info!(copy = %copy.display(), "copied the database before the schema migration");
    Ok(())
}
