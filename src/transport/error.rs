//! Errors of this layer.

use std::io;
use std::path::PathBuf;

/// The reason why a lock or a socket could not be acquired.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[non_exhaustive]
#[strum(serialize_all = "snake_case")]
pub enum TransportError {
    /// Another daemon holds the lock of the state folder.
    #[error(
        "{} is held{}: another agentd uses this state folder",
        .path.display(),
        .pid.map(|pid| format!(" by process {pid}")).unwrap_or_default()
    )]
    Locked {
        /// Path of the lock file.
        path: PathBuf,
        /// Process id of the holder, if the lock file contains it.
        pid: Option<u32>,
    },
    /// A daemon answers on this socket.
    #[error("another program answers on {} already; stop it or choose another socket", .path.display())]
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path of the socket exists, but is not a socket.
    #[error("{} exists and is not a socket; move it away", .path.display())]
    NotASocket {
        /// The path that is not a socket.
        path: PathBuf,
    },
    /// The path cannot be the address of a Unix socket.
    #[error("{} cannot be a socket: {why}", .path.display())]
    BadPath {
        /// The rejected path.
        path: PathBuf,
        /// The change that fixes the problem.
        why: String,
    },
    /// The folder of the socket or of the data is accessible to other users, or is not a private
    /// folder.
    #[error("the folder {} is not safe: {why}", .path.display())]
    UnsafeFolder {
        /// Path of the folder.
        path: PathBuf,
        /// The change that fixes the problem.
        why: String,
    },
    /// A system call failed.
    #[error("could not {doing} {}: {source}", .path.display())]
    Io {
        /// The attempted operation, for the message.
        doing: &'static str,
        /// The affected file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl TransportError {
    /// A stable identifier for programs.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.into(), source: source.into() }
    }
}
