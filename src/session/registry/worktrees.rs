//! The git worktrees of jobs and sessions. A row is written before git is called, so that a start finds what a crash left.

use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use crate::error::{SessionError, WorktreeError};
use crate::registry::Registry;
use project::worktree::{
    self, Finished, Force, MergeHow, MergeProblem, Merged, NewWorktree, OwnWorktree, Removal, WorktreeDiff,
    WorktreeProblem,
};
use store::{JobCommit, JobWrite, SessionActivity, StoreError, WorktreeOwner, WorktreeRow};
use types::ids::{JobId, SessionId};
use types::job::Job;
use types::session::SessionState;
use types::time::Timestamp;
use types::worktree::{GitResult, KeepWorktree, Worktree, WorktreeChoice};

/// Number of worktrees that are looked at together.
const PARALLEL_LOOKS: usize = 4;

/// What a worktree is made for.
#[derive(Clone, Debug)]
pub struct WorktreeRequest {
    /// Name of its folder: letters, digits, `_` and `-`. Each attempt of a job has its own.
    pub name: String,
    /// The job that it belongs to.
    pub job_id: Option<JobId>,
    /// The session that will work in it.
    pub session_id: Option<SessionId>,
    /// The base folder, absolute.
    pub cwd: String,
    /// Its properties.
    pub choice: WorktreeChoice,
    /// Ends the making: the waiting for other changes of the repository, and git.
    pub cancel: CancellationToken,
}

/// A worktree that is ready for its session.
#[derive(Clone, Debug)]
pub struct MadeWorktree {
    /// The folder inside it that corresponds to the base folder.
    pub cwd: String,
    /// What is stored about it.
    pub row: WorktreeRow,
}

impl Registry {
    /// Checks that a worktree of this folder could be made now.
    ///
    /// # Errors
    /// `BadParam` with the path of the field, for example `worktree.base`.
    pub async fn check_worktree(&self, cwd: &str, choice: &WorktreeChoice) -> Result<(), SessionError> {
        let cwd = self.folder(cwd).await?;
        worktree::check(Path::new(&cwd), choice).await.map(|_| ()).map_err(wrong_choice)
    }

    /// Makes a worktree. A call with the same name can be repeated, also after a crash, and then returns the same one. The
    /// work goes on if the future is dropped.
    ///
    /// # Errors
    /// `BadParam` as [`Registry::check_worktree`], or the store failed. There is no worktree then.
    pub async fn make_worktree(&self, request: WorktreeRequest) -> Result<MadeWorktree, SessionError> {
        let registry = self.clone();
        run_to_end(async move { registry.make(request).await }).await
    }

