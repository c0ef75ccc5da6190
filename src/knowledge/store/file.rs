//! The file of one index: its path, how it is opened, and the handling of damage.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::inserted_documents::InsertedDocuments;
use super::schema;
use crate::types::{ErrorKind, KnowledgeError, hash128};

/// How long a connection waits for a lock of another connection or program.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Capacity of the statement cache of a connection.
const STATEMENT_CAPACITY: usize = 96;
/// Suffixes of the files that SQLite creates next to a database.
const COMPANIONS: [&str; 2] = ["-wal", "-shm"];
/// Maximum number of damaged files per index; older ones are deleted.
const MAX_DAMAGED_FILES: u32 = 3;

/// The path of a workspace's index file in this folder.
#[must_use]
pub fn index_path(folder: &Path, workspace: &Path) -> PathBuf {
    folder.join(format!("{}.db", hash128(&[workspace.as_os_str().as_encoded_bytes()])))
}

/// Opens the file to write, and creates it with mode 0600 if it is missing. The second value is a damaged
/// file that was set aside. If there is one, the index is empty and must be built again.
///
/// # Errors
/// The file could not be opened or created, or another program holds its lock.
pub(super) fn open_to_write(path: &Path) -> Result<(Connection, Option<PathBuf>), KnowledgeError> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| io_error(path, &error))?;
    }
    match open(path) {
        Ok(connection) => Ok((connection, None)),
        Err(error) if error.kind == ErrorKind::Damaged => {
            let aside = set_aside(path)?;
            Ok((open(path)?, aside))
        }
        Err(error) => Err(error),
    }
}

fn open(path: &Path) -> Result<Connection, KnowledgeError> {
    let file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    drop(file.map_err(|error| io_error(path, &error))?);
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // An index can be built again, so a power cut may remove the newest commits. A crash of the process
    // removes none.
    connection.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on; \
         pragma cache_size = -8000; pragma temp_store = memory; pragma journal_size_limit = 16777216;",
    )?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CAPACITY);
    schema::migrate(&mut connection)?;
    // Reads a row of each kind. This finds damage of the first pages; other damage is found when its page is read.
    connection.query_row("select count(*) from kn_meta", [], |row| row.get::<_, i64>(0))?;
    connection.query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(connection)
}

/// Opens a second connection that cannot write.
///
/// # Errors
/// The file could not be opened.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, KnowledgeError> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection
        .execute_batch("pragma query_only = on; pragma cache_size = -4000; pragma temp_store = memory;")?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CAPACITY);
    Ok(connection)
}

/// Renames a damaged file to `NAME.damaged-N`, the newest with the highest number, together with its journal, and
/// returns the new path; `None` if there is no file.
pub(super) fn set_aside(path: &Path) -> Result<Option<PathBuf>, KnowledgeError> {
    let mut aside = None;
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".damaged-{number}"));
        PathBuf::from(name)
    };
    for number in 1..=MAX_DAMAGED_FILES {
        if number == MAX_DAMAGED_FILES || !numbered(number).exists() {
            // The highest number is reused for every further damaged file.
            match fs::rename(path, numbered(number)) {
                Ok(()) => aside = Some(numbered(number)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_error(path, &error)),
            }
            break;
        }
    }
    if let Some(aside) = &aside {
        // The journal holds the newest changes. The journal of an older damaged file does not fit this one.
        remove_companions(aside)?;
        // A damaged file without its journal is still useful.
        let _ = fs::rename(companion(path, COMPANIONS[0]), companion(aside, COMPANIONS[0]));
    }
    remove_companions(path)?;
    Ok(aside)
}

fn companion(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Deletes an index file with its companions and its inserted documents. A missing file is no error.
///
/// # Errors
/// A file could not be removed.
pub fn delete_index(path: &Path) -> Result<(), KnowledgeError> {
    remove(path)?;
    remove_companions(path)?;
    InsertedDocuments::for_index(path).remove()
}

fn remove_companions(path: &Path) -> Result<(), KnowledgeError> {
    for suffix in COMPANIONS {
        remove(&companion(path, suffix))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), KnowledgeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io_error(path, &error)),
        _ => Ok(()),
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> KnowledgeError {
    KnowledgeError::new(
        ErrorKind::Storage,
        format!(
            "could not use the index file {}: {error}; check the folder's permissions and space",
            path.display()
        ),
    )
}
