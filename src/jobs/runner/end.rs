//! The end of an attempt: its work is stopped, its session is archived, its result is read, and the work in its worktree is
//! ended. All of it may be repeated, so a crash before the job's next state loses nothing.
//!
//! The session is archived first: it takes no input then, so that what is read afterwards stays true.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::content::read_content;
use super::{WorkDone, retry_wait};
use crate::artifacts;
use crate::decide::AttemptEnd;
use crate::decide::unknown_call::newest_outside;
use crate::record::{JobRecord, Spent};
use crate::services::{Services, daemon_origin};
use session::{LedgerQuery, QueueChange, QueueEdit, Refusal, SessionError};
use store::{JobCommit, JobWrite};
use types::ids::SessionId;
use types::job::JobError;
use types::session::SessionState;
use types::turn_result::Subtype;
use types::usage::ModelUsage;
use types::worktree::GitResult;

/// Time that git has after a cancel to end the work in a worktree. Then it is stopped, and the worktree is kept.
const GIT_TIME_AFTER_CANCEL: Duration = Duration::from_secs(3);
/// How often an attempt is stopped again because a client gave its session more work meanwhile.
const MAX_STOPS: u32 = 5;
/// How often the archiving of a session is tried before the job ends without it. Together these tries take six seconds.
const MAX_ARCHIVE_TRIES: u32 = 6;

/// Whether a session still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// It does not, or it is gone.
    Yes,
    /// A client gave it more work before it was archived.
    Busy,
    /// The daemon stops. Its next start ends the attempt.
    ShuttingDown,
}

/// Ends an attempt whose session has stopped by itself. If a client gave the session more work, the attempt goes on. After
/// `hurry`, git has little time left.
pub(super) async fn end(services: &Services, record: &JobRecord, hurry: &CancellationToken) -> WorkDone {
    let id = record.job.job_id;
    match close_session(services, record).await {
        Closed::Yes => {
            let end = read_and_finish(services, record, None, hurry).await;
            WorkDone::Ended(id, Box::new(end), Vec::new())
        }
        Closed::Busy => WorkDone::GoesOn(id),
        Closed::ShuttingDown => WorkDone::ShuttingDown,
    }
}

/// Stops an attempt and ends it; `error` says why it could not be started. Its session may not exist. See [`end`].
pub(super) async fn stop_and_end(
    services: &Services,
    record: &JobRecord,
    error: Option<JobError>,
    hurry: &CancellationToken,
) -> WorkDone {
    let mut survivors = Vec::new();
    for _ in 0..MAX_STOPS {
        survivors.extend(stop(services, record).await);
        match close_session(services, record).await {
            Closed::Yes => break,
            Closed::Busy => {}
            Closed::ShuttingDown => return WorkDone::ShuttingDown,
        }
    }
    base::crash::point("JC7.stopped");
    let end = read_and_finish(services, record, error, hurry).await;
    WorkDone::Ended(record.job.job_id, Box::new(end), survivors)
}

/// Stops the session of the newest attempt: nothing runs or waits in it afterwards. Returns the processes that survived.
async fn stop(services: &Services, record: &JobRecord) -> Vec<i32> {
    let Some(session_id) = record.job.session_id else { return Vec::new() };
    let stopping = async {
        let session = services.registry.open(session_id).await?;
        let clear = QueueChange { edit: QueueEdit::Clear, keyed: None, origin: daemon_origin() };
        session.edit_queue(clear).await?;
        session.abort(None, None, None, daemon_origin()).await
    };
    match stopping.await {
        Ok(outcome) => outcome.survivors,
        Err(SessionError::NotFound) => Vec::new(),
        Err(error) => {
            tracing::warn!(job = %record.job.job_id, %error, "the attempt could not be stopped cleanly");
            Vec::new()
        }
    }
}

/// Archives the session of an attempt that is over. If that fails, [`crate::unarchived`] tries it again later.
async fn close_session(services: &Services, record: &JobRecord) -> Closed {
    let Some(session_id) = record.job.session_id else { return Closed::Yes };
    for failures in 0..MAX_ARCHIVE_TRIES {
        let error = match archive(services, session_id).await {
            Ok(()) | Err(SessionError::NotFound | SessionError::Refused(Refusal::Ended)) => {
                return Closed::Yes;
            }
            Err(SessionError::Refused(Refusal::Busy { .. })) => return Closed::Busy,
            Err(SessionError::ShuttingDown) => return Closed::ShuttingDown,
            Err(error) => error,
        };
        tracing::warn!(job = %record.job.job_id, %error, "the session of an attempt could not be archived yet");
        tokio::time::sleep(retry_wait(failures)).await;
    }
    Closed::Yes
}

/// Archives a session, after its background commands were stopped. Then stops its sub-agents.
///
/// # Errors
/// A turn is open, a command does not end, the session does not exist or has ended, or the store failed.
pub(crate) async fn archive(services: &Services, session_id: SessionId) -> Result<(), SessionError> {
    let session = services.registry.open(session_id).await?;
    for command in services.registry.view(session_id).await?.background_commands {
        session.abort(None, Some(command.call_id), None, daemon_origin()).await?;
    }
    session.archive(true, None, daemon_origin()).await?;
    session.abort(None, None, None, daemon_origin()).await.map(|_| ())
}

