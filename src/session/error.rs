//! Errors of sessions. `Display` tells the caller what happened and how to correct it.

use engine::Refusal;
use project::policy::PolicyError;
use store::StoreError;
use types::ids::{ItemId, Seq};

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SessionError {
    /// The engine refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("there is no such session; session.list names them")]
    NotFound,
    #[error("there is no such permission request; permission.list names the pending ones")]
    NoSuchRequest,
    #[error("item_id: the session has no such item, or it was rewound; session.items names them")]
    NoSuchItem(ItemId),
    /// The project has no such note. The text names the notes that exist.
    #[error("{0}")]
    NoSuchNote(String),
    #[error("there is no such question; question.requested events of the session name them")]
    NoSuchQuestion,
    /// The request was settled already. Contains the event that settled it, as JSON.
    #[error("the request was already settled")]
    Settled(String),
    /// The id or key was used before with different content.
    #[error("{0} was used before with other parameters")]
    Conflict(&'static str),
    /// The cursor is beyond the end of the journal.
    #[error("after_seq is beyond the journal, which ends at {last_seq}")]
    CursorAhead { last_seq: Seq },
    /// The folder has changed since the user reviewed it for trust. `digest` is the current one.
    #[error("digest: the folder has changed since; look at it again with workspace.status")]
    StaleTrust { digest: String },
    /// A parameter is invalid. The values are its name and how to correct it.
    #[error("{0}: {1}")]
    BadParam(&'static str, String),
    /// No command has this name; `nearest` is the most similar one.
    #[error(
        "input: there is no command /{name};{} /help lists them; raw: true sends the text to the model",
        .nearest.as_ref().map(|nearest| format!(" did you mean /{nearest}?")).unwrap_or_default()
    )]
    UnknownCommand { name: String, nearest: Option<String> },
    /// A value is known but not supported yet. The values are the parameter's name and the reason.
    #[error("{0}: {1}")]
    Unsupported(&'static str, String),
    /// A hook of the user refused the input for this reason.
    #[error("a hook refused the input: {0}")]
    HookDenied(String),
    /// The journal exceeds its size limit; both values are in bytes.
    #[error(
        "the journal holds {held} bytes and [limits] journal_size allows {most}: delete sessions, or raise it; \
         nothing was taken in"
    )]
    JournalFull { held: u64, most: u64 },
    #[error("the daemon is stopping")]
    ShuttingDown,
    /// The session's task panicked while it handled this request.
    #[error(
        "the session failed unexpectedly; its journal is stored; read it with `agentctl logs` and try again"
    )]
    Crashed,
    #[error(transparent)]
    Worktree(WorktreeError),
    #[error(transparent)]
    Policy(PolicyError),
    #[error("could not {0}")]
    Store(#[from] StoreError),
}

impl SessionError {
    /// The parameter that is wrong.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        match self {
            SessionError::Refused(refusal) => refusal.path(),
            SessionError::NoSuchItem(_) => Some("item_id"),
            SessionError::NoSuchNote(_) => Some("name"),
            SessionError::StaleTrust { .. } => Some("digest"),
            SessionError::UnknownCommand { .. } | SessionError::HookDenied(_) => Some("input"),
            SessionError::BadParam(path, _) | SessionError::Unsupported(path, _) => Some(path),
            SessionError::Policy(PolicyError::BadRule(_)) => Some("rule"),
            SessionError::Store(StoreError::Target(_)) => Some("path"),
            _ => None,
        }
    }
}

/// Why a worktree could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeError {
    /// The daemon made no worktree for this job or session.
    #[error("there is no worktree of this job or session")]
    NotFound,
    /// A session or a job uses it.
    #[error("{0}")]
    InUse(String),
    /// It has so many files with changes.
    #[error("{0} files have changes that are not committed; commit them, or use force to lose them")]
    Uncommitted(u64),
    /// Its branch was not merged. `reason` is a stable code: `conflicts`, `diverged`, `target_changed` or `no_target`.
    #[error("{why}")]
    NotMerged { reason: &'static str, why: String, files: Vec<String> },
    /// Git or the disk failed.
    #[error("{0}")]
    Failed(String),
}
