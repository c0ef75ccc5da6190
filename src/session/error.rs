//! What a session could not do.

use std::fmt;

use crate::engine::Refusal;
use crate::policy::PolicyError;
use crate::store::StoreError;
use crate::types::ids::Seq;

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionError {
    /// The caller asked for something that cannot be.
    Refused(Refusal),
    /// There is no such session.
    NotFound,
    /// There is no such permission request.
    NoSuchRequest,
    /// There is no such question.
    NoSuchQuestion,
    /// The request was settled; the event that settled it, as JSON.
    Settled(String),
    /// The id or key was used before with other content.
    Conflict(&'static str),
    /// The cursor lies beyond the journal's end.
    CursorAhead {
        /// Where the journal ends.
        last_seq: Seq,
    },
    /// The folder is not any more what was to be trusted.
    StaleTrust {
        /// What it is now.
        digest: String,
    },
    /// A parameter is wrong: its name and what to fix.
    BadParam(&'static str, String),
    /// A value is known but not built yet: the parameter's name and why.
    Unsupported(&'static str, String),
    /// The journal holds more than it may, in bytes.
    JournalFull {
        /// What it holds.
        held: u64,
        /// What it may hold.
        most: u64,
    },
    /// The daemon is stopping.
    ShuttingDown,
    /// The session's task panicked while it worked on this.
    Crashed,
    /// Rules that outlive a session could not be read or changed.
    Policy(PolicyError),
    /// The store failed.
    Store(StoreError),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Refused(refusal) => write!(f, "refused: {refusal:?}"),
            SessionError::NotFound => f.write_str("there is no such session"),
            SessionError::NoSuchRequest => f.write_str("there is no such permission request"),
            SessionError::NoSuchQuestion => f.write_str("there is no such question"),
            SessionError::Settled(_) => f.write_str("the request was already settled"),
            SessionError::Conflict(what) => write!(f, "{what} was used before with other content"),
            SessionError::CursorAhead { last_seq } => write!(f, "the journal ends at {last_seq}"),
            SessionError::BadParam(name, why) | SessionError::Unsupported(name, why) => {
                write!(f, "{name}: {why}")
            }
            SessionError::StaleTrust { .. } => f.write_str("the folder has changed since"),
            SessionError::JournalFull { held, most } => write!(
                f,
                "the journal holds {held} bytes and [limits] journal_size allows {most}: delete sessions, or raise \
                 it; nothing was taken in"
            ),
            SessionError::ShuttingDown => f.write_str("the daemon is stopping"),
            SessionError::Crashed => f.write_str("the session failed in an unforeseen way"),
            SessionError::Policy(error) => error.fmt(f),
            SessionError::Store(error) => write!(f, "could not {error}"),
        }
    }
}

impl std::error::Error for SessionError {}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        SessionError::Store(error)
    }
}

impl From<Refusal> for SessionError {
    fn from(refusal: Refusal) -> Self {
        SessionError::Refused(refusal)
    }
}
