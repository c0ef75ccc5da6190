//! Index jobs: at most one per workspace and a few in all. Their tasks belong to the registry.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Indexes;
use super::event_log::{EventLog, LogFollower};
use crate::index::{Budget, IndexRequest, Indexer, estimate, insert_documents, run_job};
use crate::store::{KnowledgeStore, unfinished_jobs};
use crate::traits::JobSink;
use crate::types::{ErrorKind, JobEvent, JobOutcome, KnowledgeError};
use base::sync::lock;
use types::knowledge::{
    IndexEstimate, IndexJobView, IndexLevel, IndexProgress, InsertOutcome, InsertedDocument, KnowledgeEvent,
    QueryError, StartedIndexJob,
};

/// Maximum number of stored events of one job: the newest ones show its progress.
const MAX_EVENTS: usize = 256;
/// Finished jobs that are kept.
const MAX_FINISHED_JOBS: usize = 64;
/// How long a cancellation waits for the end of its job.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// Documents of one insert.
const MAX_DOCUMENTS: usize = 100;

/// Running and finished jobs.
#[derive(Default)]
pub(super) struct IndexJobs {
    known: Mutex<HashMap<String, Arc<IndexJob>>>,
    tasks: Mutex<JoinSet<()>>,
}

struct IndexJob {
    id: String,
    workspace: PathBuf,
    log: Arc<EventLog>,
    cancel: CancellationToken,
    state: Mutex<JobState>,
}

#[derive(Default)]
struct JobState {
    progress: Option<IndexProgress>,
    outcome: Option<JobOutcome>,
}

impl JobSink for IndexJob {
    fn emit(&self, event: JobEvent) {
        match event {
            JobEvent::Progress(progress) => {
                lock(&self.state).progress = Some(progress.clone());
                self.log.push(&KnowledgeEvent::Progress { progress });
            }
            JobEvent::Ended(outcome) => self.end_job(outcome),
        }
    }
}

impl IndexJob {
    fn end_job(&self, outcome: JobOutcome) {
        let event = match &outcome {
            JobOutcome::Done(summary) => {
                KnowledgeEvent::Done { result: None, summary: Some(summary.clone()) }
            }
            JobOutcome::Cancelled => KnowledgeEvent::Cancelled {},
            JobOutcome::Failed { error } => KnowledgeEvent::Failed {
                error: QueryError { kind: "failed".into(), message: error.clone() },
                result: None,
            },
        };
        lock(&self.state).outcome.get_or_insert(outcome);
        self.log.push(&event);
    }

    fn view(&self) -> IndexJobView {
        let state = lock(&self.state);
        let (name, summary, error) = match state.outcome.clone() {
            None => ("running", None, None),
            Some(JobOutcome::Done(summary)) => ("done", Some(summary), None),
            Some(JobOutcome::Cancelled) => ("cancelled", None, None),
            Some(JobOutcome::Failed { error }) => ("failed", None, Some(error)),
        };
        IndexJobView {
            job_id: self.id.clone(),
            state: name.to_owned(),
            progress: state.progress.clone(),
            summary,
            error,
        }
    }
}

/// Ends a job whose task ends without an outcome, for example by a panic.
struct EndGuard(Arc<IndexJob>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        if !self.0.log.is_ended() {
            let error = "could not finish the job: it was stopped; start it again to continue".to_owned();
            self.0.end_job(JobOutcome::Failed { error });
        }
    }
}

impl IndexJobs {
    pub(super) fn running_in(&self, workspace: &Path) -> Option<IndexJobView> {
        self.newest_in(workspace).filter(|job| job.state == "running")
    }

    /// The newest job of a workspace since the start.
    pub(super) fn newest_in(&self, workspace: &Path) -> Option<IndexJobView> {
        let known = lock(&self.known);
        // Ids of later jobs are greater.
        let newest = known.values().filter(|job| job.workspace == workspace).max_by(|a, b| a.id.cmp(&b.id));
        newest.map(|job| job.view())
    }

    fn find(&self, workspace: &Path, id: &str) -> Result<Arc<IndexJob>, KnowledgeError> {
        let known = lock(&self.known);
        known.get(id).filter(|job| job.workspace == workspace).cloned().ok_or_else(|| {
            let text =
                format!("could not find the job {id}: it never existed, or the daemon was restarted since");
            KnowledgeError::new(ErrorKind::NotFound, format!("{text}; see knowledge.status"))
        })
    }