    async fn make(&self, request: WorktreeRequest) -> Result<MadeWorktree, SessionError> {
        let shared = &self.inner.shared;
        let _making = shared.worktree_sweep.read().await;
        let cwd = self.folder(&request.cwd).await?;
        self.require_foreign_folder(&cwd)?;
        let dir = shared.components().settings.worktrees_dir.clone();
        let path = dir.join(&request.name);
        let known = shared.store.worktree_named(&request.name).await?.filter(|row| row.removed_at.is_none());
        let mut repository = None;
        if let Some(row) = known {
            let is_same = row.base_folder == cwd
                && row.choice == request.choice
                && (row.job_id, row.session_id) == (request.job_id, request.session_id);
            if !is_same {
                return Err(SessionError::Conflict("worktree"));
            }
            if row.is_complete && path.exists() {
                let below = Path::new(&cwd).strip_prefix(&row.repository).unwrap_or(Path::new(""));
                return Ok(MadeWorktree { cwd: text(path.join(below).components().collect())?, row });
            }
            worktree::discard(Path::new(&cwd), &path).await.map_err(wrong_choice)?;
            // What is left was made completely before a crash. Its branch is in use now, by itself.
            repository = path.exists().then_some(row.repository);
        }
        let repository = match repository {
            Some(repository) => repository,
            None => {
                let base = worktree::check(Path::new(&cwd), &request.choice).await.map_err(wrong_choice)?;
                text(base.repository)?
            }
        };
        let mut row = WorktreeRow {
            name: request.name.clone(),
            job_id: request.job_id,
            session_id: request.session_id,
            path: path.display().to_string(),
            repository,
            base_folder: cwd.clone(),
            branch: String::new(),
            is_new_branch: false,
            base: String::new(),
            choice: request.choice,
            uncommitted_in_base: 0,
            is_complete: false,
            created_at: shared.clock.now(),
            finished_at: None,
            removed_at: None,
        };
        self.write_worktree(&row).await?;
        let making = worktree::create(Path::new(&cwd), &row.choice, &row.name, &dir, &request.cancel);
        let made = match making.await {
            Ok(made) => made,
            Err(problem) => {
                row.removed_at = Some(shared.clock.now());
                self.write_worktree(&row).await?;
                return Err(wrong_choice(problem));
            }
        };
        let cwd = text(made.cwd.clone())?;
        complete(&mut row, made)?;
        self.write_worktree(&row).await?;
        shared.worktree_bases.add(PathBuf::from(&row.path), PathBuf::from(&row.repository));
        Ok(MadeWorktree { cwd, row })
    }

    /// Ends the work in a worktree: commits what is left, unless `commit` is false, and keeps or removes it as `keep` says.
    /// It is kept while a session other than its own works in it. A call can be repeated. The work goes on if the future is
    /// dropped.
    ///
    /// # Errors
    /// There is no such worktree, git or the store failed, or the token stopped git. The worktree is kept then.
    pub async fn finish_worktree(
        &self,
        name: &str,
        message: &str,
        cancel: &CancellationToken,
    ) -> Result<GitResult, SessionError> {
        let row = self.inner.shared.store.worktree_named(name).await?.filter(|row| row.is_complete);
        let row = row.ok_or(SessionError::Worktree(WorktreeError::NotFound))?;
        let (registry, message, cancel) = (self.clone(), message.to_owned(), cancel.clone());
        run_to_end(async move { registry.finish(row, &message, &cancel).await }).await
    }

    async fn finish(
        &self,
        mut row: WorktreeRow,
        message: &str,
        cancel: &CancellationToken,
    ) -> Result<GitResult, SessionError> {
        let shared = &self.inner.shared;
        let user = shared.store.session_in_folder(&row.path, SessionActivity::NotEnded).await?;
        let mut choice = row.choice.clone();
        if user.is_some() && user != row.session_id {
            choice.keep = KeepWorktree::Always;
        }
        let Finished { mut git, is_removed, uncommitted } =
            worktree::finish(&own(&row), &choice, message, cancel).await.map_err(failed)?;
        if uncommitted > 0 {
            tracing::info!(path = row.path, uncommitted, "a worktree was kept with uncommitted changes");
        }
        git.uncommitted_in_base = row.uncommitted_in_base;
        let now = shared.clock.now();
        // A job may have continued in it after its first end.
        row.finished_at = Some(now);
        if is_removed {
            self.note_removed(&mut row);
        }
        self.write_worktree(&row).await?;
        Ok(git)
    }

    /// The worktrees of the daemon with their changes, oldest first.
    pub async fn worktrees(&self) -> Result<Vec<Worktree>, SessionError> {
        let rows = self.inner.shared.store.worktrees().await?;
        let rows = rows.into_iter().filter(|row| row.is_complete);
        let looks = futures_util::stream::iter(rows.map(|row| self.describe(row)));
        looks.buffered(PARALLEL_LOOKS).collect::<Vec<_>>().await.into_iter().collect()
    }

