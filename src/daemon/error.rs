//! Errors that prevent the daemon from starting.

use std::fmt;

use super::config::ConfigError;
use api::endpoint::NoHome;
use api::exit;
use store::StoreError;
use transport::TransportError;

/// A failed start. `Display` describes the error and how to correct it.
#[derive(Debug)]
pub enum DaemonError {
    /// The configuration is invalid.
    Config(ConfigError),
    /// No folder for the state could be determined.
    NoHome(NoHome),
    /// A folder could not be created or is not private.
    Folder(String),
    /// The database could not be opened.
    Store(StoreError),
    /// The socket or the lock could not be acquired.
    Transport(TransportError),
    /// The file descriptors of the service manager are invalid.
    Activation(String),
    /// A call of the operating system failed.
    Io(std::io::Error),
    /// A programming error in the daemon.
    Bug(String),
}

impl fmt::Display for DaemonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DaemonError::Config(error) => write!(f, "{error}"),
            DaemonError::NoHome(error) => write!(f, "{error}"),
            DaemonError::Folder(error) => write!(f, "{error}"),
            DaemonError::Store(error) => write!(f, "could not {error}"),
            DaemonError::Transport(error) => write!(f, "{error}"),
            DaemonError::Activation(error) => write!(f, "socket activation: {error}"),
            DaemonError::Io(error) => write!(f, "{error}"),
            DaemonError::Bug(error) => write!(f, "internal mistake: {error}"),
        }
    }
}

impl std::error::Error for DaemonError {}

impl DaemonError {
    /// A name of the error for scripts, which the program prints after the message; `None` if its exit code says enough.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        match self {
            DaemonError::Store(StoreError::NewerSchema(_)) => Some("newer_database"),
            _ => None,
        }
    }

    /// The exit code of the program, one of [`exit`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            DaemonError::Transport(error) => match error.name() {
                "locked" | "in_use" => exit::ALREADY_RUNNING,
                "not_a_socket" | "bad_path" | "unsafe_folder" => exit::CONFIG,
                _ => exit::INTERNAL,
            },
            DaemonError::Config(_)
            | DaemonError::NoHome(_)
            | DaemonError::Folder(_)
            | DaemonError::Store(StoreError::NewerSchema(_)) => exit::CONFIG,
            DaemonError::Store(_) | DaemonError::Activation(_) | DaemonError::Io(_) | DaemonError::Bug(_) => {
                exit::INTERNAL
            }
        }
    }
}

macro_rules! from {
    ($($source:ty => $variant:ident),*) => {$(
        impl From<$source> for DaemonError {
            fn from(error: $source) -> Self {
                DaemonError::$variant(error)
            }
        }
    )*};
}

from!(ConfigError => Config, NoHome => NoHome, StoreError => Store, TransportError => Transport, std::io::Error => Io);
