//! Errors of jobs.

use std::fmt;

use session::SessionError;
use store::StoreError;
use types::ids::JobId;
use types::job::JobState;

/// A refusal or a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum JobsError {
    /// There is no such job.
    NotFound,
    /// There is no such schedule.
    NoSuchSchedule,
    /// There are as many schedules as there may be.
    TooManySchedules {
        /// How many.
        most: usize,
    },
    /// A parameter is invalid.
    BadParam {
        /// Path of the field.
        path: String,
        /// How to correct it.
        why: String,
    },
    /// An attempt of the job lives.
    Running(JobId),
    /// The job is over.
    NotPending(JobState),
    /// The job is not over.
    NotOver(JobState),
    /// Another job has the same unique key.
    UniqueKeyTaken(JobId),
    /// The idempotency key was used with other parameters.
    KeyConflict,
    /// The slot of the schedule has a job already.
    SlotFired,
    /// Too many jobs wait for their start.
    QueueFull {
        /// `[jobs] max_queued`.
        most: u32,
    },
    /// The daemon is stopping.
    ShuttingDown,
    /// A parameter of the attempt's session is invalid, or the session layer failed.
    Session(SessionError),
    /// The store failed.
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

impl fmt::Display for JobsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such job"),
            Self::NoSuchSchedule => f.write_str("there is no such schedule"),
            Self::TooManySchedules { most } => write!(f, "there are {most} schedules already; delete one"),
            Self::BadParam { path, why } => write!(f, "{path}: {why}"),
            Self::Running(_) => f.write_str("an attempt of the job runs; cancel it first, or wait"),
            Self::NotPending(state) => write!(f, "the job is {} already", state.name()),
            Self::NotOver(state) => write!(f, "the job is {} and not over", state.name()),
            Self::UniqueKeyTaken(id) => {
                write!(f, "unique: {id} has this key; wait for it, or choose another key")
            }
            Self::KeyConflict => f.write_str("idempotency_key: it was used before with other parameters"),
            Self::SlotFired => f.write_str("the slot of the schedule has a job already"),
            Self::QueueFull { most } => {
                write!(f, "{most} jobs wait already ([jobs] max_queued); try again when some have started")
            }
            Self::ShuttingDown => f.write_str("the daemon is stopping"),
            Self::Session(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for JobsError {}

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