    /// Reserves a slot for a job. Refuses if the workspace or the daemon has enough jobs.
    fn register_job(&self, job: &Arc<IndexJob>, max_jobs: usize) -> Result<(), KnowledgeError> {
        let mut known = lock(&self.known);
        let running = |job: &&Arc<IndexJob>| !job.log.is_ended();
        if let Some(other) = known.values().filter(running).find(|other| other.workspace == job.workspace) {
            return Err(busy_error(&other.id));
        }
        let count = known.values().filter(running).count();
        if count >= max_jobs {
            let text = format!("could not start the job: {count} run already; try again when one has ended");
            return Err(KnowledgeError::new(ErrorKind::Busy, text));
        }
        while known.len() >= MAX_FINISHED_JOBS {
            let oldest = known.values().filter(|job| job.log.is_ended()).map(|job| job.id.clone()).min();
            let Some(oldest) = oldest else { break };
            known.remove(&oldest);
        }
        known.insert(job.id.clone(), Arc::clone(job));
        Ok(())
    }

    /// Stops all jobs without cancelling them. The next start of the daemon continues them.
    pub(super) async fn stop_all(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
    }
}

fn busy_error(id: &str) -> KnowledgeError {
    let text = format!("could not change the index: the job {id} works on it; wait for its end or cancel it");
    KnowledgeError::new(ErrorKind::Busy, text)
}

impl Indexes {
    pub(super) fn refuse_if_busy(&self, workspace: &Path) -> Result<(), KnowledgeError> {
        self.0.jobs.running_in(workspace).map_or(Ok(()), |job| Err(busy_error(&job.job_id)))
    }

    pub(super) async fn indexer(
        &self,
        workspace: &Path,
        store: KnowledgeStore,
    ) -> Result<Indexer, KnowledgeError> {
        let (services, settings) = (self.services()?, self.settings()?);
        let mut warning = None;
        let embedder = match self.embedder().await {
            Ok(embedder) => embedder,
            Err(error) => {
                tracing::warn!(%error, "an index is made without vectors");
                warning = Some(format!("{error}; full-text search serves meanwhile"));
                None
            }
        };
        Ok(Indexer {
            store,
            files: services.files(workspace),
            model: services.model(workspace),
            embedder: embedder.filter(|_| settings.weights.dense > 0.0),
            warning,
            clock: services.clock(),
            chunks: settings.chunks.clone(),
            settings: settings.semantic.clone(),
        })
    }

    /// Estimates a job and starts it, unless it is `dry_run`.
    ///
    /// # Errors
    /// A job of the workspace runs, the level needs a budget, or the index could not be opened.
    pub async fn index(
        &self,
        workspace: &Path,
        paths: Vec<String>,
        level: Option<IndexLevel>,
        budget: Budget,
        dry_run: bool,
    ) -> Result<StartedIndexJob, KnowledgeError> {
        if !dry_run && self.has_index(workspace) {
            self.refuse_if_busy(workspace)?;
            let store = self.store(workspace).await?;
            if let Some(job) = self.0.jobs.running_in(workspace) {
                // The index was damaged, and opening it has just started a job that builds it again.
                return Ok(StartedIndexJob { job_id: Some(job.job_id), estimate: IndexEstimate::default() });
            }
            // Remove the notice, because the user has had time to read it.
            store.write(|writer| writer.set_notice("")).await?;
        }
        self.estimate_and_start(workspace, paths, level, budget, dry_run).await
    }

    async fn estimate_and_start(
        &self,
        workspace: &Path,
        paths: Vec<String>,
        level: Option<IndexLevel>,
        budget: Budget,
        dry_run: bool,
    ) -> Result<StartedIndexJob, KnowledgeError> {
        let settings = self.settings()?;
        let level = level.unwrap_or(settings.level);
        let request = IndexRequest { id: self.services()?.new_id("job"), paths, level, budget };
        if !dry_run {
            self.refuse_if_busy(workspace)?;
        }
        let is_new = !self.has_index(workspace);
        let store = self.open_or_create(workspace).await?;
        let indexer = self.indexer(workspace, store).await?;
        let cancel = CancellationToken::new();
        let estimated = estimate(&request, &indexer, &cancel).await;
        let needs_budget = level == IndexLevel::Semantic && !budget.is_set();
        let estimated = estimated.and_then(|estimate| {
            // A budget in money limits nothing if the price of the model is unknown.
            let is_unlimited = !dry_run && budget.tokens.is_none() && budget.usd_micros.is_some();
            if level == IndexLevel::Semantic && is_unlimited && estimate.cost_usd_micros.is_none() {
                let text = "could not start: the price of the model is not known, so a budget in dollars limits nothing; give \
                            a budget in tokens, or configure the price";
                return Err(KnowledgeError::new(ErrorKind::BudgetRequired, text));
            }
            Ok(estimate)
        });
        if is_new && (dry_run || needs_budget || estimated.is_err()) {
            // An estimate must not leave a new index.
            drop(indexer);
            self.delete(workspace).await?;
        } else if !dry_run && !needs_budget && estimated.is_ok() {
            let id = self.start(workspace, request, indexer, cancel, settings.max_jobs)?;
            return estimated.map(|estimate| StartedIndexJob { job_id: Some(id), estimate });
        }
        let estimate = estimated?;
        if needs_budget && !dry_run {
            let cost = estimate.cost_usd_micros.map_or("unknown cost".to_owned(), |micros| {
                format!("about {:.2} USD", micros as f64 / 1_000_000.0)
            });
            let text = format!(
                "could not start: level semantic needs a budget; the estimate is {} calls, {} tokens, {cost}; repeat it with \
                 budget",
                estimate.model_calls, estimate.tokens
            );
            return Err(KnowledgeError::new(ErrorKind::BudgetRequired, text));
        }
        Ok(StartedIndexJob { job_id: None, estimate })
    }

