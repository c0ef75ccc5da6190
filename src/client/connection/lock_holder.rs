//! The daemon that holds the lock of a data folder: its process, and where it listens.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::terminal::escape;
use transport::LockNote;

/// Whether the last daemon of this folder ended, or is ending, on request. In that case, its lock file is
/// empty or says so. After a crash, the file contains a process id, and perhaps the path of the socket.
pub(crate) fn was_stopped(data_dir: &Path) -> bool {
    let Ok(file) = open(data_dir) else { return false };
    let is_empty = file.metadata().is_ok_and(|meta| meta.len() == 0);
    is_empty || LockNote::read(&file).is_ok_and(|note| note.is_stopping)
}

/// The holder of a data folder's lock, as the lock file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockHolder {
    /// Process id of the holder.
    pub(crate) pid: i32,
    /// The socket on which the holder listens. `None` while the holder starts, and if it is of an older
    /// version.
    pub(crate) socket: Option<PathBuf>,
    /// Whether the holder is being stopped.
    is_stopping: bool,
    /// Whether the process is an `agentd`. The kernel may have given its id to another process by now.
    is_agentd: bool,
}

impl LockHolder {
    /// The running holder of the lock in this folder, if it can be identified. Never waits.
    pub(crate) fn find(data_dir: &Path) -> Option<Self> {
        let file = open(data_dir).ok()?;
        let note = LockNote::read(&file).ok()?;
        let pid: i32 = note.pid?.try_into().ok().filter(|pid| *pid > 1)?;
        // Read the process name before trying the lock. If the process is gone, the lock is not tried, so a
        // starting daemon cannot find it taken by this client.
        let name = base::proc::name(pid).ok()?;
        let (socket, is_stopping) = (note.socket, note.is_stopping);
        is_held(&file).then_some(Self { pid, socket, is_stopping, is_agentd: name == "agentd" })
    }

    /// Sends SIGTERM to the process. Returns false if this client may not signal it, or if it is no `agentd`.
    pub(crate) fn terminate(&self) -> bool {
        self.is_agentd && kill(Pid::from_raw(self.pid), Signal::SIGTERM).is_ok()
    }

    /// Whether the holder has said where it listens, and is not stopping.
    pub(crate) fn is_serving(&self) -> bool {
        !self.is_stopping && self.socket.is_some()
    }

    /// Whether the process cannot answer, because a signal such as SIGSTOP stopped it.
    pub(crate) fn is_suspended(&self) -> bool {
        is_suspended(self.pid)
    }

    /// Whether nothing can reach the daemon any more: its socket was removed while it ran.
    fn lost_its_socket(&self) -> bool {
        let Some(socket) = &self.socket else { return false };
        let metadata = std::fs::symlink_metadata(socket);
        !self.is_stopping && metadata.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Explains why no daemon answers at `socket_path` although this holder runs, and how to correct that.
    pub(crate) fn explain(&self, socket_path: &Path) -> (String, String) {
        let pid = self.pid;
        let shown = |path: &Path| escape::line(&path.display().to_string()).into_owned();
        match &self.socket {
            _ if self.is_stopping => {
                (format!("agentd (process {pid}) is stopping"), "try again in a moment".into())
            }
            Some(socket) if self.lost_its_socket() => (
                format!("agentd runs as process {pid} but its socket {} was deleted", shown(socket)),
                format!("kill -TERM {pid}, then start it"),
            ),
            Some(socket) if socket != socket_path => (
                format!("agentd (process {pid}) listens at {}", shown(socket)),
                format!("use --socket {}", shown(socket)),
            ),
            Some(_) if is_suspended(pid) => {
                (format!("agentd (process {pid}) is suspended"), format!("kill -CONT {pid}"))
            }
            Some(socket) if is_other_file(socket) => (
                format!("agentd runs as process {pid}, but {} is no socket", shown(socket)),
                "remove that file: the daemon makes its socket again".into(),
            ),
            Some(_) => (
                format!("agentd (process {pid}) takes no connections there"),
                "look into `agentctl daemon logs`".into(),
            ),
            None => (
                format!("agentd (process {pid}) is starting, or listens at another path"),
                "try again in a moment, or name its path with --socket".into(),
            ),
        }
    }
}

/// Whether something else stands at the path of a socket.
fn is_other_file(socket: &Path) -> bool {
    std::fs::symlink_metadata(socket).is_ok_and(|metadata| !metadata.file_type().is_socket())
}

fn is_suspended(pid: i32) -> bool {
    base::proc::read_process(pid).is_ok_and(|process| process.is_suspended)
}

fn open(data_dir: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    OpenOptions::new().read(true).custom_flags(flags).open(data_dir.join("agentd.lock"))
}

fn is_held(file: &File) -> bool {
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

#[cfg(test)]
mod tests {
    use crate::connection::lock_holder::*;
    use transport::StateLock;

    #[test]
    fn lock_holder_requires_locked_file_and_live_process() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("agentd.lock");
        assert_eq!(LockHolder::find(dir.path()), None, "no lock");
        std::fs::write(&path, format!("{}\n", std::process::id())).expect("written");
        assert_eq!(LockHolder::find(dir.path()), None, "it is not held");
        let lock = StateLock::try_lock(&path).expect("free");
        let holder = LockHolder::find(dir.path()).expect("held");
        assert_eq!(holder.pid.cast_unsigned(), std::process::id());
        assert!(!holder.terminate(), "a test is no agentd");
        drop(lock);
        assert_eq!(LockHolder::find(dir.path()), None, "given back");
    }

    #[test]
    fn stopping_daemon_is_distinguished_from_crashed_daemon() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("agentd.lock");
        assert!(!was_stopped(dir.path()), "it was never held");
        let lock = StateLock::try_lock(&path).expect("free");
        assert!(!was_stopped(dir.path()), "running, or dead since");
        lock.note_stopping();
        assert!(was_stopped(dir.path()), "on its way out");
        assert!(LockHolder::find(dir.path()).is_some(), "and still the one that holds it");
        drop(lock);
        assert!(was_stopped(dir.path()), "gone");
    }

