//! The open indexes of a data folder, one per workspace. A file is opened at its first use and closed when it is idle.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::store::{KnowledgeStore, delete_index, index_path};
use super::types::{ErrorKind, KnowledgeError};

/// How long an index stays open without a use.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The indexes. Clones share them.
#[derive(Clone, Debug)]
pub struct Indexes {
    folder: PathBuf,
    open: Arc<Mutex<HashMap<PathBuf, OpenIndex>>>,
}

#[derive(Debug)]
struct OpenIndex {
    store: KnowledgeStore,
    used: Instant,
}

impl Indexes {
    /// The indexes of this folder, which is created with the first index. Opens nothing.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, open: Arc::default() }
    }

    /// The index of a workspace (its canonical path), or `None` if it has none. A file in which damage was found is set
    /// aside, and an empty index takes its place.
    ///
    /// # Errors
    /// The file could not be opened.
    pub async fn get(&self, workspace: &Path) -> Result<Option<KnowledgeStore>, KnowledgeError> {
        self.get_if(workspace, true).await
    }

    /// The index of a workspace, created if it has none.
    ///
    /// # Errors
    /// The file could not be opened or created.
    pub async fn get_or_create(&self, workspace: &Path) -> Result<KnowledgeStore, KnowledgeError> {
        self.get_if(workspace, false).await?.ok_or_else(|| {
            KnowledgeError::new(
                ErrorKind::Storage,
                "could not create the index: its file vanished; try again",
            )
        })
    }

    async fn get_if(
        &self,
        workspace: &Path,
        must_exist: bool,
    ) -> Result<Option<KnowledgeStore>, KnowledgeError> {
        // The map stays locked while a file is opened: two handles of one file would not know of each other's damage.
        let mut open = self.open.lock().await;
        let mut is_damaged = false;
        if let Some(index) = open.get_mut(workspace) {
            if !index.store.is_damaged() {
                index.used = Instant::now();
                return Ok(Some(index.store.clone()));
            }
            open.remove(workspace);
            is_damaged = true;
        }
        let path = index_path(&self.folder, workspace);
        let name = workspace.to_string_lossy().into_owned();
        let store = tokio::task::spawn_blocking(move || {
            if is_damaged {
                return KnowledgeStore::reopen_empty(&path).map(Some);
            }
            if must_exist && !path.exists() {
                return Ok(None);
            }
            KnowledgeStore::open(&path).map(Some)
        })
        .await
        .map_err(|error| {
            KnowledgeError::new(ErrorKind::Storage, format!("could not open the index: {error}; try again"))
        })??;
        let Some(store) = store else { return Ok(None) };
        store.write(move |writer| writer.set_workspace(&name)).await?;
        open.insert(workspace.to_owned(), OpenIndex { store: store.clone(), used: Instant::now() });
        Ok(Some(store))
    }

    /// Whether a workspace has an index, without opening it. One look at the file system.
    #[must_use]
    pub fn exists(&self, workspace: &Path) -> bool {
        index_path(&self.folder, workspace).exists()
    }

    /// Deletes the index of a workspace. The caller makes sure that no job runs on it.
    ///
    /// # Errors
    /// A file could not be removed.
    pub async fn clear(&self, workspace: &Path) -> Result<(), KnowledgeError> {
        let mut open = self.open.lock().await;
        open.remove(workspace);
        delete_index(&index_path(&self.folder, workspace))
    }

    /// Closes indexes that were not used for [`IDLE_TIMEOUT`], and frees the token table if it is idle. Called every minute.
    /// Returns the number of open indexes.
    pub async fn close_idle(&self, now: Instant) -> usize {
        let mut open = self.open.lock().await;
        open.retain(|_, index| now.saturating_duration_since(index.used) < IDLE_TIMEOUT);
        super::tokens::release_idle(now);
        open.len()
    }

    /// Workspaces whose index has a job that began and did not end, with the stored request of each job. For a start of the
    /// daemon. Files that cannot be read are left out: a later use reports them.
    pub async fn unfinished_jobs(&self) -> Vec<(PathBuf, String)> {
        let folder = self.folder.clone();
        tokio::task::spawn_blocking(move || super::store::unfinished_jobs(&folder)).await.unwrap_or_default()
    }
}
