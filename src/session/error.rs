//! Errors of sessions.

use std::fmt;

use engine::Refusal;
use project::policy::PolicyError;
use store::StoreError;
use types::ids::{ItemId, Seq};

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionError {
    /// The engine refused the request.
    Refused(Refusal),
    /// The session does not exist.
    NotFound,
    /// The permission request does not exist.
    NoSuchRequest,
    /// The session has no such item.
    NoSuchItem(ItemId),
    /// The project has no such note. The text names the notes that exist.
    NoSuchNote(String),
    /// The question does not exist.
    NoSuchQuestion,
    /// The request was settled already. Contains the event that settled it, as JSON.
    Settled(String),
    /// The id or key was used before with different content.
    Conflict(&'static str),
    /// The cursor is beyond the end of the journal.
    CursorAhead {
        /// Seq of the last event.
        last_seq: Seq,
    },
    /// The folder has changed since the user reviewed it for trust.
    StaleTrust {
        /// The current digest of the folder.
        digest: String,
    },
    /// A parameter is invalid. The values are its name and how to correct it.
    BadParam(&'static str, String),
    /// No command has this name.
    UnknownCommand {
        /// The name without the slash.
        name: String,
        /// The most similar name of a command.
        nearest: Option<String>,
    },
    /// A value is known but not supported yet. The values are the parameter's name and the reason.
    Unsupported(&'static str, String),
    /// A hook of the user refused the input for this reason.
    HookDenied(String),
    /// The journal exceeds its size limit, in bytes.
    JournalFull {
        /// Current size in bytes.
        held: u64,
        /// Limit in bytes.
        most: u64,
    },
    /// The daemon is stopping.
    ShuttingDown,
    /// The session's task panicked while it handled this request.
    Crashed,
    /// A worktree could not be used.
    Worktree(WorktreeError),
    /// A policy file could not be read or changed.
    Policy(PolicyError),
    /// The store failed.
    Store(StoreError),
}

/// Why a worktree could not be used. The texts are for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeError {
    /// The daemon made no worktree for this job or session.
    NotFound,
    /// A session or a job uses it.
    InUse(String),
    /// It has so many files with changes that are not committed.
    Uncommitted(u64),
    /// Its branch was not merged.
    NotMerged {
        /// A stable code: `conflicts`, `diverged`, `target_changed` or `no_target`.
        reason: &'static str,
        /// Text for users.
        why: String,
        /// The files with conflicts.
        files: Vec<String>,
    },
    /// Git or the disk failed.
    Failed(String),
}

impl fmt::Display for WorktreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorktreeError::NotFound => f.write_str("there is no worktree of this job or session"),
            WorktreeError::Uncommitted(count) => write!(
                f,
                "{count} files have changes that are not committed; commit them, or use force to lose them"
            ),
            WorktreeError::InUse(why) | WorktreeError::NotMerged { why, .. } | WorktreeError::Failed(why) => {
                f.write_str(why)
            }
        }
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Refused(refusal) => write!(f, "refused: {refusal:?}"),
            SessionError::NotFound => f.write_str("there is no such session"),
            SessionError::NoSuchRequest => f.write_str("there is no such permission request"),
            SessionError::NoSuchItem(item_id) => write!(f, "the session has no item {item_id}"),
            SessionError::NoSuchNote(why) => f.write_str(why),
            SessionError::NoSuchQuestion => f.write_str("there is no such question"),
            SessionError::Settled(_) => f.write_str("the request was already settled"),
            SessionError::Conflict(what) => write!(f, "{what} was used before with other content"),
            SessionError::CursorAhead { last_seq } => write!(f, "the journal ends at {last_seq}"),
            SessionError::BadParam(name, why) | SessionError::Unsupported(name, why) => {
                write!(f, "{name}: {why}")
            }
            SessionError::UnknownCommand { name, .. } => write!(f, "there is no command /{name}"),
            SessionError::StaleTrust { .. } => f.write_str("the folder has changed since"),
            SessionError::JournalFull { held, most } => write!(
                f,
                "the journal holds {held} bytes and [limits] journal_size allows {most}: delete sessions, or raise \
                 it; nothing was taken in"
            ),
            SessionError::HookDenied(reason) => write!(f, "a hook refused the input: {reason}"),
            SessionError::ShuttingDown => f.write_str("the daemon is stopping"),
            SessionError::Crashed => f.write_str("the session failed unexpectedly"),
            SessionError::Policy(error) => error.fmt(f),
            SessionError::Worktree(error) => error.fmt(f),
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
