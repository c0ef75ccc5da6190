//! Attempts: a session is created and gets the prompt; later its result is read, or it is stopped.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::{JobRunner, Phase, WorkDone};
use crate::artifacts;
use crate::command::corrupt;
use crate::create::session_request;
use crate::decide::AttemptEnd;
use crate::decide::unknown_call::newest_outside;
use crate::error::JobsError;
use crate::record::{JobRecord, Spent};
use crate::services::Services;
use crate::session_events;
use session::{
    IdempotencyKey, LedgerQuery, NewSessionRequest, QueueChange, QueueEdit, Registry, SessionError,
};
use session::{SettingsUpdate, Submission, SubmittedInput};
use store::{JobCommit, JobWrite, StoreError};
use types::event::Origin;
use types::ids::{JobId, SessionId};
use types::job::JobError;
use types::job_request::JobRequest;
use types::message::InputBlock;
use types::session::SessionState;
use types::turn_options::TurnOptions;
use types::turn_result::Subtype;
use types::usage::{Budgets, ModelUsage};

/// Why an attempt did not start.
enum StartFailure {
    /// It cannot start.
    Failed(JobError),
    /// The storage failed; a later try may succeed.
    Later,
    /// A cancel came first.
    Cancelled,
}

impl JobRunner {
    /// Creates the session of the newest attempt and submits the prompt. Each part may be repeated.
    pub(super) fn spawn_start(&mut self, record: JobRecord) {
        let (id, cancel, services) = (record.job.job_id, CancellationToken::new(), self.services());
        self.spawn(id, Phase::Starting(cancel.clone()), start(services, record, cancel));
    }

    /// Reads the result of the newest attempt, whose session has stopped.
    pub(super) fn spawn_end(&mut self, record: JobRecord) {
        let (id, services) = (record.job.job_id, self.services());
        self.spawn(id, Phase::Ending, async move {
            let end = end_attempt(&services, &record, None).await;
            WorkDone::Ended(id, Box::new(end), Vec::new())
        });
    }

    /// Stops an attempt for a committed cancel. While its session is being created, only that is stopped first.
    pub(super) fn stop_attempt(&mut self, record: JobRecord) {
        match self.attempts.get(&record.job.job_id).map(|attempt| &attempt.phase) {
            Some(Phase::Starting(cancel)) => cancel.cancel(),
            // The end of the attempt is being read already; the cancel wins when it is decided.
            Some(Phase::Ending) => {}
            _ => self.spawn_stop(record),
        }
    }

    pub(super) fn spawn_stop(&mut self, record: JobRecord) {
        let (id, services) = (record.job.job_id, self.services());
        self.spawn(id, Phase::Ending, async move {
            let survivors = stop(&services, &record).await;
            base::crash::point("JC7.stopped");
            let end = end_attempt(&services, &record, None).await;
            WorkDone::Ended(id, Box::new(end), survivors)
        });
    }

    fn spawn(&mut self, id: JobId, phase: Phase, work: impl Future<Output = WorkDone> + Send + 'static) {
        if let Some(attempt) = self.attempts.get_mut(&id) {
            attempt.phase = phase;
        }
        let task = self.work.spawn(work);
        self.work_of.insert(task.id(), id);
    }

    /// Gives the session of a running attempt the raised limits of its job.
    pub(super) async fn raise_session_limits(&self, record: &JobRecord, session_id: SessionId) {
        let options = TurnOptions { budgets: Some(attempt_budgets(record)), ..TurnOptions::default() };
        let update = SettingsUpdate {
            title: None,
            options,
            environment: None,
            mcp_servers: None,
            keyed: None,
            origin: daemon_origin(),
        };
        if let Err(error) = self.registry.update(session_id, update).await {
            tracing::warn!(job = %record.job.job_id, %error, "the raised limits hold from the next attempt on");
        }
    }
}

/// The client name under which the daemon acts for jobs.
fn daemon_origin() -> Origin {
    Origin { client: "agentd jobs".into(), ..Origin::default() }
}

fn failed(id: JobId, error: JobError) -> WorkDone {
    WorkDone::Ended(id, Box::new(AttemptEnd { error: Some(error), ..AttemptEnd::default() }), Vec::new())
}

/// The limits of an attempt's session: what is left of the job's. They hold for all turns of the session together.
fn attempt_budgets(record: &JobRecord) -> Budgets {
    let left = record.remaining();
    Budgets {
        session_usd_micros: left.usd_micros,
        session_model_calls: left.model_calls,
        session_output_tokens: left.output_tokens,
        session_wall_time_ms: left.wall_time_ms,
        ..left
    }
}

async fn start(services: Services, record: JobRecord, cancel: CancellationToken) -> WorkDone {
    let id = record.job.job_id;
    if record.worktree.is_some() && record.worktree_place.is_none() {
        return match crate::worktree::create(&services, &record, &cancel).await {
            Ok(place) => WorkDone::Placed(id, Box::new(place)),
            Err(_) if cancel.is_cancelled() => {
                let end = end_attempt(&services, &record, None).await;
                WorkDone::Ended(id, Box::new(end), Vec::new())
            }
            Err(error) => failed(id, error),
        };
    }
    match start_session(&services, &record, &cancel).await {
        Ok(()) => WorkDone::Started(id),
        Err(StartFailure::Failed(error)) => {
            let end = end_attempt(&services, &record, Some(error)).await;
            WorkDone::Ended(id, Box::new(end), Vec::new())
        }
        Err(StartFailure::Later) => {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            WorkDone::StartAgain(id)
        }
        Err(StartFailure::Cancelled) => {
            let survivors = stop(&services, &record).await;
            let end = end_attempt(&services, &record, None).await;
            WorkDone::Ended(id, Box::new(end), survivors)
        }
    }
}

