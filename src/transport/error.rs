//! Errors of this layer.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The reason why a lock or a socket could not be acquired.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// Another daemon holds the lock of the state folder.
    Locked {
        /// Path of the lock file.
        path: PathBuf,
        /// Process id of the holder, if the lock file contains it.
        pid: Option<u32>,
    },
    /// A daemon answers on this socket.
    InUse {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The path of the socket exists, but is not a socket.
    NotASocket {
        /// The path that is not a socket.
        path: PathBuf,
    },
    /// The path cannot be the address of a Unix socket.
    BadPath {
        /// The rejected path.
        path: PathBuf,
        /// The change that fixes the problem.
        why: String,
    },
    /// The folder of the socket or of the data is accessible to other users, or is not a private
    /// folder.
    UnsafeFolder {
        /// Path of the folder.
        path: PathBuf,
        /// The change that fixes the problem.
        why: String,
    },
    /// A system call failed.
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
        match self {
            Self::Locked { .. } => "locked",
            Self::InUse { .. } => "in_use",
            Self::NotASocket { .. } => "not_a_socket",
            Self::BadPath { .. } => "bad_path",
            Self::UnsafeFolder { .. } => "unsafe_folder",
            Self::Io { .. } => "io",
        }
    }

    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.into(), source: source.into() }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path, pid: Some(pid) } => {
                write!(
                    f,
                    "{} is held by process {pid}: another agentd uses this state folder",
                    path.display()
                )
            }
            Self::Locked { path, pid: None } => {
                write!(f, "{} is held: another agentd uses this state folder", path.display())
            }
            Self::InUse { path } => {
                write!(
                    f,
                    "another program answers on {} already; stop it or choose another socket",
                    path.display()
                )
            }
            Self::NotASocket { path } => {
                write!(f, "{} exists and is not a socket; move it away", path.display())
            }
            Self::BadPath { path, why } => write!(f, "{} cannot be a socket: {why}", path.display()),
            Self::UnsafeFolder { path, why } => {
                write!(f, "the folder {} is not safe: {why}", path.display())
            }
            Self::Io { doing, path, source } => write!(f, "could not {doing} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
