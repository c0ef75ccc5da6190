//! A listening socket that is private from its first moment.
//!
//! The folder is the protection: 0700, owned by this user, not a link, checked before anything is created in
//! it. Inside it, the socket gets its mode between `bind` and `listen`, when no client can connect yet. A
//! path is removed only if it is proven to be a dead socket, because connecting to it is refused. Two daemons
//! that start at once are serialised by a lock on the folder, which is held only while binding or removing.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, UnixAddr};
use nix::unistd::Pid;
use tokio::net::UnixListener;

use super::error::TransportError;
use crate::private_dir::{open_folder, private_folder};
use base::proc::peer_pid;

/// Maximum bytes of a Unix socket path: 108 bytes with the closing zero.
const MAX_PATH_BYTES: usize = 107;

/// Produces a text at each request.
#[derive(Clone)]
pub(super) struct PageSource(Arc<dyn Fn() -> String + Send + Sync>);

impl PageSource {
    /// The current text.
    pub fn text(&self) -> String {
        (self.0)()
    }
}

impl fmt::Debug for PageSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageSource")
    }
}

/// A listening socket. Dropping it stops listening. The drop also removes the path, if it still belongs to
/// this socket.
#[derive(Debug)]
pub struct BoundSocket {
    listener: UnixListener,
    file: Option<SocketFile>,
    mark: Option<Arc<[u8]>>,
    page: Option<PageSource>,
}

impl BoundSocket {
    /// Adopts a listener that another program has bound (socket activation). Its path belongs to that
    /// program. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// `Io` if the runtime cannot watch it.
    pub fn adopt(listener: StdListener) -> Result<Self, TransportError> {
        let watch_error = |e| TransportError::io("watch", "the inherited socket", e);
        listener.set_nonblocking(true).map_err(watch_error)?;
        Ok(Self {
            listener: UnixListener::from_std(listener).map_err(watch_error)?,
            file: None,
            mark: None,
            page: None,
        })
    }

    /// Path of the socket, unless it was inherited.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// Sets the `NAME=VALUE` in the environment of this daemon's tool processes. A peer that has it
    /// counts as one of them.
    #[must_use]
    pub fn with_mark(self, mark: &str) -> Self {
        Self { mark: Some(mark.as_bytes().into()), ..self }
    }

    /// Sets the response to `GET /metrics`: a text that is generated at each request, without waiting.
    /// Processes of tools do not get it.
    #[must_use]
    pub fn with_metrics(self, page: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { page: Some(PageSource(Arc::new(page))), ..self }
    }

    pub(super) fn into_parts(self) -> (UnixListener, Option<SocketFile>, ServerInfo) {
        (self.listener, self.file, (self.mark, self.page))
    }
}

/// The marker of this daemon's processes, and the response to `GET /metrics`.
pub(super) type ServerInfo = (Option<Arc<[u8]>>, Option<PageSource>);

/// The identity of no file: there is no inode 0.
const NO_FILE: (u64, u64) = (0, 0);

/// The path of a bound socket; removed on drop.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If another process holds the folder's lock, it may be replacing this socket. Then a dead
        // socket may stay, which the next start recognises.
        let Some(folder) = self.path.parent() else { return };
        let Ok(turn) = open_folder(folder) else { return };
        if turn.try_lock().is_err() {
            return;
        }
        if identity(&self.path) == Some(self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Whether clients cannot reach this socket, because its file was removed or replaced.
    pub(super) fn is_lost(&self) -> bool {
        identity(&self.path) != Some(self.identity)
    }

    /// Makes the socket again at the same path. A live socket of another program stays.
    ///
    /// # Errors
    /// As of [`bind`].
    pub(super) fn bind_again(&mut self) -> Result<UnixListener, TransportError> {
        let bound = bind(&self.path).inspect_err(|_| {
            // What is there now belongs to another program, even if it has the inode of the old file.
            self.identity = NO_FILE;
        })?;
        let (listener, file, _) = bound.into_parts();
        if let Some(mut file) = file {
            // Neither value may remove the new file: it can have the inode of the old one.
            self.identity = std::mem::replace(&mut file.identity, NO_FILE);
        }
        Ok(listener)
    }
}

