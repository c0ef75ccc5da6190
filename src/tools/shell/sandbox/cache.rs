//! Keeps parts of a sandbox for the next command, which usually needs the same: Landlock rulesets and
//! placeholders.
//!
//! **Rulesets.** Creating one takes hundreds of rules with one open object each. A ruleset is a kernel object
//! that any number of processes can use. It grants rights on objects. It equals a new one if three things hold:
//! the policy is the same, folders whose entries got rights one by one have the same entries, and objects with
//! rights as a whole still exist. All of this is checked before a reuse. A folder that changed a moment ago may
//! change again without a visible new timestamp, so a ruleset that depends on it is used once. A file system
//! that is mounted over an entry later has no rights until the ruleset is replaced, although a new ruleset would
//! grant some. This error is on the safe side.
//!
//! **Placeholders.** Creating and removing them took half of the daemon's own time per call. They are removed
//! after a second, and when the turn ends, before a program outside the sandbox can see them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use nix::sys::time::TimeSpec;
use tokio_util::task::AbortOnDropHandle;

use super::landlock::{self, NonFileAccess, PathState};
use super::layout::FsPolicy;
use super::placeholders::Placeholders;
use base::sync::lock;
use types::ids::SessionId;

/// Rulesets that are cached, least recently used removed first. Each session has its own folder for temporary
/// files.
const MAX_RULESETS: usize = 16;
/// Uses of one ruleset. Each use adds a few rules to its hundreds.
const MAX_USES: u32 = 100;
static RULESETS: Mutex<Vec<Arc<CachedRuleset>>> = Mutex::new(Vec::new());

struct CachedRuleset {
    layout: FsPolicy,
    means: NonFileAccess,
    states: Vec<PathState>,
    rules: Arc<OwnedFd>,
    /// Each use may add rights on objects of one command, and rules cannot be removed.
    uses: AtomicU32,
}

impl CachedRuleset {
    fn holds(&self, layout: &FsPolicy, means: NonFileAccess) -> bool {
        self.means == means && self.layout == *layout
    }
}

/// Returns rules that enforce a policy, reusing those of an earlier call if they are equal.
pub(super) fn rules(layout: &FsPolicy, means: NonFileAccess) -> io::Result<Arc<OwnedFd>> {
    ruleset_at(layout, means, file_system_time(&layout.temp)?)
}

/// The time of the file system's clock: the time at which a folder of the daemon is changed.
fn file_system_time(own: &Path) -> io::Result<SystemTime> {
    let folder = File::open(own)?;
    nix::sys::stat::futimens(&folder, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)?;
    folder.metadata()?.modified()
}

/// Returns equal rules of an earlier call, if there are any. Checks a few dozen folders.
fn find_cached(layout: &FsPolicy, means: NonFileAccess) -> Option<Arc<OwnedFd>> {
    let known = lock_rulesets().iter().find(|cached| cached.holds(layout, means)).cloned()?;
    let is_fresh = known.uses.fetch_add(1, Ordering::Relaxed) < MAX_USES;
    (is_fresh && known.states.iter().all(|state| state.read_again() == *state))
        .then(|| Arc::clone(&known.rules))
}

fn ruleset_at(layout: &FsPolicy, means: NonFileAccess, now: SystemTime) -> io::Result<Arc<OwnedFd>> {
    if let Some(known) = find_cached(layout, means) {
        return Ok(known);
    }
    let (made, states) = landlock::build_ruleset(layout, means)?;
    let made = Arc::new(made);
    let mut list = lock_rulesets();
    list.retain(|cached| !cached.holds(layout, means));
    if let Some(states) = states.filter(|states| states.iter().all(|state| state.is_settled(now))) {
        list.truncate(MAX_RULESETS - 1);
        let cached = CachedRuleset {
            layout: layout.clone(),
            means,
            states,
            rules: Arc::clone(&made),
            uses: AtomicU32::new(1),
        };
        list.insert(0, Arc::new(cached));
    }
    Ok(made)
}

/// No code waits while it holds this lock.
fn lock_rulesets() -> MutexGuard<'static, Vec<Arc<CachedRuleset>>> {
    lock(&RULESETS)
}

/// Time for which placeholders are kept, unless they are removed explicitly.
const PLACEHOLDER_TTL: Duration = Duration::from_secs(1);

