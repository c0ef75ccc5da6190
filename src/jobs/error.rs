//! Errors of jobs.

use session::SessionError;
use store::StoreError;
use types::ids::JobId;
use types::job::JobState;

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobsError {
    #[error("there is no such job")]
    NotFound,
    #[error("there is no such schedule")]
    NoSuchSchedule,
    #[error("there are {most} schedules already; delete one")]
    TooManySchedules {
        /// How many.
        most: usize,
    },
    /// A parameter is invalid.
    #[error("{path}: {why}")]
    BadParam {
        /// Path of the field.
        path: String,
        /// How to correct it.
        why: String,
    },
    /// An attempt of the job lives.
    #[error("an attempt of the job runs; cancel it first, or wait")]
    Running(JobId),
    /// The job is over.
    #[error("the job is {} already", .0.name())]
    NotPending(JobState),
    #[error("the job is {} and not over", .0.name())]
    NotOver(JobState),
    /// Another job has the same unique key.
    #[error("unique: {0} has this key; wait for it, or choose another key")]
    UniqueKeyTaken(JobId),
    #[error("idempotency_key: it was used before with other parameters")]
    KeyConflict,
    #[error("the slot of the schedule has a job already")]
    SlotFired,
    /// Too many jobs wait for their start.
    #[error("{most} jobs wait already ([jobs] max_queued); try again when some have started")]
    QueueFull {
        /// `[jobs] max_queued`.
        most: u32,
    },
    #[error("the daemon is stopping")]
    ShuttingDown,
    /// A parameter of the attempt's session is invalid, or the session layer failed.
    #[error(transparent)]
    Session(SessionError),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl JobsError {
    /// Whether a stored row is damaged, so that a repeated call fails as well.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Store(StoreError::Corrupt(_)) | Self::Session(SessionError::Store(StoreError::Corrupt(_)))
        )
    }

    /// An invalid parameter.
    pub(crate) fn bad(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::BadParam { path: path.into(), why: why.into() }
    }
}

impl From<SessionError> for JobsError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::BadParam(path, why) => Self::bad(path, why),
            SessionError::ShuttingDown => Self::ShuttingDown,
            other => Self::Session(other),
        }
    }
}

impl From<StoreError> for JobsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Closed => Self::ShuttingDown,
            other => Self::Store(other),
        }
    }
}
