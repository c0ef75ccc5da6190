//! The indexes of all workspaces: opened at their first use, closed when idle; their jobs and queries.
//!
//! Nothing is open and no thread runs until a workspace has an index and something uses it. Unless a function says
//! more, its errors are an object that does not exist and an index that could not be read.

mod edits;
mod event_log;
mod jobs;
mod queries;
mod services;
mod views;
mod watched;

pub use event_log::{EventLog, LogFollower};
pub use queries::ToolSearch;
pub use services::{EmbedderChoice, Services, Settings};

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::Mutex as AsyncMutex;

use super::store::{KnowledgeStore, delete_index, index_path};
use super::tokens;
use super::traits::Embedder;
use super::types::{ErrorKind, KnowledgeError};
use base::sync::lock;
use jobs::IndexJobs;
use queries::Queries;
use watched::WatchedIndexes;

/// How long jobs may take to stop when the daemon stops. Unfinished work is repeated later.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// All indexes. Cheap to clone.
#[derive(Clone)]
pub struct Indexes(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    services: OnceLock<Arc<dyn Services>>,
    open: AsyncMutex<HashMap<PathBuf, OpenIndex>>,
    /// Whether a workspace has an index file, as of the last check.
    present: Mutex<HashMap<PathBuf, bool>>,
    embedder: Mutex<Option<LoadedEmbedder>>,
    jobs: IndexJobs,
    queries: Queries,
    watched: WatchedIndexes,
}

struct OpenIndex {
    store: KnowledgeStore,
    used_at: Instant,
}

/// The embedder of one version of the settings.
struct LoadedEmbedder {
    settings: Arc<Settings>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl std::fmt::Debug for Indexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexes").field("folder", &self.0.folder).finish_non_exhaustive()
    }
}

