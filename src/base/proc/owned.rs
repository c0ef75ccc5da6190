//! Keeps children that the daemon started apart from adopted orphans.
//!
//! A subreaper gets the orphans of its descendants as children, prctl(2). It must collect their exit status,
//! because otherwise they stay as zombies. Waiting for *any* child would also collect children that other
//! code waits for. All code therefore starts children through [`spawn`], which records them. [`reap`]
//! collects each ended child that is not recorded, by its id.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, TryLockError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::proc::stat;
use crate::sync::{lock, read};

/// Process id and start time of children that were started here and are not known to be gone.
static OWNED_CHILDREN: Mutex<Vec<(i32, u64)>> = Mutex::new(Vec::new());
/// Shared while a child is started, so that a hanging start blocks no other start. A start hangs, for
/// example, if its folder is on a dead server. [`reap`] acquires the lock exclusively, and only if it is
/// free.
static STARTING: RwLock<()> = RwLock::new(());
/// Killed children for which no code waits any more.
static UNREAPED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
static IS_ADOPTING: AtomicBool = AtomicBool::new(false);

fn lock_owned() -> MutexGuard<'static, Vec<(i32, u64)>> {
    // A panic cannot leave the list inconsistent.
    lock(&OWNED_CHILDREN)
}

/// Starts a child that the caller awaits through its [`Child`]; [`reap`] ignores it. A process that adopts
/// orphans must start all children this way. Blocks until the start is complete.
///
/// # Errors
/// The child could not be started.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    // Hold the lock until the child is recorded, so that `reap` never sees an ended child that is not
    // recorded. No code waits for exclusive access, so this waits only for a `reap` in progress.
    let _starting = lock_for_start();
    let child = command.spawn()?;
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        let _ = record_child(pid);
    }
    Ok(child)
}

/// Same as [`spawn`], for a child that the caller awaits at once, outside a runtime.
///
/// # Errors
/// The child could not be started.
pub fn spawn_plain(command: &mut std::process::Command) -> io::Result<std::process::Child> {
    let _starting = lock_for_start();
    let child = command.spawn()?;
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = record_child(pid);
    }
    Ok(child)
}

/// Shared access to `STARTING`. Hold it from before the start of a child until the child is recorded.
pub(super) fn lock_for_start() -> RwLockReadGuard<'static, ()> {
    read(&STARTING)
}

/// Records a child that was just started and not awaited yet, so that its process id is in use. Returns its
/// start time, if that can be read.
pub(super) fn record_child(pid: i32) -> Option<u64> {
    let started = stat::read_process(pid).ok().map(|process| process.started);
    lock_owned().push((pid, started.unwrap_or(UNKNOWN_START)));
    started
}

/// Registers a killed child for which no code waits any more. Its exit status is collected once it has ended.
pub(super) fn reap_later(pid: i32) {
    lock(&UNREAPED).push(pid);
    reap_pending();
}

/// Collects the exit status of registered children that have ended.
pub(super) fn reap_pending() {
    let mut left = lock(&UNREAPED);
    left.retain(|pid| matches!(take_exit_status(*pid, libc::WNOHANG), Ok(None)));
}

/// Collects the exit status of a child if it has ended. Calls waitpid(2) directly, because the library's
/// wrapper fails for signals without a name.
pub(super) fn take_exit_status(pid: i32, options: libc::c_int) -> io::Result<Option<ExitStatus>> {
    let mut status = 0;
    loop {
        #[expect(unsafe_code, reason = "the library's wrapper fails for signals without a name")]
        // SAFETY: the kernel writes one number, and `status` lives until the call returns.
        let result = unsafe { libc::waitpid(pid, &raw mut status, options) };
        match result {
            0 => return Ok(None),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            _ => return Ok(Some(ExitStatus::from_raw(status))),
        }
    }
}

/// Marks a start time that could not be read. Then only the id identifies the process.
const UNKNOWN_START: u64 = u64::MAX;

/// Makes this process the parent of its descendants' orphans.
///
/// # Errors
/// The kernel refuses.
pub fn adopt_orphans() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true)?;
    IS_ADOPTING.store(true, Ordering::Release);
    Ok(())
}

