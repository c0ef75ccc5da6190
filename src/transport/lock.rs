//! One daemon per state folder. The kernel releases the lock when its holder ends, so no left-over file can
//! block a start. If the holder is killed while it starts a child, the child keeps the lock until it executes
//! its program (flock(2), fork(2)). A new daemon waits until then.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use super::error::TransportError;
use base::proc::read_process;

/// The line of a lock file, after the process id, that says that the holder is stopping.
const STOPPING_LINE: &str = "stopping";

/// Prefix of the line with the path of the holder's socket, after the line with the process id.
const SOCKET_PREFIX: &str = "socket ";

/// Maximum bytes that are read. A lock file contains a process id, the path of a socket and a word, so no
/// daemon writes a longer one.
const MAX_NOTE_BYTES: u64 = 8 << 10;

/// Time for which the children of a dead holder may keep the lock, and the interval of the checks for this.
const CHILDREN_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// The lock on a state folder. Held until dropped or until the process ends; children do not
/// inherit it (close-on-exec).
#[derive(Debug)]
pub struct StateLock {
    file: File,
}

impl StateLock {
    /// Acquires the lock in `path`, creates the file (0600) and its folder (0700) if needed, and writes this
    /// process's id into it. Does not wait for a running holder. Waits up to two seconds for the children of
    /// a dead holder.
    ///
    /// # Errors
    /// [`TransportError::Locked`] names the holder; everything else is `Io`.
    pub fn try_lock(path: &Path) -> Result<Self, TransportError> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|e| TransportError::io("make the folder", folder, e))?;
        }
        // Opening does not truncate the file: it belongs to the holder until this process has the lock.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(path)
            .map_err(|e| TransportError::io("open the lock", path, e))?;
        let until = Instant::now() + CHILDREN_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let pid = LockNote::read(&file).ok().and_then(|note| note.pid);
                    // If the file contains no process id, its holder has just started or is releasing the
                    // lock.
                    if !pid.is_none_or(is_dead) || Instant::now() > until {
                        return Err(TransportError::Locked { path: path.to_owned(), pid });
                    }
                    std::thread::park_timeout(RETRY_INTERVAL);
                }
                Err(TryLockError::Error(e)) => return Err(TransportError::io("lock", path, e)),
            }
        }
        let note = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(note.as_bytes()))
            .map_err(|e| TransportError::io("write our process number into", path, e))?;
        Ok(Self { file })
    }
}

impl StateLock {
    /// Records in the lock file that the holder stops on request, so that clients that lose this daemon start
    /// no other one. Call this before a client can notice the stop. A failed write is ignored, because only
    /// this information is lost.
    pub fn note_stopping(&self) {
        let _ = (&self.file).write_all(format!("{STOPPING_LINE}\n").as_bytes());
    }

    /// Writes the path of the holder's socket into the lock file, so that clients with other settings find
    /// the daemon. Call this once the daemon answers on the socket: until then a missing socket says nothing
    /// about the daemon. A path that does not fit on one line of text is left out.
    pub fn note_socket(&self, path: &Path) {
        if let Some(path) = path.to_str().filter(|path| !path.contains('\n')) {
            let _ = (&self.file).write_all(format!("{SOCKET_PREFIX}{path}\n").as_bytes());
        }
    }
}

/// The content of a lock file, as its holder wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockNote {
    /// Process id of the holder.
    pub pid: Option<u32>,
    /// The absolute path of the holder's socket. `None` while the holder starts, and if its version did not
    /// write the path.
    pub socket: Option<PathBuf>,
    /// Whether the holder stops, or has stopped, on request.
    pub is_stopping: bool,
}

impl LockNote {
    /// Reads a lock file from its beginning.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(mut file: &File) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.take(MAX_NOTE_BYTES).read_to_end(&mut bytes)?;
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let pid = lines.next().and_then(|line| line.trim().parse().ok());
        let mut note = Self { pid, ..Self::default() };
        for line in lines {
            match line.strip_prefix(SOCKET_PREFIX) {
                // Ignore a relative path: the client may run in another folder than the daemon.
                Some(path) => note.socket = Some(PathBuf::from(path)).filter(|path| path.is_absolute()),
                None => note.is_stopping |= line == STOPPING_LINE,
            }
        }
        note
    }
}

impl Drop for StateLock {
    fn drop(&mut self) {
        // Keep the file: after a removal, two daemons could hold two different files with the same name.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

/// Whether no process with this id runs any more.
fn is_dead(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return true };
    match read_process(pid) {
        Ok(process) => process.is_dead,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn second_lock_attempt_names_holder_pid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data/agentd.lock");
        let first = StateLock::try_lock(&path).unwrap();
        let error = StateLock::try_lock(&path).unwrap_err();
        assert_eq!(error.name(), "locked");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        first.note_stopping();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\nstopping\n", std::process::id()));
        let error = StateLock::try_lock(&path).unwrap_err();
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        drop(first);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        StateLock::try_lock(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }

    #[test]
    fn lock_note_is_parsed_from_current_and_older_files() {
        let socket = |path: &str| Some(PathBuf::from(path));
        let check = |text: &str, pid, path: Option<PathBuf>, is_stopping| {
            assert_eq!(LockNote::parse(text), LockNote { pid, socket: path, is_stopping }, "{text:?}");
        };
        check("", None, None, false);
        check("42\n", Some(42), None, false);
        check("42\nstopping\n", Some(42), None, true);
        check("42\nsocket /r/a b.sock\n", Some(42), socket("/r/a b.sock"), false);
        check("42\nsocket stopping\n", Some(42), None, false);
        check("42\nsocket \n", Some(42), None, false);
        check("42\nsocket run/agentd.sock\n", Some(42), None, false);
        check("42\nsocket /s\nstopping\n", Some(42), socket("/s"), true);
        check("what is this\n", None, None, false);
    }

    #[test]
    fn lock_note_contains_socket_path_after_pid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.lock");
        let lock = StateLock::try_lock(&path).unwrap();
        lock.note_socket(Path::new("/no\nline"));
        let long = format!("/{}", "ü".repeat(200));
        lock.note_socket(Path::new(&long));
        let note = LockNote::read(&File::open(&path).unwrap()).unwrap();
        let pid = Some(std::process::id());
        assert_eq!(note, LockNote { pid, socket: Some(long.into()), is_stopping: false });
    }

    #[test]
    fn lock_inherited_from_dead_holder_is_awaited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.lock");
        let held = StateLock::try_lock(&path).unwrap();
        // No process has this id, because it exceeds the kernel's maximum.
        fs::write(&path, "4194999\n").unwrap();
        let child = std::thread::spawn(move || {
            std::thread::park_timeout(RETRY_INTERVAL * 4);
            drop(held);
        });
        StateLock::try_lock(&path).unwrap();
        child.join().unwrap();
        assert!(is_dead(4_194_999) && !is_dead(std::process::id()));
    }

    #[test]
    fn stale_lock_file_does_not_block_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.lock");
        fs::write(&path, "4294967295 and more\n").unwrap();
        let _lock = StateLock::try_lock(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }

    #[test]
    fn lock_file_is_private_and_close_on_exec() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.lock");
        let lock = StateLock::try_lock(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let flags = nix::fcntl::fcntl(lock.file.as_fd(), nix::fcntl::FcntlArg::F_GETFD).unwrap();
        assert_ne!(flags & nix::libc::FD_CLOEXEC, 0);
    }

    #[test]
    fn lock_file_symlink_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentd.lock");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert_eq!(StateLock::try_lock(&path).unwrap_err().name(), "io");
    }
}
