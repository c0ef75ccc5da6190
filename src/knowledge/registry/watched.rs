//! Selects the workspaces to watch, and starts jobs when their files change. The daemon watches the files.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Indexes;
use crate::index::{Budget, IndexRequest, Indexer, estimate};
use crate::types::KnowledgeError;
use base::sync::lock;
use types::knowledge::IndexLevel;

/// Maximum number of watched workspaces: the most recently used ones.
const MAX_WATCHED: usize = 16;
/// Folders of one workspace that are watched.
const MAX_FOLDERS: usize = 8_192;

/// The indexes that were used since the start, and those whose files are watched.
#[derive(Default)]
pub(super) struct WatchedIndexes {
    /// Workspaces in the order of their use; the most recently used one is last.
    used: Mutex<Vec<PathBuf>>,
    watched: Mutex<HashSet<PathBuf>>,
    /// Rises when the list may have changed.
    changed: watch::Sender<u64>,
}

impl WatchedIndexes {
    /// Records that an index was opened.
    pub fn record_use(&self, workspace: &Path) {
        {
            let mut used = lock(&self.used);
            used.retain(|other| other != workspace);
            used.push(workspace.to_owned());
            if used.len() > MAX_WATCHED {
                used.remove(0);
            }
        }
        self.changed.send_modify(|count| *count += 1);
    }

    /// Removes an index that is deleted.
    pub fn forget_index(&self, workspace: &Path) {
        lock(&self.used).retain(|other| other != workspace);
        self.changed.send_modify(|count| *count += 1);
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedFolders {
    pub folders: HashSet<PathBuf>,
    /// Whether there are more folders than can be watched.
    pub is_cut: bool,
}

impl Indexes {
    /// The workspaces whose files the daemon must watch: none unless the settings enable it.
    #[must_use]
    pub fn watch_list(&self) -> Vec<PathBuf> {
        let is_on = self.settings().is_ok_and(|settings| settings.watch);
        if is_on { lock(&self.0.watched.used).clone() } else { Vec::new() }
    }

    /// Reports that [`Indexes::watch_list`] may have changed.
    #[must_use]
    pub fn watch_list_changes(&self) -> watch::Receiver<u64> {
        self.0.watched.changed.subscribe()
    }

    /// Records that the settings were reloaded.
    pub fn settings_changed(&self) {
        self.0.watched.changed.send_modify(|count| *count += 1);
    }

    /// Sets the workspaces that are watched now.
    pub fn set_watched(&self, watched: HashSet<PathBuf>) {
        *lock(&self.0.watched.watched) = watched;
    }

    /// Whether the files of a workspace are watched now.
    #[must_use]
    pub fn is_watched(&self, workspace: &Path) -> bool {
        lock(&self.0.watched.watched).contains(workspace)
    }

    /// The folders whose changes may concern an index: those with files for it, and those above them. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// The files could not be listed.
    pub fn folders_to_watch(&self, workspace: &Path) -> Result<WatchedFolders, KnowledgeError> {
        let mut found = WatchedFolders::default();
        found.folders.insert(workspace.to_owned());
        // A job writes to the daemon's own folder, and must not start the next one.
        let own = self.0.folder.parent().unwrap_or(&self.0.folder);
        self.services()?.files(workspace).walk(&[], &|| false, &mut |entry| {
            let file = workspace.join(entry.path);
            for folder in file.ancestors().skip(1).take_while(|folder| *folder != workspace) {
                if folder.starts_with(own) || found.folders.contains(folder) {
                    break;
                }
                if found.folders.len() >= MAX_FOLDERS {
                    found.is_cut = true;
                    return std::ops::ControlFlow::Break(());
                }
                found.folders.insert(folder.to_owned());
            }
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Starts a job if files changed since the last one, and returns its id. It calls no model.
    ///
    /// # Errors
    /// A job works on the index, or it could not be read.
    pub async fn update(&self, workspace: &Path) -> Result<Option<String>, KnowledgeError> {
        let (request, indexer) = self.update_request(workspace).await?;
        let cancel = CancellationToken::new();
        let estimate = estimate(&request, &indexer, &cancel).await?;
        if estimate.files == 0 && estimate.removed == 0 {
            return Ok(None);
        }
        let max_jobs = self.settings()?.max_jobs;
        self.start(workspace, request, indexer, cancel, max_jobs).map(Some)
    }

    /// Starts a job that brings the index up to date if at most `max_jobs` run then, and returns its id. It calls no
    /// model, and the caller does not wait for a scan.
    ///
    /// # Errors
    /// A job works on the index, or it could not be read.
    pub(super) async fn start_update(
        &self,
        workspace: &Path,
        max_jobs: usize,
    ) -> Result<String, KnowledgeError> {
        let (request, indexer) = self.update_request(workspace).await?;
        self.start(workspace, request, indexer, CancellationToken::new(), max_jobs)
    }

    async fn update_request(&self, workspace: &Path) -> Result<(IndexRequest, Indexer), KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let settings = self.settings()?;
        let store = self.store(workspace).await?;
        let level = store.read_rows(|reader| reader.level()).await?.unwrap_or(settings.level);
        let request = IndexRequest {
            id: self.services()?.new_id("job"),
            paths: Vec::new(),
            // Only users start jobs that call a model.
            level: level.min(IndexLevel::Structure),
            budget: Budget::default(),
        };
        Ok((request, self.indexer(workspace, store).await?))
    }
}