    async fn describe(&self, row: WorktreeRow) -> Result<Worktree, SessionError> {
        let status = worktree::status(&own(&row)).await.ok();
        let in_use = self.user_of(&row).await?.is_some();
        Ok(Worktree {
            job_id: row.job_id,
            session_id: row.session_id,
            path: row.path,
            repository: row.repository,
            branch: row.branch,
            base: row.base,
            created_at_ms: row.created_at,
            uncommitted: status.map(|status| status.uncommitted > 0),
            commits: status.map(|status| status.commits),
            in_use,
        })
    }

    /// What uses a worktree, for users: a session that is not over, or a job.
    pub(super) async fn user_of(&self, row: &WorktreeRow) -> Result<Option<String>, SessionError> {
        let store = &self.inner.shared.store;
        if let Some(id) = store.session_in_folder(&row.path, SessionActivity::NotEnded).await? {
            return Ok(Some(format!(
                "session {id} uses the worktree; end it first (agentctl kill) or archive it"
            )));
        }
        let Some(job_id) = row.job_id else { return Ok(None) };
        let is_over = self.is_job_over(job_id).await?;
        Ok((!is_over).then(|| format!("job {job_id} uses the worktree; wait for it, or cancel it")))
    }

    async fn is_job_over(&self, job_id: JobId) -> Result<bool, SessionError> {
        let job = self.inner.shared.store.job(job_id).await?;
        Ok(job.is_none_or(|job| {
            let record: Option<RecordWithState> = serde_json::from_str(&job.record).ok();
            record.is_none_or(|record| record.job.state.is_final())
        }))
    }

    /// Merges the branch of a worktree into the branch of its base folder. Uncommitted changes are committed first, unless
    /// `commit` is false. The work goes on if the future is dropped.
    ///
    /// # Errors
    /// A turn is open in the worktree, the merge is not possible, or git failed. The base folder is unchanged then.
    pub async fn merge_worktree(&self, owner: WorktreeOwner, how: MergeHow) -> Result<Merged, SessionError> {
        let store = &self.inner.shared.store;
        let row = self.worktree_row(owner).await?;
        if let Some(id) = store.session_in_folder(&row.path, SessionActivity::OpenTurn).await? {
            let why = format!("a turn of session {id} is open in the worktree; wait for its end");
            return Err(SessionError::Worktree(WorktreeError::InUse(why)));
        }
        let message = row.choice.commit.then(|| format!("agentd: work of {}", owner_name(owner)));
        run_to_end(
            async move { worktree::merge(&own(&row), how, message.as_deref()).await.map_err(not_merged) },
        )
        .await
    }

    /// Removes a worktree that nothing uses. Uncommitted changes keep it, unless `force` is set. The branch stays if it has
    /// a commit of its own. The work goes on if the future is dropped.
    ///
    /// # Errors
    /// A session or a job uses it, it has uncommitted changes, or git failed.
    pub async fn remove_worktree(&self, owner: WorktreeOwner, force: bool) -> Result<(), SessionError> {
        let row = self.worktree_row(owner).await?;
        if row.removed_at.is_some() {
            return Err(SessionError::Worktree(WorktreeError::NotFound));
        }
        if let Some(why) = self.user_of(&row).await? {
            return Err(SessionError::Worktree(WorktreeError::InUse(why)));
        }
        let registry = self.clone();
        let force = if force { Force::LoseChanges } else { Force::Careful };
        run_to_end(async move { registry.remove(row, force).await }).await
    }

    async fn remove(&self, mut row: WorktreeRow, force: Force) -> Result<(), SessionError> {
        match worktree::remove(&own(&row), force).await.map_err(failed)? {
            Removal::Kept(count) => Err(SessionError::Worktree(WorktreeError::Uncommitted(count))),
            Removal::Removed => {
                self.note_removed(&mut row);
                self.write_worktree(&row).await
            }
        }
    }

