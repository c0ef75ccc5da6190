//! Copies of the whole database while it is in use, and the integrity check.
//!
//! A separate read-only connection makes the copy, so writers continue meanwhile. The copy is written under a
//! temporary name, checked and synced. Only then does it get the requested name, so a file with that name is
//! always complete.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::database_file::{open_to_read, sync_folder};
use crate::error::StoreError;
use crate::handle::StoreReader;

/// Maximum number of problems that a check reports.
const MAX_PROBLEMS: u32 = 20;
/// Prefix of the temporary name of a copy.
pub(crate) const PART_PREFIX: &str = ".agentd-backup-";

impl StoreReader {
    /// Copies the current database into the new file `to` with mode 0600. Returns its size in bytes. Only one
    /// copy or check runs at a time. If the future is dropped, a file named `.agentd-backup-….part` may remain
    /// in the folder of `to`.
    ///
    /// # Errors
    /// `Target` if the file exists already or cannot be written. Other errors mean that the database could not
    /// be read. The file `to` does not exist then, unless another process created it.
    pub async fn backup(&self, to: &Path) -> Result<u64, StoreError> {
        let _turn = self.readers.acquire_full_read().await?;
        if to.symlink_metadata().is_ok() {
            return Err(already_exists_error(to));
        }
        let part = TemporaryFile::create_next_to(to)?;
        let done = self.copy(&part.0).await.and_then(|()| publish(&part.0, to));
        drop(part);
        let read = self.report_damage(done);
        read.and_then(|()| {
            let meta = std::fs::metadata(to).map_err(|error| target(to, &error))?;
            Ok(meta.len())
        })
    }

    async fn copy(&self, part: &Path) -> Result<(), StoreError> {
        let mut from = self.database_file.reader_options().pragma("query_only", "0").connect().await?;
        let name = part.to_string_lossy().into_owned();
        let copied = sqlx::query("vacuum into ?").bind(name).execute(&mut from).await;
        let _ = from.close().await;
        copied.map_err(|error| match StoreError::from(error) {
            // The connection only reads the database, so the error concerns the target file.
            StoreError::Unwritable(why) | StoreError::Unsynced(why) => {
                StoreError::Target(format!("{}: {why}", part.display()))
            }
            other => other,
        })?;
        match problems(part).await?.first() {
            None => Ok(()),
            Some(problem) => Err(StoreError::Corrupt(problem.clone())),
        }
    }

    /// Reads the whole database and checks its integrity. Returns a description of each problem; the list is
    /// empty if there is none.
    ///
    /// # Errors
    /// The database could not be read far enough for a result.
    pub async fn problems(&self) -> Result<Vec<String>, StoreError> {
        let _turn = self.readers.acquire_full_read().await?;
        let found = problems(&self.database_file.path).await;
        if let Ok([problem, ..]) = found.as_deref() {
            let _ = self.report_damage::<()>(Err(StoreError::Corrupt(problem.clone())));
        }
        self.report_damage(found)
    }
}

/// Checks a database file, whether it is in use or not. Finds broken pages and indices, and rows with
/// dangling references. Changes nothing. Returns a description of each problem.
///
/// # Errors
/// The file could not be opened or read at all, so there is no result.
pub async fn problems(path: &Path) -> Result<Vec<String>, StoreError> {
    let found = match open_to_read(path).await {
        Ok(mut connection) => {
            let found = all_problems(&mut connection).await;
            let _ = connection.close().await;
            found
        }
        Err(error) => Err(error),
    };
    match found {
        // The database is too damaged for a list of problems, so return the error as the only one.
        Err(StoreError::Corrupt(why)) => Ok(vec![why]),
        found => found,
    }
}

async fn all_problems(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let check = sqlx::AssertSqlSafe(format!("pragma integrity_check({MAX_PROBLEMS})"));
    let mut found: Vec<String> = sqlx::query_scalar(check).fetch_all(&mut *connection).await?;
    found.retain(|line| line != "ok");
    let orphans: Vec<(String, Option<i64>, String, i64)> =
        sqlx::query_as("pragma foreign_key_check").fetch_all(connection).await?;
    let reported_orphans = orphans.iter().take(MAX_PROBLEMS as usize);
    found.extend(reported_orphans.map(|(table, _, parent, _)| format!("a row of {table} has no {parent}")));
    Ok(found)
}

/// A new temporary file under an unused name. Dropping this value removes the file.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn create_next_to(to: &Path) -> Result<Self, StoreError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = to.with_file_name(format!("{PART_PREFIX}{}-{count}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(Self(path)),
                // The file belongs to another process, so leave it.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(target(to, &error)),
            }
        }
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // If the file was renamed, this name no longer exists.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Gives a complete file its final name. Never replaces an existing file.
fn publish(part: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => already_exists_error(to),
        _ => target(to, &error),
    };
    std::fs::File::open(part).and_then(|file| file.sync_all()).map_err(failed)?;
    match std::fs::hard_link(part, to) {
        // Not every file system has hard links. Neither way replaces a file, see renameat2(2).
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            renameat2(AT_FDCWD, part, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)
                .map_err(|error| failed(error.into()))?;
        }
        linked => linked.map_err(failed)?,
    }
    sync_folder(to).map_err(failed)
}

fn already_exists_error(to: &Path) -> StoreError {
    StoreError::Target(format!("{} is there already: name another file", to.display()))
}

fn target(to: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Target(format!("{}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use crate::recovery::backup::*;

    #[test]
    fn backup_does_not_replace_file_created_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy.db");
        let part = TemporaryFile::create_next_to(&to).expect("made");
        std::fs::write(&to, "another's").expect("written");
        let refused = publish(&part.0, &to);
        assert!(
            matches!(&refused, Err(StoreError::Target(why)) if why.contains("there already")),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(&to).expect("there"), "another's");
        let path = part.0.clone();
        drop(part);
        assert!(!path.exists());
    }
}
