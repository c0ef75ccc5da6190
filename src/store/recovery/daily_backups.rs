//! Daily backups: one copy per day in `DATA/backups/agentd-YYYYMMDD.db`. Only the newest ones are kept.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::StoreError;
use crate::handle::StoreReader;
use crate::recovery::backup::PART_PREFIX;
use types::time::Clock;

/// Delay before the first copy, so that it does not slow down the start.
const FIRST_DELAY: Duration = Duration::from_secs(5);
/// Time between two checks of the date.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);

impl StoreReader {
    /// Makes one copy per day in `folder` and keeps the newest `keep`. Runs until it is dropped. A drop may
    /// leave a file with the suffix `.part`; the next run removes it.
    pub async fn keep_backups(self, folder: PathBuf, keep: usize, clock: std::sync::Arc<dyn Clock>) {
        tokio::time::sleep(FIRST_DELAY).await;
        if self.after_crash {
            // If the end of the log was lost, the database may mix pages of two moments. Only a check of all
            // pages finds this. The check takes too long for the start, so it runs in the background.
            match self.problems().await {
                Ok(found) if found.is_empty() => tracing::debug!("the database is intact"),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "could not check the database"),
            }
        }
        loop {
            match self.backup_of_the_day(&folder, keep, &*clock).await {
                Ok(Some(made)) => tracing::info!(backup = %made.display(), "copied the database"),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the daily backup failed; trying again in an hour"),
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// Makes today's copy if it is missing, and removes the oldest ones beyond `keep`.
    pub(crate) async fn backup_of_the_day(
        &self,
        folder: &Path,
        keep: usize,
        clock: &dyn Clock,
    ) -> Result<Option<PathBuf>, StoreError> {
        let today = folder.join(format!("agentd-{}.db", clock.now().date().replace('-', "")));
        if keep == 0 || today.exists() {
            return Ok(None);
        }
        // Copies of a damaged database must not replace the good ones.
        if let Some(error @ StoreError::Corrupt(_)) = self.health.newest_trouble() {
            return Err(error);
        }
        let failed = |error: std::io::Error| StoreError::Target(format!("{}: {error}", folder.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // The folder belongs to this daemon, so no other process is writing a copy there.
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

/// The daily backups in a folder, newest first. Other files are ignored.
#[must_use]
pub fn backups(folder: &Path) -> Vec<PathBuf> {
    let mut found = files_where(folder, |name| {
        let day = name.strip_prefix("agentd-").and_then(|name| name.strip_suffix(".db"));
        day.is_some_and(|day| day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()))
    });
    found.sort();
    found.reverse();
    found
}

/// Incomplete copies of earlier runs.
fn unfinished(folder: &Path) -> Vec<PathBuf> {
    files_where(folder, |name| name.starts_with(PART_PREFIX) && name.ends_with(".part"))
}

fn files_where(folder: &Path, is_one: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter(|entry| entry.file_name().to_str().is_some_and(&is_one));
    found.map(|entry| entry.path()).collect()
}
