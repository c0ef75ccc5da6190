//! Plain rows of jobs, schedules, worktrees and messages, which their owners pass to the store.

use serde::{Deserialize, Serialize};

use crate::rows::{Idempotency, SessionKey};
use types::audit::AuditNote;
use types::blob::Blob;
use types::ids::{JobId, MessageId, ScheduleId, SessionId};
use types::job::{DeliveryStatus, JobEvent, JobState};
use types::time::Timestamp;
use types::worktree::WorktreeChoice;

/// One step of a job, written completely or not at all.
#[derive(Clone, Debug, Default)]
pub struct JobCommit {
    /// Changes of rows, in their order.
    pub writes: Vec<JobWrite>,
    /// Audit rows of these decisions.
    pub audit: Vec<AuditNote>,
    /// A reply to store.
    pub idempotency: Option<Idempotency>,
    /// Time of the step.
    pub at: Timestamp,
}

/// A change of a row.
#[derive(Clone, Debug)]
pub enum JobWrite {
    /// A new job with its content.
    Insert(Box<JobRow>, String),
    /// The new state of a job.
    Update(Box<JobRow>),
    /// New content of a job that has not started.
    Request(JobId, String),
    /// Removes a job with its events and messages.
    Delete(JobId),
    Event(Box<JobEvent>),
    /// Content that a session keeps, for example artifacts. An existing blob stays unchanged.
    Blobs(SessionKey, Vec<Blob>),
    /// A message that is owed from now on.
    Owe(Box<OwedDelivery>),
    /// The state of a message after a try.
    DeliveryTry(Box<DeliveryTry>),
    /// A value that outlives the daemon; `None` removes it.
    Setting(&'static str, Option<String>),
    /// A worktree, new or changed.
    Worktree(Box<WorktreeRow>),
    /// A change of a schedule.
    Schedule(ScheduleWrite),
}

/// A job's row without its content.
#[derive(Clone, Debug)]
pub struct JobRow {
    pub job_id: JobId,
    pub state: JobState,
    /// Its folder.
    pub cwd: String,
    /// The schedule that created it.
    pub schedule_id: Option<ScheduleId>,
    /// The template that it was made from.
    pub template: Option<String>,
    /// The key that no other job may have; `None` if other jobs may be created.
    pub unique_key: Option<String>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Start of its first attempt.
    pub started_at: Option<Timestamp>,
    /// Time of its final state.
    pub ended_at: Option<Timestamp>,
    /// Known cost of all attempts, in millionths of a dollar.
    pub cost_usd_micros: u64,
    /// The whole state as JSON.
    pub record: String,
}

/// A change of a row of schedules. It is a part of a step of a job, so that a slot fires together with its job.
#[derive(Clone, Debug)]
pub enum ScheduleWrite {
    /// A new schedule with its state as JSON.
    Insert(ScheduleId, String),
    /// The new state of a schedule as JSON.
    Update(ScheduleId, String),
    /// Deletes a schedule and its firings. Its jobs stay.
    Delete(ScheduleId),
    /// A slot fires. The step fails with `Taken` if it fired before.
    Fire {
        schedule_id: ScheduleId,
        slot: Timestamp,
        /// The job of this slot.
        job_id: JobId,
    },
}

/// A worktree that the daemon made or makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRow {
    /// Name of its folder.
    pub name: String,
    /// The job that it belongs to.
    pub job_id: Option<JobId>,
    /// The session that works in it.
    pub session_id: Option<SessionId>,
    /// Its folder, absolute.
    pub path: String,
    /// The top of the work tree that it was made from; for a bare repository its folder.
    pub repository: String,
    /// The folder that its owner named.
    pub base_folder: String,
    /// Its branch; empty while it is made.
    pub branch: String,
    /// Whether the branch was made with it.
    pub is_new_branch: bool,
    /// The commit that it started from; empty while it is made.
    pub base: String,
    /// What the owner wanted.
    pub choice: WorktreeChoice,
    /// Uncommitted changes of the base folder's work tree.
    pub uncommitted_in_base: u64,
    /// Whether it is complete.
    pub is_complete: bool,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time at which its owner was finished.
    pub finished_at: Option<Timestamp>,
    /// Time of its removal.
    pub removed_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorktreeOwner {
    Job(JobId),
    Session(SessionId),
}

/// A message that is owed from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedDelivery {
    pub job_id: JobId,
    /// Id of the message, the same for all tries.
    pub message_id: MessageId,
    /// The table `[jobs.notify.NAME]`.
    pub target: String,
    /// The state that it reports.
    pub job_state: JobState,
    /// Time of the state.
    pub owed_at: Timestamp,
    /// The message.
    pub body: String,
}

/// The state of a message after a try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryTry {
    pub job_id: JobId,
    pub message_id: MessageId,
    /// The table `[jobs.notify.NAME]`.
    pub target: String,
    /// How far it is.
    pub status: DeliveryStatus,
    /// Number of tries so far.
    pub tries: u32,
    /// Time of the next try; `None` if none follows.
    pub next_try: Option<Timestamp>,
    /// Why the try failed, without addresses and keys.
    pub error: Option<String>,
}