/// Collects the exit status of adopted orphans that have ended, and returns their number. Does nothing in a
/// process that adopts none. Returns `None` while a child is being started, because a new child cannot be
/// distinguished from an orphan; try again later. Reads a few files of `/proc`.
pub fn reap() -> Option<usize> {
    if IS_ADOPTING.load(Ordering::Acquire) { reap_all() } else { Some(0) }
}

fn reap_all() -> Option<usize> {
    let _alone = match STARTING.try_write() {
        Ok(alone) => alone,
        Err(TryLockError::Poisoned(alone)) => alone.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    reap_pending();
    let mut owned = lock_owned();
    if has_no_child() {
        owned.clear();
        return Some(0);
    }
    owned.retain(|(pid, started)| match stat::read_process(*pid) {
        Ok(process) => is_ours(&process) && (process.started == *started || *started == UNKNOWN_START),
        // A file that cannot be read, for example because no descriptor is free, may belong to a living
        // process.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    });
    let mut reaped = 0;
    for pid in child_pids() {
        let Ok(process) = stat::read_process(pid) else { continue };
        if process.is_dead && is_ours(&process) && !owned.iter().any(|(known, _)| *known == pid) {
            reaped += usize::from(waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)).is_ok());
        }
    }
    Some(reaped)
}

/// Whether this process has no child, so that certainly no process runs that it or a descendant ever started.
/// One system call.
///
/// A process that loses its parent gets the nearest subreaper among its ancestors as its new parent,
/// prctl(2). The ancestors of a process that descends from a child of this one therefore always include a
/// living child of this process. A process that does not adopt orphans always gets `false`, because this does
/// not hold for it.
#[must_use]
pub fn is_alone() -> bool {
    IS_ADOPTING.load(Ordering::Acquire) && has_no_child()
}

/// Whether all processes below this one belong to children that the daemon waits for, and none is an orphan.
/// Reads a few files of `/proc` at different moments, so the caller must not rely on this result alone.
#[must_use]
pub fn has_no_orphan() -> bool {
    if is_alone() {
        return true;
    }
    // A child that is being started is not recorded yet.
    let (true, Ok(_alone)) = (IS_ADOPTING.load(Ordering::Acquire), STARTING.try_write()) else {
        return false;
    };
    let owned = lock_owned();
    let is_owned = |pid: i32| match stat::read_process(pid) {
        Ok(process) => process.is_dead || owned.contains(&(pid, process.started)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    // Check twice: a child that ends between the reads may leave its own children to a thread whose list was
    // read before.
    let all_owned = || child_pids().into_iter().all(is_owned);
    all_owned() && all_owned()
}

/// Whether a process is an adopted orphan: a child that this process did not start. `None` while a child is
/// being started; try again. Always `false` in a process that does not adopt orphans.
#[must_use]
pub fn is_adopted(process: &stat::Process) -> Option<bool> {
    if !IS_ADOPTING.load(Ordering::Acquire) || !is_ours(process) {
        return Some(false);
    }
    let Ok(_alone) = STARTING.try_write() else { return None };
    let noted = |(pid, started): &(i32, u64)| {
        *pid == process.pid && (*started == process.started || *started == UNKNOWN_START)
    };
    Some(!lock_owned().iter().any(noted))
}

/// Whether this process has no child, neither living nor ended. The kernel checks all children at one moment,
/// wait(2).
fn has_no_child() -> bool {
    let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT | WaitPidFlag::__WALL;
    waitid(Id::All, look) == Err(Errno::ECHILD)
}

fn is_ours(process: &stat::Process) -> bool {
    u32::try_from(process.parent) == Ok(std::process::id())
}

/// The children of this process; each is listed with one of its threads.
fn child_pids() -> Vec<i32> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let mut children = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => children.extend(list.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            Err(error) if error.kind() == io::ErrorKind::NotFound && thread.path().exists() => {
                // This kernel does not provide the lists.
                return stat::list_processes()
                    .into_iter()
                    .filter(is_ours)
                    .map(|process| process.pid)
                    .collect();
            }
            // This thread has just ended.
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
        let (tell, hang_signal) = tokio::sync::oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        // Simulates a start that never returns from the kernel.
        let hanging = std::thread::spawn(move || {
            let _starting = read(&STARTING);
            let _ = tell.send(());
            let _ = released.recv();
        });
        hang_signal.await.expect("it hangs");
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
