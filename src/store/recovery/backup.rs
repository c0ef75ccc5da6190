//! Copies of the whole database while it is in use, and the look whether it is sound.
//!
//! A copy is made by a connection of its own that only reads: writers go on beside it. It is written
//! under another name, checked, synced, and only then gets the name that was asked for, so that
//! whatever has that name is whole.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::store::database_file::open_to_read;
use crate::store::error::StoreError;
use crate::store::open::Store;

/// Problems that a check names at most.
const PROBLEMS: u32 = 20;
/// How the name of a copy in the making begins.
pub(in crate::store) const PART: &str = ".agentd-backup-";

impl Store {
    /// Copies the database as it is now into the new file `to`, for its owner alone. Returns its
    /// bytes. One copy or check runs at a time. If the call is dropped, a file of the name
    /// `.agentd-backup-….part` may be left beside `to`.
    ///
    /// # Errors
    /// `Target` if there is such a file already or it cannot be written; else the database could not
    /// be read. There is no file `to` then, unless somebody else made it.
    pub async fn backup(&self, to: &Path) -> Result<u64, StoreError> {
        let _turn = self.readers.turn().await?;
        if to.symlink_metadata().is_ok() {
            return Err(is_there(to));
        }
        let part = Part::beside(to)?;
        let done = self.copy(&part.0).await.and_then(|()| publish(&part.0, to));
        drop(part);
        let read = self.noted(done);
        read.and_then(|()| {
            let meta = std::fs::metadata(to).map_err(|error| target(to, &error))?;
            Ok(meta.len())
        })
    }

    async fn copy(&self, part: &Path) -> Result<(), StoreError> {
        let mut from = self.database_file.reading().pragma("query_only", "0").connect().await?;
        let name = part.to_string_lossy().into_owned();
        let copied = sqlx::query("vacuum into ?").bind(name).execute(&mut from).await;
        let _ = from.close().await;
        copied.map_err(|error| match StoreError::from(error) {
            // What only reads the database writes nowhere else.
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

    /// Reads the whole database to see whether it is sound. Returns what is not, in words; nothing if
    /// all is well.
    ///
    /// # Errors
    /// It could not be read far enough to say.
    pub async fn problems(&self) -> Result<Vec<String>, StoreError> {
        let _turn = self.readers.turn().await?;
        let found = problems(&self.database_file.path).await;
        if let Ok([problem, ..]) = found.as_deref() {
            let _ = self.noted::<()>(Err(StoreError::Corrupt(problem.clone())));
        }
        self.noted(found)
    }
}

/// What is not sound in a database file that may be in use or not: broken pages and indices, rows
/// that point nowhere. Nothing is changed.
///
/// # Errors
/// It could not be opened or read at all, so that nothing is known of it.
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
        // Too damaged for a list.
        Err(StoreError::Corrupt(why)) => Ok(vec![why]),
        found => found,
    }
}

async fn all_problems(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let check = sqlx::AssertSqlSafe(format!("pragma integrity_check({PROBLEMS})"));
    let mut found: Vec<String> = sqlx::query_scalar(check).fetch_all(&mut *connection).await?;
    found.retain(|line| line != "ok");
    let orphans: Vec<(String, Option<i64>, String, i64)> =
        sqlx::query_as("pragma foreign_key_check").fetch_all(connection).await?;
    let told = orphans.iter().take(PROBLEMS as usize);
    found.extend(told.map(|(table, _, parent, _)| format!("a row of {table} has no {parent}")));
    Ok(found)
}

/// A file in the making, of a name that nobody had. It goes when this does; no other is touched.
struct Part(PathBuf);

impl Part {
    fn beside(to: &Path) -> Result<Self, StoreError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = to.with_file_name(format!("{PART}{}-{count}.part", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(Self(path)),
                // Somebody else's: it stays.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(target(to, &error)),
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Under its new name it is gone from here already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Gives a whole file its name. A file that has the name meanwhile keeps it.
fn publish(part: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => is_there(to),
        _ => target(to, &error),
    };
    std::fs::File::open(part).and_then(|file| file.sync_all()).map_err(failed)?;
    match std::fs::hard_link(part, to) {
        // Not every file system has links; neither way replaces a file, renameat2(2).
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            renameat2(AT_FDCWD, part, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)
                .map_err(|error| failed(error.into()))?;
        }
        linked => linked.map_err(failed)?,
    }
    sync_folder(to).map_err(failed)
}

/// Makes names in the folder of `path` survive a power cut.
pub(in crate::store) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}

fn is_there(to: &Path) -> StoreError {
    StoreError::Target(format!("{} is there already: name another file", to.display()))
}

fn target(to: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Target(format!("{}: {error}", to.display()))
}

#[cfg(test)]
mod tests {
    use crate::store::recovery::backup::*;

    #[test]
    fn backup_does_not_replace_file_created_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("copy.db");
        let part = Part::beside(&to).expect("made");
        std::fs::write(&to, "somebody's").expect("written");
        let refused = publish(&part.0, &to);
        assert!(
            matches!(&refused, Err(StoreError::Target(why)) if why.contains("there already")),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(&to).expect("there"), "somebody's");
        let path = part.0.clone();
        drop(part);
        assert!(!path.exists());
    }
}
