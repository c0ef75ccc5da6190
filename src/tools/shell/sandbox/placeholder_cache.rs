//! Keeps placeholders for a moment after the command that needed them. The next command usually needs the same,
//! and creating and removing them took half of the daemon's own time per call. They are removed after a second,
//! and when the turn ends, before a program outside the sandbox can see them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::tools::shell::sandbox::placeholders::Placeholders;
use crate::types::ids::SessionId;

/// Lifetime without an explicit removal.
const PLACEHOLDER_TTL: Duration = Duration::from_secs(1);

/// Kept placeholders of sessions. Dropping it removes all of them.
#[derive(Debug)]
pub(in crate::tools) struct PlaceholderCache {
    left: Arc<Mutex<HashMap<SessionId, CachedPlaceholders>>>,
    moment: Duration,
}

impl Default for PlaceholderCache {
    fn default() -> Self {
        Self { left: Arc::default(), moment: PLACEHOLDER_TTL }
    }
}

#[derive(Debug)]
struct CachedPlaceholders {
    placed: Placeholders,
    _timer: AbortOnDropHandle<()>,
}

impl PlaceholderCache {
    /// Keeps them for the session's next command and replaces those kept before. Call it in a runtime.
    pub(super) fn keep(&self, session: SessionId, placed: Placeholders) {
        if placed.is_empty() {
            return;
        }
        let (all, moment) = (Arc::downgrade(&self.left), self.moment);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(moment).await;
            if let Some(all) = all.upgrade() {
                end(&all, session);
            }
        });
        let stay = CachedPlaceholders { placed, _timer: AbortOnDropHandle::new(timer) };
        let before = lock(&self.left).insert(session, stay);
        drop(before);
    }

    /// Removes the session's kept placeholders, except those that another command needs.
    pub(in crate::tools) fn end(&self, session: SessionId) {
        end(&self.left, session);
    }
}

fn end(all: &Mutex<HashMap<SessionId, CachedPlaceholders>>, session: SessionId) {
    // Do not wait for the disk while holding the lock.
    let stay = lock(all).remove(&session);
    drop(stay.map(|stay| stay.placed));
}

fn lock(
    all: &Mutex<HashMap<SessionId, CachedPlaceholders>>,
) -> MutexGuard<'_, HashMap<SessionId, CachedPlaceholders>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use crate::tools::shell::sandbox::placeholder_cache::*;
    use crate::types::ids::{Mint, Seed};

    #[tokio::test]
    async fn placeholders_are_reused_then_removed_when_idle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        let place = || Placeholders::new(std::slice::from_ref(&path), None).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        let mut mint = Mint::new(0, Seed(1));
        let (one, other) = (mint.session(), mint.session());
        let lingering = PlaceholderCache { moment: Duration::from_secs(3600), ..PlaceholderCache::default() };
        lingering.keep(one, place());
        let first = inode();
        // The next command takes over the placeholder.
        let next = place();
        lingering.keep(one, next);
        assert_eq!(inode(), first);
        lingering.keep(other, place());
        lingering.end(one);
        assert_eq!(inode(), first, "another session has left it too");
        lingering.end(other);
        assert!(!path.exists());

        // A placeholder that another program removed is created again.
        lingering.keep(one, place());
        std::fs::remove_file(&path).unwrap();
        let again = place();
        assert!(path.exists());
        drop(lingering);
        assert!(path.exists(), "a command needs it");
        drop(again);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn unused_placeholders_expire_without_call() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        let lingering = PlaceholderCache { moment: Duration::from_millis(1), ..PlaceholderCache::default() };
        let placed = Placeholders::new(std::slice::from_ref(&path), None).unwrap();
        lingering.keep(Mint::new(0, Seed(1)).session(), placed);
        let gone = async {
            while path.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it goes");
    }
}
