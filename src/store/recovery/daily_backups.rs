//! Rolling backups (S10): one copy a day in `DATA/backups/agentd-YYYYMMDD.db`, the newest few kept.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::store::error::StoreError;
use crate::store::open::Store;
use crate::store::recovery::backup::PART;
use crate::types::time::Clock;

/// Before the first copy: a start has better things to do.
const FIRST: Duration = Duration::from_secs(5);
/// Between two looks at the date.
const LOOK: Duration = Duration::from_secs(3_600);

impl Store {
    /// Keeps a copy of each day in `folder`, the newest `keep` of them. Runs until it is dropped;
    /// what it was about to write is then left as a file that ends in `.part`, and the next one
    /// takes it away.
    pub async fn keep_backups(self, folder: PathBuf, keep: usize, clock: std::sync::Arc<dyn Clock>) {
        tokio::time::sleep(FIRST).await;
        if self.after_crash {
            // A log that lost its end may leave pages of two times beside each other, and nothing tells
            // but a look at all of them. It takes too long for a start, so it is done beside the work.
            match self.problems().await {
                Ok(found) if found.is_empty() => tracing::debug!("the database is sound"),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the database could not be checked"),
            }
        }
        loop {
            match self.backup_of_the_day(&folder, keep, &*clock).await {
                Ok(Some(made)) => tracing::info!(backup = %made.display(), "the database was copied"),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the backup of the day failed; tried again in an hour"),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Makes the copy of today, if there is none, and removes the oldest beyond `keep`.
    pub(in crate::store) async fn backup_of_the_day(
        &self,
        folder: &Path,
        keep: usize,
        clock: &dyn Clock,
    ) -> Result<Option<PathBuf>, StoreError> {
        let today = folder.join(format!("agentd-{}.db", clock.now().date().replace('-', "")));
        if keep == 0 || today.exists() {
            return Ok(None);
        }
        // Copies of a damaged database must not push out the good ones.
        if let Some(error @ StoreError::Corrupt(_)) = self.health.trouble() {
            return Err(error);
        }
        let failed = |error: std::io::Error| StoreError::Target(format!("{}: {error}", folder.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // The folder is this daemon's alone: no other is making a copy in it.
        for left in unfinished(folder) {
            let _ = std::fs::remove_file(left);
        }
        self.backup(&today).await?;
        for old in backups(folder).into_iter().skip(keep) {
            std::fs::remove_file(old).map_err(failed)?;
        }
        Ok(Some(today))
    }
}

/// The rolling backups of a folder, newest first. Other files are none of it.
#[must_use]
pub fn backups(folder: &Path) -> Vec<PathBuf> {
    let mut found = named(folder, |name| {
        let day = name.strip_prefix("agentd-").and_then(|name| name.strip_suffix(".db"));
        day.is_some_and(|day| day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()))
    });
    found.sort();
    found.reverse();
    found
}

/// Copies that did not come to their end.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    named(folder, |name| name.starts_with(PART) && name.ends_with(".part"))
}

fn named(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_one));
    found.map(|entry| entry.path()).collect()
}