/// Binds `path` and listens. Creates the folder (0700) or checks it. Replaces a dead socket, never a
/// live one. Must be called inside a tokio runtime.
///
/// # Errors
/// `BadPath`, `UnsafeFolder`, `NotASocket`, `InUse` say what to change; `Io` is the system's error.
pub fn bind(path: &Path) -> Result<BoundSocket, TransportError> {
    let folder = check_path(path)?;
    let turn = private_folder(folder)?;
    turn.lock().map_err(|e| TransportError::io("take turns in", folder, e))?;

    remove_dead_socket(path)?;
    let address = UnixAddr::new(path).map_err(|e| TransportError::io("name the socket", path, e))?;
    let fd = new_socket().map_err(|e| TransportError::io("make the socket", path, e))?;
    socket::bind(fd.as_raw_fd(), &address).map_err(|e| TransportError::io("bind", path, e))?;
    let mine = identity(path)
        .ok_or_else(|| TransportError::io("find the new socket", path, io::Error::from(Errno::ENOENT)))?;
    // From here on a failure removes the socket again. The guard takes the folder's lock itself, so it
    // must be dropped after this function's lock: it is declared first, and the lock is moved in after
    // it.
    let file = SocketFile { path: path.to_owned(), identity: mine };
    let turn = turn;
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|e| TransportError::io("make private", path, e))?;
    socket::listen(&fd, Backlog::MAXCONN).map_err(|e| TransportError::io("listen on", path, e))?;
    let listener =
        UnixListener::from_std(StdListener::from(fd)).map_err(|e| TransportError::io("watch", path, e))?;
    drop(turn);
    Ok(BoundSocket { listener, file: Some(file), mark: None, page: None })
}

/// Refuses paths that can never be a socket's path; returns the folder.
fn check_path(path: &Path) -> Result<&Path, TransportError> {
    let bad = |why: String| TransportError::BadPath { path: path.to_owned(), why };
    let length = path.as_os_str().len();
    if length > MAX_PATH_BYTES {
        return Err(bad(format!(
            "the path has {length} bytes and the system allows {MAX_PATH_BYTES}; choose a shorter one"
        )));
    }
    if !path.is_absolute() {
        return Err(bad("the path must be absolute".into()));
    }
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(_)) => Ok(folder),
        _ => Err(bad("it needs a folder and a name".into())),
    }
}

/// Removes a dead socket; refuses everything else at `path`.
fn remove_dead_socket(path: &Path) -> Result<(), TransportError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(TransportError::io("look at", path, e)),
    };
    if !meta.file_type().is_socket() {
        return Err(TransportError::NotASocket { path: path.to_owned() });
    }
    match probe(path) {
        // No process listens: the owner is dead, and the folder's lock excludes a starting one. Or no
        // process will ever answer: the listener is dead, and a child that it was starting still holds
        // the socket.
        Err(Errno::ECONNREFUSED) | Ok(ListenerState::Dead) => {
            fs::remove_file(path).map_err(|e| TransportError::io("remove the dead socket", path, e))
        }
        Err(Errno::ENOENT) => Ok(()),
        // Connected, or its queue is full: a running process listens there.
        Ok(ListenerState::Alive) | Err(Errno::EAGAIN) => Err(TransportError::InUse { path: path.to_owned() }),
        Err(e) => Err(TransportError::io("see who listens on", path, e)),
    }
}

/// The process that called `listen` on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenerState {
    Alive,
    Dead,
}

/// Connects and disconnects. Never waits: a full queue answers at once.
fn probe(path: &Path) -> Result<ListenerState, Errno> {
    let fd = new_socket()?;
    socket::connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    let pid = peer_pid(&fd).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))?;
    let is_gone = pid > 0 && kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH);
    Ok(if is_gone { ListenerState::Dead } else { ListenerState::Alive })
}