    pub(super) fn start(
        &self,
        workspace: &Path,
        request: IndexRequest,
        indexer: Indexer,
        cancel: CancellationToken,
        max_jobs: usize,
    ) -> Result<String, KnowledgeError> {
        let id = request.id.clone();
        let job = Arc::new(IndexJob {
            id: id.clone(),
            workspace: workspace.to_owned(),
            log: EventLog::new(MAX_EVENTS),
            cancel,
            state: Mutex::default(),
        });
        self.0.jobs.register_job(&job, max_jobs)?;
        let mut tasks = lock(&self.0.jobs.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let _guard = EndGuard(Arc::clone(&job));
            let sink: Arc<dyn JobSink> = job.clone();
            let outcome = run_job(&request, &indexer, &sink, &job.cancel).await;
            tracing::info!(job = request.id, workspace = %job.workspace.display(), ?outcome, "an index job ended");
        });
        Ok(id)
    }

    /// Builds an index again that was set aside because it was damaged.
    pub(super) async fn rebuild(&self, workspace: &Path) -> Result<(), KnowledgeError> {
        // Make no estimate: the caller, perhaps a tool of a session, must not wait for a scan.
        self.start_update(workspace, usize::MAX).await.map(drop)
    }

    /// Continues the jobs that the last daemon did not finish. Returns their number. Indexes that cannot be opened
    /// are skipped: their next use reports the error.
    pub async fn resume(&self) -> usize {
        let folder = self.0.folder.clone();
        let unfinished = tokio::task::spawn_blocking(move || unfinished_jobs(&folder)).await;
        let mut resumed = 0;
        for (workspace, request) in unfinished.unwrap_or_default() {
            match self.resume_job(&workspace, &request).await {
                Ok(()) => resumed += 1,
                Err(error) => {
                    tracing::warn!(%error, workspace = %workspace.display(), "an index job does not go on")
                }
            }
        }
        resumed
    }

    async fn resume_job(&self, workspace: &Path, request: &str) -> Result<(), KnowledgeError> {
        let request: IndexRequest = serde_json::from_str(request).map_err(|error| {
            let text = format!("could not read the stored job: {error}; index again");
            KnowledgeError::new(ErrorKind::Storage, text)
        })?;
        let store = self.store(workspace).await?;
        let indexer = self.indexer(workspace, store).await?;
        self.start(workspace, request, indexer, CancellationToken::new(), usize::MAX).map(drop)
    }

    /// Adds documents that are not files, and creates the index if it is missing.
    ///
    /// # Errors
    /// A document is refused, a job runs, or the store failed.
    pub async fn insert(
        &self,
        workspace: &Path,
        documents: Vec<InsertedDocument>,
    ) -> Result<Vec<InsertOutcome>, KnowledgeError> {
        if documents.is_empty() || documents.len() > MAX_DOCUMENTS {
            let text =
                format!("could not insert: expected 1 to {MAX_DOCUMENTS} documents; send several requests");
            return Err(KnowledgeError::new(ErrorKind::Invalid, text));
        }
        self.refuse_if_busy(workspace)?;
        let store = self.open_or_create(workspace).await?;
        let indexer = self.indexer(workspace, store).await?;
        insert_documents(&indexer, documents, &CancellationToken::new()).await
    }

    /// Follows a job.
    pub fn follow_job(&self, workspace: &Path, id: &str) -> Result<LogFollower, KnowledgeError> {
        Ok(self.0.jobs.find(workspace, id)?.log.follow())
    }

    /// Cancels a job and waits a moment for its end, so that the index is free again for the next call. Returns whether
    /// it ran. A job that waits for a model or for the disk may end later.
    pub async fn cancel_job(&self, workspace: &Path, id: &str) -> Result<bool, KnowledgeError> {
        let job = self.0.jobs.find(workspace, id)?;
        let was_running = !job.log.is_ended();
        job.cancel.cancel();
        let mut events = job.log.follow();
        let end = async { while events.next().await.is_some() {} };
        if tokio::time::timeout(CANCEL_TIMEOUT, end).await.is_err() {
            tracing::warn!(job = id, "a cancelled index job did not end at once");
        }
        Ok(was_running)
    }

    /// The newest job of a workspace since the daemon started.
    #[must_use]
    pub fn newest_job(&self, workspace: &Path) -> Option<IndexJobView> {
        self.0.jobs.newest_in(workspace)
    }
}
