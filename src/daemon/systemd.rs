//! The protocols of service managers. Socket activation, sd_listen_fds(3): a manager binds the socket
//! and passes it as descriptor 3, and the socket file still belongs to the manager. Readiness,
//! sd_notify(3): the daemon sends one datagram to the socket that the manager names. Watchdog,
//! sd_watchdog_enabled(3): the manager kills a daemon that sends nothing for too long.

use std::os::fd::{AsFd, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{
    AddressFamily, SockType, SockaddrLike as _, SockaddrStorage, getsockname, getsockopt, sockopt,
};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::error::DaemonError;
use api::endpoint::Env;

/// The first passed descriptor.
const FIRST_DESCRIPTOR: RawFd = 3;

/// Whether the descriptor was taken. A process may use it only once.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The socket that was passed to this process, if there is one.
///
/// # Errors
/// The descriptors are invalid: more than one, or not a listening Unix stream socket.
pub(super) fn inherited_socket(env: Env<'_>) -> Result<Option<UnixListener>, DaemonError> {
    let Some(count) = descriptor_count(env, std::process::id()) else { return Ok(None) };
    if count != "1" {
        return Err(activation_error(format!("LISTEN_FDS is {count:?}, and exactly one socket is wanted")));
    }
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(None);
    }
    // A successful getsockname proves that the descriptor is open, without taking ownership of it.
    getsockname::<SockaddrStorage>(FIRST_DESCRIPTOR)
        .map_err(|error| activation_error(format!("descriptor {FIRST_DESCRIPTOR} is no socket: {error}")))?;
    #[expect(unsafe_code, reason = "a number from the environment; it was just seen to be open")]
    let seen = unsafe { BorrowedFd::borrow_raw(FIRST_DESCRIPTOR) };
    check(seen).map_err(activation_error)?;
    #[expect(unsafe_code, reason = "handed to this very process, and IS_TAKEN lets one pass")]
    let fd = unsafe { OwnedFd::from_raw_fd(FIRST_DESCRIPTOR) };
    // Tools must not inherit the socket.
    fcntl(&fd, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|error| activation_error(error.to_string()))?;
    Ok(Some(UnixListener::from(fd)))
}

/// The path of an inherited socket.
pub(super) fn path(listener: &UnixListener) -> Option<PathBuf> {
    listener.local_addr().ok()?.as_pathname().filter(|path| path.is_absolute()).map(PathBuf::from)
}

/// The number of descriptors that the environment passes to the process `pid`.
fn descriptor_count(env: Env<'_>, pid: u32) -> Option<String> {
    env("LISTEN_PID").filter(|value| value.parse() == Ok(pid))?;
    env("LISTEN_FDS").filter(|count| count != "0")
}

fn check(fd: BorrowedFd<'_>) -> Result<(), String> {
    use std::os::fd::AsRawFd as _;
    let no =
        |what: &str| format!("descriptor {FIRST_DESCRIPTOR} is not a listening Unix stream socket ({what})");
    let error_text = |error: nix::Error| no(error.desc());
    let address = getsockname::<SockaddrStorage>(fd.as_raw_fd()).map_err(error_text)?;
    if address.family() != Some(AddressFamily::Unix) {
        return Err(no("another family"));
    }
    if getsockopt(&fd.as_fd(), sockopt::SockType).map_err(error_text)? != SockType::Stream {
        return Err(no("another type"));
    }
    if !getsockopt(&fd.as_fd(), sockopt::AcceptConn).map_err(error_text)? {
        return Err(no("it does not listen"));
    }
    Ok(())
}

fn activation_error(why: String) -> DaemonError {
    DaemonError::Activation(why)
}

/// Reports that the daemon answers on its socket.
pub(super) fn report_ready() {
    send_state("READY=1");
}

/// Reports that the daemon is stopping.
pub(super) fn report_stopping() {
    send_state("STOPPING=1");
}

/// Tells a service manager with a watchdog that the daemon works.
pub(super) struct Watchdog {
    /// `None` without a watchdog.
    beats: Option<Interval>,
    /// The last beat on its way.
    sending: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// The watchdog that the environment names, if it names one.
    pub(super) fn from_env(env: Env<'_>) -> Self {
        let beats = watchdog_timeout(env, std::process::id()).map(|timeout| {
            // As sd_watchdog_enabled(3) advises: a beat may be late by half of the time.
            let mut beats = interval(timeout / 2);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beats
        });
        Self { beats, sending: None }
    }

    /// Waits until a beat is due; forever without a watchdog. Cancel-safe.
    pub(super) async fn due(&mut self) {
        match &mut self.beats {
            Some(beats) => drop(beats.tick().await),
            None => std::future::pending().await,
        }
    }

    /// Sends a beat. The loop that calls this works; the beat is a task, so it also shows that the runtime runs tasks.
    pub(super) fn beat(&mut self) {
        if self.sending.as_ref().is_none_or(JoinHandle::is_finished) {
            self.sending = Some(tokio::spawn(async { send_state("WATCHDOG=1") }));
        }
    }
}

/// The time without a beat after which the manager kills this process.
fn watchdog_timeout(env: Env<'_>, pid: u32) -> Option<Duration> {
    if env("WATCHDOG_PID").is_some_and(|value| value.parse() != Ok(pid)) {
        return None;
    }
    let micros: u64 = env("WATCHDOG_USEC")?.parse().ok()?;
    // Shorter ones would be a busy loop.
    (micros >= 1000).then(|| Duration::from_micros(micros))
}

fn send_state(text: &str) {
    let Ok(name) = std::env::var("NOTIFY_SOCKET") else { return };
    let address = match name.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::debug!(%error, "could not notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use crate::systemd::*;

    #[test]
    fn activation_variables_apply_to_matching_pid_only() {
        for (pid, fds, expected) in [
            (Some("7"), Some("1"), Some("1")),
            (Some("7"), Some("2"), Some("2")),
            (Some("7"), Some("0"), None),
            (Some("8"), Some("1"), None),
            (Some(""), Some("1"), None),
            (None, Some("1"), None),
            (Some("7"), None, None),
        ] {
            let env = |name: &str| if name == "LISTEN_PID" { pid } else { fds }.map(String::from);
            assert_eq!(descriptor_count(&env, 7).as_deref(), expected, "{pid:?} {fds:?}");
        }
    }

    #[test]
    fn watchdog_of_this_process_only_is_served() {
        for (pid, micros, expected) in [
            (None, Some("2000000"), Some(2)),
            (Some("7"), Some("2000000"), Some(2)),
            (Some("8"), Some("2000000"), None),
            (Some("7"), Some("0"), None),
            (Some("7"), Some("soon"), None),
            (None, None, None),
        ] {
            let env = |name: &str| if name == "WATCHDOG_PID" { pid } else { micros }.map(String::from);
            let found = watchdog_timeout(&env, 7);
            assert_eq!(found, expected.map(Duration::from_secs), "{pid:?} {micros:?}");
        }
    }

    #[test]
    fn only_listening_unix_stream_socket_is_accepted() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("s");
        let good = UnixListener::bind(&path).expect("bound");
        assert_eq!(check(good.as_fd()), Ok(()));
        assert_eq!(crate::systemd::path(&good), Some(path));
        let refused = |fd: BorrowedFd<'_>, word: &str| {
            let why = check(fd).expect_err(word);
            assert!(why.contains(word), "{why}");
        };
        refused(TcpListener::bind("127.0.0.1:0").expect("bound").as_fd(), "family");
        refused(UnixDatagram::unbound().expect("made").as_fd(), "type");
        refused(UnixStream::pair().expect("made").0.as_fd(), "listen");
    }
}