/// Reads how the newest attempt ended, and ends the work in its worktree.
async fn read_and_finish(
    services: &Services,
    record: &JobRecord,
    error: Option<JobError>,
    hurry: &CancellationToken,
) -> AttemptEnd {
    let Some(session_id) = record.job.session_id else {
        return AttemptEnd { error, ..AttemptEnd::default() };
    };
    let mut end = read_end(services, record, session_id, hurry).await;
    end.error = error.or(end.error);
    if record.worktree.is_some() {
        match finish_worktree(services, record, hurry).await {
            Ok(git) => end.git = git,
            Err(error) => {
                end.error.get_or_insert(error);
            }
        }
    }
    end
}

async fn finish_worktree(
    services: &Services,
    record: &JobRecord,
    hurry: &CancellationToken,
) -> Result<Option<GitResult>, JobError> {
    let stop_git = CancellationToken::new();
    let finishing = crate::worktree::finish(services, record, &stop_git);
    tokio::pin!(finishing);
    tokio::select! {
        finished = &mut finishing => return finished,
        () = overdue(hurry) => {}
    }
    stop_git.cancel();
    finishing.await
}

/// Returns when the time after a cancel is over.
async fn overdue(hurry: &CancellationToken) {
    hurry.cancelled().await;
    tokio::time::sleep(GIT_TIME_AFTER_CANCEL).await;
}

/// How the newest attempt ended: its result, what it used, and the files to keep.
async fn read_end(
    services: &Services,
    record: &JobRecord,
    session_id: SessionId,
    hurry: &CancellationToken,
) -> AttemptEnd {
    let registry = &services.registry;
    let mut end = AttemptEnd { spent: spent(services, record).await, ..AttemptEnd::default() };
    let view = match registry.view(session_id).await {
        Ok(view) => view,
        Err(SessionError::NotFound) => {
            end.error = Some(JobError::new("session", "the session of the attempt was deleted"));
            return end;
        }
        Err(error) => {
            end.error = Some(JobError::new("session", error.to_string()));
            return end;
        }
    };
    end.result = match registry.last_result(session_id).await {
        Ok(result) => result,
        Err(error) => {
            tracing::warn!(job = %record.job.job_id, %error, "the result of an attempt could not be read");
            None
        }
    };
    if view.summary.state == SessionState::Ended {
        end.error = Some(JobError::new("killed", "the session of the attempt was killed"));
    }
    let is_success = end.result.as_ref().is_some_and(|result| result.subtype == Subtype::Success);
    if !is_success {
        end.unknown_outcome = unknown_outcome(services, record, session_id).await;
    }
    if let Some(turn) = &end.result
        && let Some(spent) = &mut end.spent
    {
        spent.wall_time_ms += turn.duration_ms.saturating_sub(turn.permission_ms);
        spent.turn_calls += turn.model_calls;
    }
    tokio::select! {
        () = keep_artifacts(services, record, &mut end) => {}
        () = overdue(hurry) => {
            tracing::warn!(job = %record.job.job_id, "the artifacts are not kept, because the job was cancelled");
        }
    }
    end
}

/// Why the attempt must not be repeated by itself; `None` if it may be.
async fn unknown_outcome(services: &Services, record: &JobRecord, session_id: SessionId) -> Option<JobError> {
    let events = match services.store.events_of_unknown_calls(session_id).await {
        Ok(events) => events,
        Err(error) => {
            let why = format!("the daemon cannot tell whether a call has an unknown outcome ({error})");
            return Some(JobError::new("unknown_outcome", format!("{why}, so the job is not repeated")));
        }
    };
    let worktree = record.worktree_place.as_ref().map(|place| PathBuf::from(&place.path));
    // Paths in the journal are free of links.
    let worktree = worktree.map(|path| path.canonicalize().unwrap_or(path));
    let call_id = newest_outside(&events, worktree.as_deref())?;
    let message = format!(
        "the outcome of {call_id} is unknown and it could reach outside of a worktree, so the job is not repeated; \
         look at what it did, then use job.retry"
    );
    Some(JobError { call_id: Some(call_id), ..JobError::new("unknown_outcome", message) })
}

/// Stores the files that the job keeps as blobs of the attempt's session.
async fn keep_artifacts(services: &Services, record: &JobRecord, end: &mut AttemptEnd) {
    let Ok(request) = read_content(services, record.job.job_id).await else { return };
    let Some(session_id) = record.job.session_id.filter(|_| !request.artifacts.is_empty()) else { return };
    let folder = record.worktree_place.as_ref().map_or(&record.job.cwd, |place| &place.cwd);
    let folder = PathBuf::from(folder);
    let collected =
        tokio::task::spawn_blocking(move || artifacts::collect(&folder, &request.artifacts)).await;
    let Ok((kept, blobs)) = collected else { return };
    let Ok(Some(key)) = services.store.find(session_id).await else { return };
    let at = services.registry.shared().clock.now();
    let commit = JobCommit { writes: vec![JobWrite::Blobs(key, blobs)], at, ..JobCommit::default() };
    match services.store.commit_job(commit).await {
        Ok(()) => end.artifacts = kept,
        Err(error) => tracing::warn!(job = %record.job.job_id, %error, "the artifacts could not be kept"),
    }
}

/// What all attempts have used: the ledger of their sessions, with sub-agents.
async fn spent(services: &Services, record: &JobRecord) -> Option<Spent> {
    let mut sessions: Vec<SessionId> = record.attempts.iter().map(|attempt| attempt.session_id).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let mut models = ModelUsage::default();
    for session_id in sessions {
        let query = LedgerQuery { session_id: Some(session_id), ..LedgerQuery::default() };
        models.add(&services.store.ledger_total(query).await.ok()?);
    }
    Some(Spent { models, ..record.spent.clone() })
}