    #[test]
    fn missing_socket_is_reported_only_for_nonexistent_path() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = StateLock::try_lock(&dir.path().join("agentd.lock")).expect("free");
        let explain = || {
            let (what, fix) = LockHolder::find(dir.path()).expect("held").explain(Path::new("/asked"));
            format!("{what}; {fix}")
        };
        let explanation = explain();
        assert!(
            explanation.contains("listens at another path") && !explanation.contains("kill"),
            "an older daemon: {explanation}"
        );
        let socket = dir.path().join("s.sock");
        std::fs::write(&socket, "").expect("written");
        lock.note_socket(&socket);
        let explanation = explain();
        let expected = format!("use --socket {}", socket.display());
        assert!(explanation.ends_with(&expected) && !explanation.contains("kill"), "{explanation}");
        std::fs::remove_file(&socket).expect("removed");
        let pid = std::process::id();
        let explanation = explain();
        assert!(
            explanation.ends_with(&format!("was deleted; kill -TERM {pid}, then start it")),
            "{explanation}"
        );
        lock.note_stopping();
        let explanation = explain();
        assert!(explanation.contains("is stopping") && !explanation.contains("kill"), "{explanation}");
    }

    #[test]
    fn other_file_at_the_socket_path_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = StateLock::try_lock(&dir.path().join("agentd.lock")).expect("free");
        let socket = dir.path().join("s.sock");
        std::fs::write(&socket, "").expect("written");
        lock.note_socket(&socket);
        let (what, fix) = LockHolder::find(dir.path()).expect("held").explain(&socket);
        assert!(
            what.ends_with("s.sock is no socket") && fix.starts_with("remove that file"),
            "{what}; {fix}"
        );
    }

    #[test]
    fn suspended_process_is_told_from_a_running_one() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("started");
        let pid = Pid::from_raw(child.id().cast_signed());
        assert!(!is_suspended(pid.as_raw()));
        kill(pid, Signal::SIGSTOP).expect("sent");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_suspended(pid.as_raw()) {
            assert!(std::time::Instant::now() < end, "it runs on");
            std::thread::yield_now();
        }
        child.kill().expect("sent");
        child.wait().expect("ended");
    }

    #[test]
    fn relative_socket_path_in_lock_note_is_ignored() {
        for socket in ["", "run/agentd.sock"] {
            let dir = tempfile::tempdir().expect("a folder");
            let lock = StateLock::try_lock(&dir.path().join("agentd.lock")).expect("free");
            lock.note_socket(Path::new(socket));
            let (what, fix) = LockHolder::find(dir.path()).expect("held").explain(Path::new("/asked"));
            assert!(what.contains("listens at another path") && !fix.contains("kill"), "{what}; {fix}");
        }
    }
}