    /// The changes of a worktree since its base, also if it was removed and its branch is there.
    ///
    /// # Errors
    /// There is no such worktree, or git failed.
    pub async fn diff_worktree(
        &self,
        owner: WorktreeOwner,
        max_bytes: usize,
    ) -> Result<(WorktreeRow, WorktreeDiff), SessionError> {
        let row = self.worktree_row(owner).await?;
        let diff = worktree::diff(&own(&row), max_bytes).await.map_err(failed)?;
        Ok((row, diff))
    }

    /// Removes the worktrees of jobs that were finished before a time, that nothing uses and whose changes are all committed.
    pub async fn remove_old_worktrees(&self, before: Timestamp) -> Result<(), SessionError> {
        for row in self.inner.shared.store.worktrees().await? {
            let is_old = row.finished_at.is_some_and(|at| at < before);
            if row.job_id.is_none() || !is_old || !row.is_complete || self.user_of(&row).await?.is_some() {
                continue;
            }
            let path = row.path.clone();
            match self.remove(row, Force::Careful).await {
                Ok(()) | Err(SessionError::Worktree(WorktreeError::Uncommitted(_))) => {}
                Err(error) => tracing::warn!(path, %error, "could not remove an old worktree"),
            }
        }
        Ok(())
    }

    /// Reads which worktrees exist. Call it before any session is loaded, because rules of their base folders hold there.
    /// Also removes temporary files of the last daemon.
    pub async fn load_worktrees(&self) -> Result<(), StoreError> {
        let shared = &self.inner.shared;
        let dir = shared.components().settings.worktrees_dir.clone();
        if let Ok(Err(problem)) = tokio::task::spawn_blocking(move || worktree::clean(&dir)).await {
            tracing::warn!(%problem, "could not remove temporary files of worktrees");
        }
        for row in shared.store.worktrees().await? {
            shared.worktree_bases.add(row.path.into(), row.repository.into());
        }
        Ok(())
    }

    /// Completes after a crash: removes unfinished worktrees, and ends the work in those of sessions and jobs that are over.
    /// So the next start also ends the work in a worktree if git failed at its end. Call it before jobs start.
    pub async fn sweep_worktrees(&self) -> Result<(), SessionError> {
        let shared = &self.inner.shared;
        let dir = shared.components().settings.worktrees_dir.clone();
        if let Ok(Err(problem)) = tokio::task::spawn_blocking(move || worktree::delete_removed(&dir)).await {
            tracing::warn!(%problem, "could not delete the rest of removed worktrees");
        }
        for row in shared.store.worktrees().await? {
            let path = row.path.clone();
            if let Err(error) = self.sweep(row).await {
                tracing::warn!(path, %error, "could not complete what a crash left of a worktree");
            }
        }
        Ok(())
    }

    async fn sweep(&self, row: WorktreeRow) -> Result<(), SessionError> {
        // A client may be making this worktree again.
        let _alone = self.inner.shared.worktree_sweep.write().await;
        let row = self.inner.shared.store.worktree_named(&row.name).await?;
        let Some(mut row) = row.filter(|row| row.removed_at.is_none()) else { return Ok(()) };
        let path = PathBuf::from(&row.path);
        let base = PathBuf::from(&row.base_folder);
        if !row.is_complete {
            worktree::discard(&base, &path).await.map_err(failed)?;
            if !path.exists() {
                self.note_removed(&mut row);
                return self.write_worktree(&row).await;
            }
            // It was made completely, and only its row was not.
            let dir = path.parent().unwrap_or(&base);
            let cancel = CancellationToken::new();
            let making = worktree::create(&base, &row.choice, &row.name, dir, &cancel);
            let made = making.await.map_err(failed)?;
            complete(&mut row, made)?;
            self.write_worktree(&row).await?;
        }
        if !path.exists() {
            return self.remove(row, Force::Careful).await;
        }
        if row.finished_at.is_some() {
            return Ok(());
        }
        if let Some(job_id) = row.job_id {
            // A living job continues by itself.
            if self.is_job_over(job_id).await? {
                let message = format!("agentd: work of job {job_id}");
                self.finish(row, &message, &CancellationToken::new()).await?;
            }
            return Ok(());
        }
        let Some(id) = row.session_id else { return Ok(()) };
        let is_over = match self.view(id).await {
            Ok(view) => view.summary.state == SessionState::Ended,
            Err(SessionError::NotFound) => true,
            Err(error) => return Err(error),
        };
        if is_over {
            self.finish_worktree_of_session(id).await;
        }
        Ok(())
    }

