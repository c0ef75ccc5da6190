//! The process on the other side of a Unix socket, unix(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use nix::libc;
use nix::sys::socket::{getsockopt, sockopt};

use super::stat::read_process;

/// A handle on a process. While it exists, no other process gets the same id.
#[derive(Debug)]
pub struct PeerHandle(OwnedFd);

impl PeerHandle {
    /// The handle of the peer (`SO_PEERPIDFD`); `None` if the kernel (before 6.5) does not support it.
    ///
    /// # Errors
    /// The process has ended, or a resource is short ([`is_shortage`]).
    pub fn open(socket: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let mut handle: libc::c_int = -1;
        let mut length = size_of_val(&handle) as libc::socklen_t;
        #[expect(unsafe_code, reason = "this option of unix(7) has no safe wrapper")]
        // SAFETY: both pointers are to live variables of the sizes that are passed to the call.
        let done = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERPIDFD,
                (&raw mut handle).cast(),
                &raw mut length,
            )
        };
        if done == 0 && handle >= 0 {
            #[expect(unsafe_code, reason = "the kernel hands out a bare number")]
            // SAFETY: the call has just created this descriptor, and no other code owns it.
            return Ok(Some(Self(unsafe { OwnedFd::from_raw_fd(handle) })));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENOPROTOOPT) { Ok(None) } else { Err(error) }
    }

    /// Whether the process behind the handle still has this id.
    ///
    /// # Errors
    /// It cannot be read.
    fn has_pid(&self, pid: i32) -> io::Result<bool> {
        // The pid in `fdinfo` is -1 once the parent has collected the exit status. Only then can another
        // process get the pid.
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", self.0.as_raw_fd()))?;
        let pid = pid.to_string();
        Ok(info.lines().any(|line| line.strip_prefix("Pid:").is_some_and(|id| id.trim() == pid)))
    }
}

/// The process id of the peer (`SO_PEERCRED`); on the connecting side that of the process that called listen(2). 0 if it
/// is in another namespace.
///
/// # Errors
/// The socket is not connected.
pub fn peer_pid(socket: &impl AsFd) -> io::Result<i32> {
    Ok(getsockopt(&socket.as_fd(), sockopt::PeerCredentials)?.pid())
}

/// Whether the process behind a handle still has this pid and runs. Without a handle only the pid is
/// checked. `None`: no descriptor was free.
#[must_use]
pub fn is_alive(pid: i32, handle: Option<&PeerHandle>) -> Option<bool> {
    if let Some(handle) = handle {
        match handle.has_pid(pid) {
            Ok(true) => {}
            Err(error) if is_shortage(&error) => return None,
            Ok(false) | Err(_) => return Some(false),
        }
    }
    match read_process(pid) {
        Ok(process) => Some(!process.is_dead),
        Err(error) if is_shortage(&error) => None,
        Err(_) => Some(false),
    }
}

/// Out of descriptors or memory: that is temporary and says nothing about a process.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    use libc::{EMFILE, ENFILE, ENOMEM};
    error.raw_os_error().is_some_and(|code| [EMFILE, ENFILE, ENOMEM].contains(&code))
}
