//! A daemon that runs and cannot be reached: its lock is held, but its socket is gone.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Whether the last daemon of this folder ended, or is ending, because somebody wanted it: then its lock file
/// is empty or says so. After a crash it holds a process id and nothing else.
pub(super) fn was_stopped(data_dir: &Path) -> bool {
    let text = std::fs::read_to_string(data_dir.join("agentd.lock"));
    text.is_ok_and(|text| text.is_empty() || text.lines().nth(1) == Some("stopping"))
}

/// Who holds the lock of a data folder, by what it wrote into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    /// Its process.
    pub(super) pid: i32,
    /// Whether that process is an `agentd`, and not a number that has passed to somebody else.
    is_agentd: bool,
}

impl Holder {
    /// The living holder of the lock in this folder, if there is one that can be named. Never waits.
    pub(super) fn of(data_dir: &Path) -> Option<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(data_dir.join("agentd.lock"))
            .ok()?;
        let mut text = String::new();
        (&mut file).take(32).read_to_string(&mut text).ok()?;
        let pid: i32 = text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 1)?;
        // Asked before the lock is touched: a daemon that just starts shall not find it taken by us.
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        is_held(&file).then_some(Self { pid, is_agentd: comm.trim() == "agentd" })
    }

    /// Asks the process to stop, as `kill -TERM` does. False if it may not be asked, or is no
    /// `agentd`.
    pub(super) fn terminate(self) -> bool {
        self.is_agentd && kill(Pid::from_raw(self.pid), Signal::SIGTERM).is_ok()
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pid = self.pid;
        write!(f, "agentd runs as process {pid} but its socket is gone: kill -TERM {pid}, then start it")
    }
}

fn is_held(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::StateLock;

    #[test]
    fn only_a_held_lock_of_a_living_process_has_a_holder() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("agentd.lock");
        assert_eq!(Holder::of(dir.path()), None, "no lock");
        std::fs::write(&path, format!("{}\n", std::process::id())).expect("written");
        assert_eq!(Holder::of(dir.path()), None, "nobody holds it");
        let lock = StateLock::try_lock(&path).expect("free");
        let holder = Holder::of(dir.path()).expect("held");
        assert_eq!(holder.pid.cast_unsigned(), std::process::id());
        assert!(!holder.terminate(), "a test is no agentd");
        drop(lock);
        assert_eq!(Holder::of(dir.path()), None, "given back");
    }

    #[test]
    fn who_is_being_stopped_is_told_from_who_died() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("agentd.lock");
        assert!(!was_stopped(dir.path()), "nobody was ever there");
        let lock = StateLock::try_lock(&path).expect("free");
        assert!(!was_stopped(dir.path()), "running, or dead since");
        lock.leaving();
        assert!(was_stopped(dir.path()), "on its way out");
        assert!(Holder::of(dir.path()).is_some(), "and still the one that holds it");
        drop(lock);
        assert!(was_stopped(dir.path()), "gone");
    }
}