    async fn worktree_row(&self, owner: WorktreeOwner) -> Result<WorktreeRow, SessionError> {
        let row = self.inner.shared.store.worktree_of(owner).await?.filter(|row| row.is_complete);
        row.ok_or(SessionError::Worktree(WorktreeError::NotFound))
    }

    fn note_removed(&self, row: &mut WorktreeRow) {
        self.inner.shared.worktree_bases.remove(Path::new(&row.path));
        row.removed_at = Some(self.inner.shared.clock.now());
    }

    async fn write_worktree(&self, row: &WorktreeRow) -> Result<(), SessionError> {
        let writes = vec![JobWrite::Worktree(Box::new(row.clone()))];
        let at = self.inner.shared.clock.now();
        Ok(self.inner.shared.database.commit_job(JobCommit { writes, at, ..JobCommit::default() }).await?)
    }
}

/// The part of a job's record that is needed here.
#[derive(serde::Deserialize)]
struct RecordWithState {
    job: Job,
}

/// Runs work to its end, also if the caller stops waiting: half of it would be left on the disk.
async fn run_to_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, SessionError>> + Send + 'static,
) -> Result<T, SessionError> {
    tokio::spawn(work).await.unwrap_or(Err(SessionError::Crashed))
}

/// Notes what was made.
fn complete(row: &mut WorktreeRow, made: NewWorktree) -> Result<(), SessionError> {
    let OwnWorktree { path, repository, branch, is_new_branch, base } = made.own;
    (row.path, row.repository) = (text(path)?, text(repository)?);
    (row.branch, row.is_new_branch, row.base) = (branch, is_new_branch, base);
    row.uncommitted_in_base = made.uncommitted_in_base;
    row.is_complete = true;
    Ok(())
}

fn own(row: &WorktreeRow) -> OwnWorktree {
    OwnWorktree {
        path: PathBuf::from(&row.path),
        repository: PathBuf::from(&row.repository),
        branch: row.branch.clone(),
        is_new_branch: row.is_new_branch,
        base: row.base.clone(),
    }
}

fn owner_name(owner: WorktreeOwner) -> String {
    match owner {
        WorktreeOwner::Job(id) => format!("job {id}"),
        WorktreeOwner::Session(id) => format!("session {id}"),
    }
}

fn text(path: PathBuf) -> Result<String, SessionError> {
    let why = "the path of the repository is not valid UTF-8";
    path.into_os_string().into_string().map_err(|_| SessionError::BadParam("worktree", why.into()))
}

fn wrong_choice(problem: WorktreeProblem) -> SessionError {
    SessionError::BadParam(problem.field, problem.why)
}

fn failed(problem: WorktreeProblem) -> SessionError {
    SessionError::Worktree(WorktreeError::Failed(problem.why))
}

fn not_merged(problem: MergeProblem) -> SessionError {
    let why = problem.to_string();
    let (reason, files) = match problem {
        MergeProblem::Worktree(problem) => return failed(problem),
        MergeProblem::Conflicts(files) => ("conflicts", files),
        MergeProblem::Diverged => ("diverged", Vec::new()),
        MergeProblem::TargetChanged(_) => ("target_changed", Vec::new()),
        MergeProblem::NoTarget => ("no_target", Vec::new()),
    };
    SessionError::Worktree(WorktreeError::NotMerged { reason, why, files })
}
