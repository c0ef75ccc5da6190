//! The current trouble of the storage, if there is any. The code that meets an error records it,
//! `daemon.status` reports it, and the next successful write clears it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::database_file::sibling_path;
use crate::error::StoreError;
use base::sync::lock;

/// The newest trouble. Cheap to clone; all clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<HealthState>);

#[derive(Debug, Default)]
struct HealthState {
    troubles: Mutex<Troubles>,
    /// Number of transactions that succeeded and that failed.
    written: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Troubles {
    /// Path of a marker file. It is created when damage is found, so that the next start checks the database
    /// closely.
    suspicion: Option<PathBuf>,
    /// Error of the last write.
    write: Option<StoreError>,
    /// The first damage that was found. A later success does not clear it, because it does not repair the
    /// damage.
    damage: Option<StoreError>,
}

impl Health {
    /// Creates the health state of the database at `path`.
    pub fn from_path(path: &Path) -> Self {
        let suspicion = Some(sibling_path(path, ".suspect"));
        let troubles = Mutex::new(Troubles { suspicion, ..Troubles::default() });
        Self(Arc::new(HealthState { troubles, ..HealthState::default() }))
    }

    /// The current trouble; damage has priority over a failed write.
    pub fn newest_trouble(&self) -> Option<StoreError> {
        let troubles = lock(&self.0.troubles);
        troubles.damage.clone().or_else(|| troubles.write.clone())
    }

    /// Number of transactions that succeeded and that failed.
    pub fn writes(&self) -> (u64, u64) {
        (self.0.written.load(Ordering::Relaxed), self.0.failed.load(Ordering::Relaxed))
    }

    /// Whether the last write failed because the disk is full, read-only or failing.
    pub fn cannot_write(&self) -> bool {
        lock(&self.0.troubles).write.is_some()
    }

    /// Records the result of a write and logs a change between success and failure.
    pub fn record_write<T>(&self, result: &Result<T, StoreError>) {
        let count = if result.is_ok() { &self.0.written } else { &self.0.failed };
        count.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(_) if lock(&self.0.troubles).write.take().is_some() => {
                tracing::info!("the journal is writable again")
            }
            Err(error) if error.is_disk_error() => {
                let before = lock(&self.0.troubles).write.replace(error.clone());
                if before.is_none() {
                    tracing::error!(%error, "could not write the journal; no new work starts until it is writable");
                }
            }
            Err(error @ StoreError::Corrupt(_)) => {
                self.record_damage(error);
            }
            Ok(_) | Err(_) => {}
        }
    }

    pub fn record_read<T>(&self, result: &Result<T, StoreError>) {
        if let Err(error @ StoreError::Corrupt(_)) = result {
            self.record_damage(error);
        }
    }

    fn record_damage(&self, error: &StoreError) {
        let mut troubles = lock(&self.0.troubles);
        if troubles.damage.is_some() {
            return;
        }
        troubles.damage = Some(error.clone());
        let suspicion = troubles.suspicion.clone();
        // Callers that query the health must not wait for the disk.
        drop(troubles);
        tracing::error!(%error, "the database is damaged");
        if let Some(suspicion) = suspicion
            && let Err(error) = std::fs::write(suspicion, error.to_string())
        {
            tracing::warn!(%error, "could not record the damage for the next start");
        }
    }
}