impl Indexes {
    /// Indexes with their files in this folder. Opens and creates nothing.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Inner {
            folder,
            services: OnceLock::new(),
            open: AsyncMutex::default(),
            present: Mutex::default(),
            embedder: Mutex::default(),
            jobs: IndexJobs::default(),
            queries: Queries::default(),
            watched: WatchedIndexes::default(),
        }))
    }

    /// Sets the services of the daemon, once.
    pub fn set_services(&self, services: Arc<dyn Services>) {
        // A second call would be an error in the start of the daemon. The first services stay.
        let _ = self.0.services.set(services);
    }

    fn services(&self) -> Result<&Arc<dyn Services>, KnowledgeError> {
        self.0.services.get().ok_or_else(|| {
            KnowledgeError::new(ErrorKind::Busy, "could not use an index: the daemon is starting; try again")
        })
    }

    /// The current settings.
    ///
    /// # Errors
    /// The daemon is starting.
    pub fn settings(&self) -> Result<Arc<Settings>, KnowledgeError> {
        Ok(self.services()?.settings())
    }

    /// Whether a workspace has an index. Opens nothing.
    #[must_use]
    pub fn has_index(&self, workspace: &Path) -> bool {
        if let Some(known) = lock(&self.0.present).get(workspace) {
            return *known;
        }
        let is_present = index_path(&self.0.folder, workspace).exists();
        lock(&self.0.present).insert(workspace.to_owned(), is_present);
        is_present
    }

    /// The open index of a workspace.
    ///
    /// # Errors
    /// The workspace has none, or its file could not be opened.
    pub(super) async fn store(&self, workspace: &Path) -> Result<KnowledgeStore, KnowledgeError> {
        if !self.has_index(workspace) {
            let text = format!(
                "could not find an index of {}: there is none; make one with knowledge.index (agentctl knowledge index)",
                workspace.display()
            );
            return Err(KnowledgeError::new(ErrorKind::NotFound, text));
        }
        self.open_or_create(workspace).await
    }

    /// The open index of a workspace, created if it is missing. A damaged one is replaced by an empty one, and a job
    /// fills it again.
    async fn open_or_create(&self, workspace: &Path) -> Result<KnowledgeStore, KnowledgeError> {
        let mut open = self.0.open.lock().await;
        let mut is_damaged = false;
        if let Some(opened) = open.get_mut(workspace) {
            if !opened.store.is_damaged() {
                opened.used_at = Instant::now();
                return Ok(opened.store.clone());
            }
            is_damaged = true;
            open.remove(workspace);
        }
        let path = index_path(&self.0.folder, workspace);
        let opening = tokio::task::spawn_blocking(move || match is_damaged {
            true => KnowledgeStore::reopen_empty(&path),
            false => KnowledgeStore::open(&path),
        });
        let store = opening.await.map_err(|_| {
            KnowledgeError::new(
                ErrorKind::Storage,
                "could not open the index: an unforeseen error; index again",
            )
        })??;
        let name = workspace.to_string_lossy().into_owned();
        store.write(move |writer| writer.set_workspace(&name)).await?;
        lock(&self.0.present).insert(workspace.to_owned(), true);
        open.insert(workspace.to_owned(), OpenIndex { store: store.clone(), used_at: Instant::now() });
        drop(open);
        self.0.watched.record_use(workspace);
        if store.was_rebuilt() {
            tracing::warn!(workspace = %workspace.display(), "a damaged index was set aside; it is built again");
            if let Err(error) = Box::pin(self.rebuild(workspace)).await {
                tracing::warn!(%error, "a damaged index could not be built again");
            }
        }
        Ok(store)
    }

    /// The embedder of the current settings. A static one is loaded at the first use.
    pub(super) async fn embedder(&self) -> Result<Option<Arc<dyn Embedder>>, KnowledgeError> {
        let settings = self.settings()?;
        if let Some(loaded) = &*lock(&self.0.embedder)
            && Arc::ptr_eq(&loaded.settings, &settings)
        {
            return Ok(loaded.embedder.clone());
        }
        let loader_settings = Arc::clone(&settings);
        let loaded = tokio::task::spawn_blocking(move || loader_settings.load_embedder()).await;
        let embedder = loaded.map_err(|_| {
            KnowledgeError::new(
                ErrorKind::Embedder,
                "could not load the embedder: an unforeseen error; check its files",
            )
        })??;
        *lock(&self.0.embedder) = Some(LoadedEmbedder { settings, embedder: embedder.clone() });
        Ok(embedder)
    }

    /// Closes indexes that were not used for a while, and frees the tokenizer.
    pub async fn close_idle(&self) {
        let Ok(settings) = self.settings() else { return };
        let now = Instant::now();
        {
            let mut open = self.0.open.lock().await;
            open.retain(|workspace, opened| {
                let is_idle = now.duration_since(opened.used_at) >= settings.idle_unload;
                !is_idle || self.0.jobs.running_in(workspace).is_some()
            });
            if open.is_empty() {
                *lock(&self.0.embedder) = None;
            }
        }
        self.0.queries.drop_old_queries(now);
        tokens::release_idle(now);
    }

    /// Number of open indexes, for tests and metrics.
    pub async fn open_count(&self) -> usize {
        self.0.open.lock().await.len()
    }

    /// Deletes the index of a workspace. Returns whether there was one.
    ///
    /// # Errors
    /// A job works on it, or the file could not be removed.
    pub async fn delete(&self, workspace: &Path) -> Result<bool, KnowledgeError> {
        self.refuse_if_busy(workspace)?;
        let had_one = self.has_index(workspace);
        let mut open = self.0.open.lock().await;
        open.remove(workspace);
        let path = index_path(&self.0.folder, workspace);
        let removed = tokio::task::spawn_blocking(move || delete_index(&path)).await;
        lock(&self.0.present).insert(workspace.to_owned(), false);
        self.0.watched.forget_index(workspace);
        removed.map_err(|_| {
            KnowledgeError::new(
                ErrorKind::Storage,
                "could not delete the index: an unforeseen error; try again",
            )
        })??;
        Ok(had_one)
    }

    /// Stops all jobs and queries and closes all indexes.
    pub async fn close(&self) {
        self.0.queries.cancel_all();
        if tokio::time::timeout(STOP_TIMEOUT, self.0.jobs.stop_all()).await.is_err() {
            tracing::warn!("index jobs did not stop in time; they go on after the next start");
        }
        self.0.open.lock().await.clear();
    }
}
