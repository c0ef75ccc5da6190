//! What this floor could not do, in its own words.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a lock or a socket could not be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum TransportError {
    /// Another daemon holds the lock of the state folder.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The holder, if it wrote its number into the file.
        pid: Option<u32>,
    },
    /// A daemon answers on this socket.
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// Something that is not a socket stands where the socket should be.
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path cannot be the address of a Unix socket.
    BadPath {
        /// The path.
        path: PathBuf,
        /// What to change.
        why: String,
    },
    /// The folder of the socket or of the data is open to others, or is not what it should be.
    UnsafeFolder {
        /// The folder.
        path: PathBuf,
        /// What to change.
        why: String,
    },
    /// The system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl TransportError {
    /// A stable word for programs.
    pub fn word(&self) -> &'static str {
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
