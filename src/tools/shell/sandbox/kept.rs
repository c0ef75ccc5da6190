//! Cache of Landlock rulesets. Creating one takes hundreds of rules with one open object each, and calls rarely
//! need a different one.
//!
//! A ruleset is a kernel object that any number of processes can use. It grants rights on objects. It equals a
//! new one if three things hold: the policy is the same, folders whose entries got rights one by one have the
//! same entries, and objects with rights as a whole still exist. All of this is checked before a reuse. A
//! folder that changed a moment ago may change again without a visible new timestamp, so a ruleset that depends
//! on it is used once.
//!
//! A file system that is mounted over an entry later has no rights until the ruleset is replaced, although a
//! new ruleset would grant some. This error is on the safe side.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use nix::sys::time::TimeSpec;

use super::layout::FsPolicy;
use crate::tools::shell::sandbox::landlock;
use crate::tools::shell::sandbox::landlock::Means;

/// Rulesets that are kept, least recently used removed first. Each session has its own folder for temporary
/// files.
const MOST: usize = 16;
/// Uses of one ruleset. Each use adds a few rules to its hundreds.
const MOST_USES: u32 = 100;
/// Longer than the clock step of every common file system (FAT: two seconds).
const SETTLED: Duration = Duration::from_secs(3);
/// The same for a file system that stores fractions of a millisecond. Its timestamps come from the kernel's
/// clock, which advances every few milliseconds.
const SETTLED_FINE: Duration = Duration::from_millis(100);

static KEPT: Mutex<Vec<Arc<Kept>>> = Mutex::new(Vec::new());

struct Kept {
    layout: FsPolicy,
    means: Means,
    looks: Vec<Look>,
    rules: Arc<OwnedFd>,
    /// Each use may add rights on objects of one command, and rules cannot be removed.
    uses: AtomicU32,
}

impl Kept {
    fn holds(&self, layout: &FsPolicy, means: Means) -> bool {
        self.means == means && self.layout == *layout
    }
}

/// State of a path on which a ruleset depends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    path: PathBuf,
    /// Device and inode of the object; `None` if it does not exist.
    object: Option<(u64, u64)>,
    /// Change times of a folder whose entries were read, in seconds and nanoseconds.
    changed: Option<[(i64, i64); 2]>,
}

impl Look {
    /// State of an object that has rights with everything below it.
    pub(super) fn at(path: &Path) -> Self {
        let object = std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        Self { path: path.to_owned(), object, changed: None }
    }

    /// State of a folder whose entries have rights one by one. Create it before reading the entries.
    pub(super) fn into(path: &Path) -> Self {
        let meta = std::fs::symlink_metadata(path).ok();
        let object = meta.as_ref().map(|meta| (meta.dev(), meta.ino()));
        Self { path: path.to_owned(), object, changed: meta.as_ref().map(times) }
    }

    fn again(&self) -> Self {
        if self.changed.is_some() { Self::into(&self.path) } else { Self::at(&self.path) }
    }

    /// Whether a later change will be visible in the timestamps.
    fn is_settled(&self, now: SystemTime) -> bool {
        let Some([written, changed]) = self.changed else { return true };
        // Every user may set the first time; the second shows the precision of the clock.
        let is_fine = changed.1 % 1_000_000 != 0;
        let (seconds, nanos) = written.max(changed);
        let at = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
        let settled = at.and_then(|(seconds, nanos)| {
            let at = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))?;
            at.checked_add(if is_fine { SETTLED_FINE } else { SETTLED })
        });
        settled.is_some_and(|settled| settled < now)
    }
}

fn times(meta: &Metadata) -> [(i64, i64); 2] {
    [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())]
}

/// Returns rules that enforce a policy, reusing those of an earlier call if they are equal.
pub(super) fn rules(layout: &FsPolicy, means: Means) -> io::Result<Arc<OwnedFd>> {
    rules_at(layout, means, now(&layout.temp)?)
}

/// The time of the file system's clock: the time at which a folder of the daemon is changed.
fn now(own: &Path) -> io::Result<SystemTime> {
    let folder = File::open(own)?;
    nix::sys::stat::futimens(&folder, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)?;
    folder.metadata()?.modified()
}