/// Kept placeholders of sessions. Dropping the cache removes all of them.
#[derive(Debug)]
pub(crate) struct PlaceholderCache {
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
    /// Keeps placeholders for the session's next command and replaces those kept before. Call it in a runtime.
    pub(super) fn store_placeholders(&self, session: SessionId, placed: Placeholders) {
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
    pub(crate) fn end(&self, session: SessionId) {
        end(&self.left, session);
    }
}

fn end(all: &Mutex<HashMap<SessionId, CachedPlaceholders>>, session: SessionId) {
    // Do not wait for the disk while holding the lock.
    let stay = lock(all).remove(&session);
    drop(stay.map(|stay| stay.placed));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use types::ids::{Mint, Seed};

    #[test]
    fn cached_ruleset_is_reused_until_change() {
        // Do not use a folder in which other tests create folders: that would count as a change in the parent
        // of the hidden path.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home/.ssh", "home/ws", "temp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let layout = FsPolicy {
            writable: vec![root.join("home/ws")],
            hidden: vec![root.join("home/.ssh")],
            temp: root.join("temp"),
            home: root.join("home"),
            ..FsPolicy::default()
        };
        let now = fs::metadata(root.join("temp")).unwrap().modified().unwrap();
        let later = now + Duration::from_secs(60);
        let made = |layout: &FsPolicy, network, at| match ruleset_at(
            layout,
            NonFileAccess { network, apart: true },
            at,
        ) {
            Ok(rules) => Some(rules),
            Err(error) => {
                base::skip_test!("no Landlock here: {error}");
                None
            }
        };
        let Some(fresh) = made(&layout, false, now) else { return };
        let first = made(&layout, false, later).unwrap();
        assert!(!Arc::ptr_eq(&fresh, &first), "what has just changed is looked at again");
        let is_first = |rules: Option<Arc<OwnedFd>>| Arc::ptr_eq(&rules.unwrap(), &first);
        fs::write(root.join("home/ws/file"), "of no matter").unwrap();
        assert!(is_first(made(&layout, false, later)));
        assert!(!is_first(made(&layout, true, later)), "with the network");
        let bare = FsPolicy { hidden: Vec::new(), ..layout.clone() };
        assert!(!is_first(made(&bare, false, later)), "nothing hidden");
        assert!(is_first(made(&layout, false, later)));
        // Another name in the parent of a hidden path; another folder in place of the workspace.
        fs::write(root.join("home/new"), "").unwrap();
        let second = made(&layout, false, later).unwrap();
        assert!(!Arc::ptr_eq(&first, &second));
        fs::rename(root.join("temp"), root.join("gone")).unwrap();
        fs::create_dir(root.join("temp")).unwrap();
        assert!(!Arc::ptr_eq(&second, &made(&layout, false, later).unwrap()));
        assert!(super::file_system_time(&root.join("temp")).unwrap() >= now);
    }

    #[tokio::test]
    async fn placeholders_are_reused_then_removed_when_idle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        let place = || Placeholders::new(std::slice::from_ref(&path), None).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        let mut mint = Mint::new(0, Seed(1));
        let (one, other) = (mint.session(), mint.session());
        let placeholder_cache =
            PlaceholderCache { moment: Duration::from_secs(3600), ..PlaceholderCache::default() };
        placeholder_cache.store_placeholders(one, place());
        let first = inode();
        // The next command takes over the placeholder.
        let next = place();
        placeholder_cache.store_placeholders(one, next);
        assert_eq!(inode(), first);
        placeholder_cache.store_placeholders(other, place());
        placeholder_cache.end(one);
        assert_eq!(inode(), first, "another session has left it too");
        placeholder_cache.end(other);
        assert!(!path.exists());

        // A placeholder that another program removed is created again.
        placeholder_cache.store_placeholders(one, place());
        std::fs::remove_file(&path).unwrap();
        let again = place();
        assert!(path.exists());
        drop(placeholder_cache);
        assert!(path.exists(), "a command needs it");
        drop(again);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn unused_placeholders_expire_without_call() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commondir");
        let placeholder_cache =
            PlaceholderCache { moment: Duration::from_millis(1), ..PlaceholderCache::default() };
        let placed = Placeholders::new(std::slice::from_ref(&path), None).unwrap();
        placeholder_cache.store_placeholders(Mint::new(0, Seed(1)).session(), placed);
        let removal = async {
            while path.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), removal).await.expect("it goes");
    }
}
