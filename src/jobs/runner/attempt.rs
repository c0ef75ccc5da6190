//! The start of an attempt: a session is created and gets the prompt.

use tokio_util::sync::CancellationToken;

use super::content::read_content;
use super::end::{end, stop_and_end};
use super::{JobRunner, Phase, WorkDone};
use crate::create::session_request;
use crate::decide::AttemptEnd;
use crate::error::JobsError;
use crate::record::JobRecord;
use crate::services::{Services, daemon_origin};
use crate::session_events;
use session::{IdempotencyKey, NewSessionRequest, Refusal, Registry, SessionError};
use session::{SettingsUpdate, Submission, SubmittedInput};
use store::StoreError;
use types::ids::{JobId, SessionId};
use types::job::JobError;
use types::message::InputBlock;
use types::session::SessionState;
use types::turn_options::TurnOptions;
use types::usage::Budgets;

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
        let (id, hurry, services) = (record.job.job_id, CancellationToken::new(), self.services());
        let phase = Phase::Ending(hurry.clone());
        self.spawn(id, phase, async move { end(&services, &record, &hurry).await });
    }

    /// Stops an attempt for a committed cancel. While its session is being created, only that is stopped first.
    pub(super) fn stop_attempt(&mut self, record: JobRecord) {
        match self.attempts.get(&record.job.job_id).map(|attempt| &attempt.phase) {
            // The end of the attempt may be read already; the cancel wins when it is decided.
            Some(Phase::Starting(cancel) | Phase::Ending(cancel)) => cancel.cancel(),
            _ => self.spawn_stop(record),
        }
    }

    pub(super) fn spawn_stop(&mut self, record: JobRecord) {
        let (id, hurry, services) = (record.job.job_id, CancellationToken::new(), self.services());
        hurry.cancel();
        let phase = Phase::Ending(hurry.clone());
        self.spawn(id, phase, async move { stop_and_end(&services, &record, None, &hurry).await });
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
            Err(_) if cancel.is_cancelled() => stop_and_end(&services, &record, None, &cancel).await,
            Err(error) => failed(id, error),
        };
    }
    match start_session(&services, &record, &cancel).await {
        Ok(()) => WorkDone::Started(id),
        Err(StartFailure::Failed(error)) => stop_and_end(&services, &record, Some(error), &cancel).await,
        Err(StartFailure::Later) => {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            WorkDone::StartAgain(id)
        }
        Err(StartFailure::Cancelled) => stop_and_end(&services, &record, None, &cancel).await,
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

async fn create_session(registry: &Registry, new: NewSessionRequest) -> Result<(), StartFailure> {
    registry.create(new).await.map(|_| ()).map_err(failure)
}

fn failure(error: SessionError) -> StartFailure {
    let kind = match &error {
        SessionError::Store(_) | SessionError::ShuttingDown => return StartFailure::Later,
        // It was archived after it was restored for this attempt, by a user or as a leftover of the last one.
        SessionError::Refused(Refusal::Archived) => return StartFailure::Later,
        SessionError::HookDenied(_) => "hook_denied",
        SessionError::JournalFull { .. } => "journal_full",
        _ => "session",
    };
    StartFailure::Failed(JobError::new(kind, error.to_string()))
}
