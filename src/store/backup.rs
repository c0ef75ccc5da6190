//! Copies of the whole database while it is in use, and the look whether it is sound.
//!
//! A copy is made by a connection of its own that only reads: writers go on beside it. It is written
//! under another name, checked, synced, and only then gets the name that was asked for, so that
//! whatever has that name is whole.

use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions as _, Connection as _};

use super::error::StoreError;
use super::open::Store;
use super::site::{make_private, open_to_read};

/// Problems that a check names at most.
const PROBLEMS: u32 = 20;

impl Store {
    /// Copies the database as it is now into the new file `to`, for its owner alone. Returns its
    /// bytes. One copy or check runs at a time. If the call is dropped, a file whose name ends in
    /// `.part` may be left.
    ///
    /// # Errors
    /// `Target` if there is such a file already or it cannot be written; else the database could not
    /// be read. There is no file `to` then, unless it was there before.
    pub async fn backup(&self, to: &Path) -> Result<u64, StoreError> {
        let _turn = self.chores.acquire().await.map_err(|_| StoreError::Closed)?;
        if to.symlink_metadata().is_ok() {
            return Err(StoreError::Target(format!("{} is there already: name another file", to.display())));
        }
        let mut part = to.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let done = self.copy(&part).await.and_then(|()| publish(&part, to));
        let _ = std::fs::remove_file(&part);
        let read = self.noted(done);
        read.and_then(|()| {
            let meta = std::fs::metadata(to).map_err(|error| target(to, &error))?;
            Ok(meta.len())
        })
    }

    async fn copy(&self, part: &Path) -> Result<(), StoreError> {
        // Of a copy that did not come to its end.
        let _ = std::fs::remove_file(part);
        make_private(part).map_err(|error| match error {
            StoreError::Unwritable(why) => StoreError::Target(why),
            other => other,
        })?;
        let mut from = self.site.reading().pragma("query_only", "0").connect().await?;
        let name = part.to_string_lossy().into_owned();
        let copied = sqlx::query("vacuum into ?").bind(name).execute(&mut from).await;
        let _ = from.close().await;
        copied.map_err(|error| match StoreError::from(error) {
            // What only reads the database writes nowhere else.
            StoreError::Unwritable(why) => StoreError::Target(format!("{}: {why}", part.display())),
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
        let _turn = self.chores.acquire().await.map_err(|_| StoreError::Closed)?;
        let found = problems(&self.site.path).await;
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

/// Gives a whole file its name. A file that has the name meanwhile keeps it.
fn publish(part: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| target(to, &error);
    std::fs::File::open(part).and_then(|file| file.sync_all()).map_err(failed)?;
    std::fs::hard_link(part, to).map_err(failed)?;
    sync_folder(to).map_err(failed)
}

/// Makes names in the folder of `path` survive a power cut.
pub(super) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(folder)?.sync_all()
}

fn target(to: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Target(format!("{}: {error}", to.display()))
}