async fn start_session(
    services: &Services,
    record: &JobRecord,
    cancel: &CancellationToken,
) -> Result<(), StartFailure> {
    let registry = &services.registry;
    let job = &record.job;
    let request = match read_content(services, job.job_id).await {
        Ok(request) => request,
        Err(JobsError::Store(StoreError::Corrupt(why))) => {
            return Err(StartFailure::Failed(JobError::new("internal", why)));
        }
        Err(_) => return Err(StartFailure::Later),
    };
    let Some(session_id) = job.session_id else {
        return Err(StartFailure::Failed(JobError::new("internal", "the attempt has no session")));
    };
    if cancel.is_cancelled() {
        return Err(StartFailure::Cancelled);
    }
    match registry.view(session_id).await {
        Ok(view) if view.summary.state == SessionState::Archived => {
            let session = registry.open(session_id).await.map_err(failure)?;
            session.archive(false, None, daemon_origin()).await.map_err(failure)?;
        }
        Ok(_) => {}
        Err(SessionError::NotFound) => {
            let mut new = session_request(&request, Some(daemon_origin()));
            new.session_id = Some(session_id);
            new.job_id = Some(job.job_id);
            new.options.budgets = Some(attempt_budgets(record));
            if let Some(place) = &record.worktree_place {
                new.cwd.clone_from(&place.cwd);
            }
            create_session(registry, new).await?;
        }
        Err(error) => return Err(failure(error)),
    }
    base::crash::point("JC2.session");
    if cancel.is_cancelled() {
        return Err(StartFailure::Cancelled);
    }
    session_events::tell(registry, job.job_id, session_id, job.seq).await;
    let text = request.prompt.clone().unwrap_or_default();
    let is_continued = record.attempts.iter().filter(|it| it.session_id == session_id).count() > 1;
    let budgets = is_continued.then(|| attempt_budgets(record));
    let submission = Submission {
        when_busy: None,
        expected_turn: None,
        options: TurnOptions { budgets, ..TurnOptions::default() },
        raw: true,
        runs_hooks: true,
        // A repeated start of the same attempt submits nothing twice.
        keyed: Some(IdempotencyKey {
            key: format!("attempt:{}", job.attempt),
            digest: format!("{}:{}", job.job_id, job.attempt),
        }),
        origin: daemon_origin(),
    };
    let input = SubmittedInput { blocks: vec![InputBlock::Text { text }], blobs: Vec::new() };
    let submitted = registry.submit(session_id, submission, |error| error, async { Ok(input) }).await;
    submitted.map(|_| ()).map_err(failure)
}

async fn read_content(services: &Services, id: JobId) -> Result<JobRequest, JobsError> {
    let stored = services.store.job(id).await?.ok_or(JobsError::NotFound)?;
    serde_json::from_str(&stored.request).map_err(|error| corrupt(&error))
}

async fn create_session(registry: &Registry, new: NewSessionRequest) -> Result<(), StartFailure> {
    registry.create(new).await.map(|_| ()).map_err(failure)
}

fn failure(error: SessionError) -> StartFailure {
    let kind = match &error {
        SessionError::Store(_) | SessionError::ShuttingDown => return StartFailure::Later,
        SessionError::HookDenied(_) => "hook_denied",
        SessionError::JournalFull { .. } => "journal_full",
        _ => "session",
    };
    StartFailure::Failed(JobError::new(kind, error.to_string()))
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

/// Ends the newest attempt, whose session has stopped or was never created: reads its result, ends the work in its
/// worktree and archives its session. All of it may be repeated, so a crash before the job's next state loses nothing.
async fn end_attempt(services: &Services, record: &JobRecord, error: Option<JobError>) -> AttemptEnd {
    let Some(session_id) = record.job.session_id else {
        return AttemptEnd { error, ..AttemptEnd::default() };
    };
    let mut end = read_end(services, record, session_id).await;
    end.error = error.or(end.error);
    if record.worktree.is_some() {
        match crate::worktree::finish(services, record).await {
            Ok(git) => end.git = git,
            Err(error) => {
                end.error.get_or_insert(error);
            }
        }
    }
    archive(services, record, session_id).await;
    end
}

/// How the newest attempt ended: its result, what it used, and the files to keep.
async fn read_end(services: &Services, record: &JobRecord, session_id: SessionId) -> AttemptEnd {
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
    keep_artifacts(services, record, &mut end).await;
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

/// Archives the session of an attempt that is over. Best effort: clients may archive it as well, and the next attempt may
/// go on in it.
async fn archive(services: &Services, record: &JobRecord, session_id: SessionId) {
    let archiving = async {
        let session = services.registry.open(session_id).await?;
        session.archive(true, None, daemon_origin()).await
    };
    if let Err(error) = archiving.await {
        tracing::warn!(job = %record.job.job_id, %error, "the session of an attempt stays unarchived");
    }
}