fn new_socket() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn temp_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        folder
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn socket_and_its_folder_are_private() {
        let scratch = temp_folder();
        let path = scratch.path().join("deep/run/agentd.sock");
        let bound = bind(&path).unwrap();
        assert_eq!(bound.path(), Some(path.as_path()));
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
        UnixStream::connect(&path).unwrap();
        drop(bound);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn live_socket_is_never_replaced() {
        let scratch = temp_folder();
        let path = scratch.path().join("run/agentd.sock");
        let _first = bind(&path).unwrap();
        assert_eq!(bind(&path).unwrap_err().name(), "in_use");
        UnixStream::connect(&path).unwrap();
    }

    #[tokio::test]
    async fn stale_socket_is_replaced_by_bind() {
        let scratch = temp_folder();
        let path = scratch.path().join("run/agentd.sock");
        drop(bind(&path).unwrap());
        // The standard listener does not remove its file, like a killed daemon.
        drop(StdListener::bind(&path).unwrap());
        assert!(path.exists());
        let _bound = bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[tokio::test]
    async fn socket_of_other_daemon_is_not_removed() {
        let scratch = temp_folder();
        let path = scratch.path().join("run/agentd.sock");
        let bound = bind(&path).unwrap();
        // The listener keeps the old inode in use, so the new file cannot get the same number.
        fs::remove_file(&path).unwrap();
        let _other = StdListener::bind(&path).unwrap();
        let (_listener, file, ..) = bound.into_parts();
        drop(file);
        assert!(path.exists());
    }

    #[tokio::test]
    async fn removed_or_replaced_socket_is_made_again_but_live_one_stays() {
        let scratch = temp_folder();
        let path = scratch.path().join("run/agentd.sock");
        let (_old, file, ..) = bind(&path).unwrap().into_parts();
        let mut file = file.unwrap();
        assert!(!file.is_lost());
        type Loss = fn(&Path);
        let losses: [(&str, Loss); 3] = [
            ("removed", |path| fs::remove_file(path).unwrap()),
            ("with its folder", |path| fs::remove_dir_all(path.parent().unwrap()).unwrap()),
            ("replaced by a dead one", |path| {
                // While the old file exists, the new one cannot get its inode.
                let dead = path.with_extension("dead");
                drop(StdListener::bind(&dead).unwrap());
                fs::rename(dead, path).unwrap();
            }),
        ];
        for (case, lose) in losses {
            lose(&path);
            assert!(file.is_lost(), "{case}");
            let _listener = file.bind_again().unwrap();
            assert!(!file.is_lost(), "{case}");
            UnixStream::connect(&path).unwrap();
        }
        fs::remove_file(&path).unwrap();
        let _other = StdListener::bind(&path).unwrap();
        assert_eq!(file.bind_again().unwrap_err().name(), "in_use");
        drop(file);
        UnixStream::connect(&path).unwrap();
    }

    #[tokio::test]
    async fn unsafe_socket_paths_are_refused_with_reason() {
        let scratch = temp_folder();
        let at = |name: &str| scratch.path().join(name);
        for (name, mode) in [("wide", 0o755), ("group", 0o750), ("sticky", 0o1777), ("closed", 0o600)] {
            fs::create_dir(at(name)).unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(at("private")).unwrap();
        fs::set_permissions(at("private"), Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(at("private"), at("link")).unwrap();
        fs::write(at("file"), "").unwrap();
        fs::write(at("private/taken"), "precious").unwrap();
        let long = format!("private/{}", "x".repeat(108));
        let check = |path: &Path, word: &str, says: &str| {
            let error = bind(path).unwrap_err();
            assert_eq!(error.name(), word, "{}: {error}", path.display());
            assert!(error.to_string().contains(says), "{error}");
        };
        check(&at("wide/s"), "unsafe_folder", "0755");
        check(&at("group/s"), "unsafe_folder", "0750");
        check(&at("sticky/s"), "unsafe_folder", "everybody");
        check(&at("closed/s"), "unsafe_folder", "0600");
        check(&at("link/s"), "unsafe_folder", "link");
        check(&at("file/s"), "unsafe_folder", "not a folder");
        check(&at("private/taken"), "not_a_socket", "move it");
        check(&at(&long), "bad_path", "107");
        check(Path::new("run/agentd.sock"), "bad_path", "absolute");
        check(Path::new("/"), "bad_path", "name");
        assert_eq!(fs::read_to_string(at("private/taken")).unwrap(), "precious");
    }

    #[test]
    fn concurrent_binds_succeed_exactly_once() {
        let scratch = temp_folder();
        let path = scratch.path().join("run/agentd.sock");
        fs::create_dir(scratch.path().join("run")).unwrap();
        fs::set_permissions(scratch.path().join("run"), Permissions::from_mode(0o700)).unwrap();
        drop(StdListener::bind(&path).unwrap());
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let start = std::sync::Barrier::new(8);
        let results: Vec<_> = std::thread::scope(|scope| {
            let racers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let _inside = runtime.enter();
                        start.wait();
                        bind(&path)
                    })
                })
                .collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|r| r.is_ok()).count(), 1);
        for lost in results.iter().filter_map(|r| r.as_ref().err()) {
            assert_eq!(lost.name(), "in_use");
        }
        UnixStream::connect(&path).unwrap();
    }
}
