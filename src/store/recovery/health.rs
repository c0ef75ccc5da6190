//! What is wrong with the storage just now, if anything: set by whoever meets it, told by
//! `daemon.status`, gone with the next write that comes through.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::error::StoreError;
use crate::store::recovery::recover_damaged::sibling_path;

/// The newest trouble. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Health(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    troubles: Mutex<Troubles>,
    /// Transactions that were written, and that were not.
    written: AtomicU64,
    failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Troubles {
    /// Made when damage is met, so that the next start looks closer.
    suspicion: Option<PathBuf>,
    /// Of the last write.
    write: Option<StoreError>,
    /// Damage does not go away by itself: the first that was met.
    damage: Option<StoreError>,
}

impl Health {
    /// Of the database at `path`.
    pub fn of(path: &Path) -> Self {
        let suspicion = Some(sibling_path(path, ".suspect"));
        let troubles = Mutex::new(Troubles { suspicion, ..Troubles::default() });
        Self(Arc::new(Shared { troubles, ..Shared::default() }))
    }

    /// The trouble, if there is one; damage first.
    pub fn trouble(&self) -> Option<StoreError> {
        let troubles = self.lock();
        troubles.damage.clone().or_else(|| troubles.write.clone())
    }

    /// Transactions that were written, and that failed.
    pub fn writes(&self) -> (u64, u64) {
        (self.0.written.load(Ordering::Relaxed), self.0.failed.load(Ordering::Relaxed))
    }

    /// Whether the last write failed for want of a place to write to.
    pub fn cannot_write(&self) -> bool {
        self.lock().write.is_some()
    }

    /// Takes in how a write ended; says so in the log when that changes.
    pub fn wrote<T>(&self, result: &Result<T, StoreError>) {
        let count = if result.is_ok() { &self.0.written } else { &self.0.failed };
        count.fetch_add(1, Ordering::Relaxed);
        match result {
            Ok(_) if self.lock().write.take().is_some() => tracing::info!("the journal can be written again"),
            Err(error) if error.is_of_the_disk() => {
                let before = self.lock().write.replace(error.clone());
                if before.is_none() {
                    tracing::error!(%error, "the journal cannot be written: nothing new starts until it can");
                }
            }
            Err(error @ StoreError::Corrupt(_)) => {
                self.damaged(error);
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Takes in how a read ended.
    pub fn read<T>(&self, result: &Result<T, StoreError>) {
        if let Err(error @ StoreError::Corrupt(_)) = result {
            self.damaged(error);
        }
    }

    fn damaged(&self, error: &StoreError) {
        let mut troubles = self.lock();
        if troubles.damage.is_some() {
            return;
        }
        troubles.damage = Some(error.clone());
        let suspicion = troubles.suspicion.clone();
        // Whoever asks how things are must not wait for a disk.
        drop(troubles);
        tracing::error!(%error, "the database is damaged");
        if let Some(suspicion) = suspicion
            && let Err(error) = std::fs::write(suspicion, error.to_string())
        {
            tracing::warn!(%error, "the next start cannot be told of the damage");
        }
    }

    /// Nothing can be half done under this lock: a panic of another holder does not matter.
    fn lock(&self) -> std::sync::MutexGuard<'_, Troubles> {
        self.0.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