/// Returns equal rules of an earlier call, if there are any. Checks a few dozen folders.
pub(super) fn known(layout: &FsPolicy, means: Means) -> Option<Arc<OwnedFd>> {
    let known = list().iter().find(|kept| kept.holds(layout, means)).cloned()?;
    let is_fresh = known.uses.fetch_add(1, Ordering::Relaxed) < MOST_USES;
    (is_fresh && known.looks.iter().all(|look| look.again() == *look)).then(|| Arc::clone(&known.rules))
}

fn rules_at(layout: &FsPolicy, means: Means, now: SystemTime) -> io::Result<Arc<OwnedFd>> {
    if let Some(known) = known(layout, means) {
        return Ok(known);
    }
    let (made, looks) = landlock::of(layout, means)?;
    let made = Arc::new(made);
    let mut list = list();
    list.retain(|kept| !kept.holds(layout, means));
    if let Some(looks) = looks.filter(|looks| looks.iter().all(|look| look.is_settled(now))) {
        list.truncate(MOST - 1);
        let kept =
            Kept { layout: layout.clone(), means, looks, rules: Arc::clone(&made), uses: AtomicU32::new(1) };
        list.insert(0, Arc::new(kept));
    }
    Ok(made)
}

/// No code waits while it holds this lock.
fn list() -> std::sync::MutexGuard<'static, Vec<Arc<Kept>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn cache_key_changes_only_with_access_rights() {
        let dir = tempfile::tempdir().unwrap();
        let (ws, listed) = (dir.path().join("ws"), dir.path().join("listed"));
        for folder in [&ws, &listed] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(listed.join("one"), "").unwrap();
        let (at, into) = (Look::at(&ws), Look::into(&listed));
        fs::write(ws.join("new"), "").unwrap();
        fs::write(listed.join("one"), "other content").unwrap();
        assert_eq!((at.again(), into.again()), (at.clone(), into.clone()));

        // The same name, but another object.
        fs::rename(&ws, dir.path().join("old")).unwrap();
        assert_ne!(at.again(), at, "gone");
        fs::create_dir(&ws).unwrap();
        assert_ne!(at.again(), at, "another");
        // The file system's clock may not advance for a few milliseconds: see `is_settled`.
        let old = fs::File::open(&listed).unwrap();
        old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let into = Look::into(&listed);
        fs::rename(listed.join("one"), listed.join("two")).unwrap();
        assert_ne!(into.again(), into);
    }

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
        let made = |layout: &FsPolicy, network, at| match rules_at(layout, Means { network, apart: true }, at)
        {
            Ok(rules) => Some(rules),
            Err(error) => {
                eprintln!("SKIPPED: no Landlock here: {error}");
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
    }

    #[test]
    fn recently_changed_folder_is_not_cached() {
        let dir = tempfile::tempdir().unwrap();
        let look = Look::into(dir.path());
        let changed = fs::metadata(dir.path()).unwrap().modified().unwrap();
        assert!(!look.is_settled(changed + Duration::from_millis(50)));
        assert!(look.is_settled(changed + Duration::from_secs(10)));
        // Times of a clock with whole seconds and of one with fractions; a time that a user has set.
        let (whole, fine) = ((1_000, 0), (1_000, 123_456_789));
        let after = |ms: u64| SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_000 + ms);
        for (changed, ms, expected) in [
            ([whole, whole], 1_000, false),
            ([whole, whole], 2_900, false),
            ([whole, whole], 3_100, true),
            ([fine, fine], 200, false),
            ([fine, fine], 300, true),
            ([fine, whole], 1_000, false),
            ([whole, fine], 300, true),
            ([(2_000, 1), fine], 300, false),
            ([(i64::MAX, 0), fine], 300, false),
        ] {
            let look = Look { changed: Some(changed), ..look.clone() };
            assert_eq!(look.is_settled(after(ms)), expected, "{changed:?}, {ms} ms");
        }
        assert!(!look.is_settled(SystemTime::UNIX_EPOCH));
        assert!(Look::at(dir.path()).is_settled(changed), "only which object it is counts");
        assert!(now(dir.path()).unwrap() >= changed);
    }
}
