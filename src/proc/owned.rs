//! Children with an owner, and the others.
//!
//! A subreaper gets the orphans of its descendants as children, prctl(2), and has to take their exit
//! status, or they stay as zombies. Waiting for *any* child would take that of children which
//! somebody else here waits for. So whoever starts a child does it through [`spawn`], which notes
//! it, and [`reap`] takes the dead that are not noted, each by its id.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::proc::{spawn_in_cgroup, stat};

/// Process id and start time of the children that were started here and not seen gone since.
static OWNED: Mutex<Vec<(i32, u64)>> = Mutex::new(Vec::new());
/// Shared by those who start children, so that one that hangs (its folder may be on a dead server)
/// holds up no other; taken alone, and only if nobody has it, by who reaps.
static STARTING: RwLock<()> = RwLock::new(());
/// Children that nobody waits for any more, and that were killed therefore.
static LEFT: Mutex<Vec<i32>> = Mutex::new(Vec::new());
static ADOPTS: AtomicBool = AtomicBool::new(false);

fn owned() -> MutexGuard<'static, Vec<(i32, u64)>> {
    // A list of numbers is whole at every moment.
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child that its [`Child`] is waited for with: [`reap`] leaves it alone. Every child of a
/// process that adopts orphans is to be started so. Blocks for as long as starting takes.
///
/// # Errors
/// It could not be started.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    // Held meanwhile, so that the child is never seen dead before it is noted. Nobody ever waits to
    // have it alone, so this does not wait either, but for a reaping that is under way.
    let _starting = starting();
    let child = command.spawn()?;
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = note(pid);
    }
    Ok(child)
}

/// The same for a child that is waited for at once, outside of any runtime.
///
/// # Errors
/// It could not be started.
pub fn spawn_plain(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    let _starting = starting();
    let child = command.spawn()?;
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = note(pid);
    }
    Ok(child)
}

/// To be held from before a child is started until it is noted.
pub(super) fn starting() -> RwLockReadGuard<'static, ()> {
    STARTING.read().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a child that was just started and not waited for yet: so it is there, dead or alive. Says when it
/// started, if that can be read.
pub(super) fn note(pid: i32) -> Option<u64> {
    let started = stat::one(pid).ok().map(|process| process.started);
    owned().push((pid, started.unwrap_or(UNKNOWN)));
    started
}

/// Nobody waits any more for this child, which was killed: its exit status is taken when it has died.
pub(super) fn reap_later(pid: i32) {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    reap_pending();
}

/// Takes the exit status of those that were left and have died since.
pub(super) fn reap_pending() {
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    left.retain(|pid| matches!(spawn_in_cgroup::taken(*pid, nix::libc::WNOHANG), Ok(None)));
}

/// The start time could not be read; the id alone must do.
const UNKNOWN: u64 = u64::MAX;

/// From now on this process is the parent of its descendants' orphans.
///
/// # Errors
/// The kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    ADOPTS.store(true, Ordering::Release);
    Ok(())
}

/// Takes the exit status of adopted orphans that have died; says of how many. Does nothing in a
/// process that adopts none. `None`: a child is being started just now, so nobody can be told from it;
/// ask again later. Reads a few files of `/proc`.
pub fn reap() -> Option<usize> {
    if ADOPTS.load(Ordering::Acquire) { reap_all() } else { Some(0) }
}

fn reap_all() -> Option<usize> {
    let _alone = match STARTING.try_write() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    reap_pending();
    let mut owned = owned();
    if has_no_child() {
        owned.clear();
        return Some(0);
    }
    owned.retain(|(pid, started)| match stat::one(*pid) {
        Ok(process) => is_ours(&process) && (process.started == *started || *started == UNKNOWN),
        // What cannot be read now, for want of descriptors, say, may well be there.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    });
    let mut reaped = 0;
    for pid in children() {
        let Ok(process) = stat::one(pid) else { continue };
        if process.is_dead && is_ours(&process) && !owned.iter().any(|(known, _)| *known == pid) {
            reaped += usize::from(waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)).is_ok());
        }
    }
    Some(reaped)
}

/// Whether it is certain that nothing lives that was ever started here or below: there is no child at all.
/// One system call.
///
/// Whoever loses its parent gets as a new one the nearest subreaper among those above, prctl(2). So the line
/// of parents of a process that descends from one started here leads, at every moment, to a living child of
/// ours. `false` in a process that does not adopt orphans: there it does not.
#[must_use]
pub fn is_alone() -> bool {
    ADOPTS.load(Ordering::Acquire) && has_no_child()
}

/// Whether all that lives below this process belongs to children that somebody here waits for: none is an
/// orphan. Reads a few files of `/proc`, and not at one moment, so another sign is needed beside it.
#[must_use]
pub fn has_no_orphan() -> bool {
    if is_alone() {
        return true;
    }
    // While one is started it is a child that is not noted yet.
    let (true, Ok(_alone)) = (ADOPTS.load(Ordering::Acquire), STARTING.try_write()) else { return false };
    let owned = owned();
    let is_owned = |pid: i32| match stat::one(pid) {
        Ok(process) => process.is_dead || owned.contains(&(pid, process.started)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // Twice: a child that dies in between may leave its own to a thread whose list was read before.
    let all_owned = || children().into_iter().all(is_owned);
    all_owned() && all_owned()
}

/// Whether a process is an orphan that came to this one: a child that nobody here has started. `None` while one is
/// being started: ask again. Never in a process that does not adopt orphans.
#[must_use]
pub fn is_adopted(process: &stat::Process) -> Option<bool> {
    if !ADOPTS.load(Ordering::Acquire) || !is_ours(process) {
        return Some(false);
    }
    let Ok(_alone) = STARTING.try_write() else { return None };
    let noted = |(pid, started): &(i32, u64)| {
        *pid == process.pid && (*started == process.started || *started == UNKNOWN)
    };
    Some(!owned().iter().any(noted))
}

/// Whether this process has no child, neither a living nor a dead one. The kernel looks at all of them at
/// one moment, wait(2).
fn has_no_child() -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT | WaitPidFlag::__WALL;
    waitid(Id::All, look) == Err(Errno::ECHILD)
}

fn is_ours(process: &stat::Process) -> bool {
    u32::try_from(process.parent) == Ok(std::process::id())
}

/// The children of this process; each is listed with one of its threads.
fn children() -> Vec<i32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // A thread that has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound && thread.path().exists() => {
                // A kernel without these lists.
                return stat::all().into_iter().filter(is_ours).map(|process| process.pid).collect();
            }
            Err(_) => {}
        }
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(flavor = "multi_thread")]
    async fn hanging_spawn_blocks_neither_spawn_nor_reaper() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        // As a start does that does not come back from the kernel.
        let hanging = std::thread::spawn(move || {
            let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
            let _ = tell.send(());
            let _ = released.recv();
        });
        told.await.expect("it hangs");
        let other = tokio::task::spawn_blocking(|| {
            let child = spawn(&mut Command::new("true"));
            (child, reap_all())
        });
        let (child, reaped) =
            tokio::time::timeout(Duration::from_secs(20), other).await.expect("held up").expect("no panic");
        assert!(child.expect("started").wait().await.expect("waited for").success());
        assert_eq!(reaped, None, "it comes back later");
        release.send(()).expect("it waits");
        hanging.join().expect("no panic");
    }
}
