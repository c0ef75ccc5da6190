//! Errors that prevent the daemon from starting.

use super::config::ConfigError;
use api::endpoint::NoHome;
use api::exit;
use store::StoreError;
use transport::TransportError;

/// A failed start. `Display` describes the error and how to correct it.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No folder for the state could be determined.
    #[error(transparent)]
    NoHome(#[from] NoHome),
    /// A folder could not be created or is not private.
    #[error("{0}")]
    Folder(String),
    /// The database could not be opened.
    #[error("could not {0}")]
    Store(#[from] StoreError),
    /// The socket or the lock could not be acquired.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The file descriptors of the service manager are invalid.
    #[error("socket activation: {0}")]
    Activation(String),
    /// A call of the operating system failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A programming error in the daemon.
    #[error("internal mistake: {0}")]
    Bug(String),
}

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
