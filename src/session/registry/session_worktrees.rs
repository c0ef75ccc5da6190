//! The worktree of a session: its creation with the session, and its end.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::registry::new_session_request::NewSessionRequest;
use crate::registry::worktrees::{MadeWorktree, WorktreeRequest};
use store::{WorktreeOwner, WorktreeRow};
use types::ids::{Mint, Seed, SessionId};
use types::session::SessionView;
use types::worktree::{SessionWorktree, WorktreeChoice};

impl Registry {
    /// Creates a session in a new worktree.
    pub(super) async fn create_in_worktree(
        &self,
        request: NewSessionRequest,
        choice: WorktreeChoice,
    ) -> Result<SessionView, SessionError> {
        // Report other wrong parameters before a worktree is made.
        if !request.coordinator {
            self.check_new_session(&request).await?;
        }
        let id = request.session_id.unwrap_or_else(|| {
            let now = self.inner.shared.clock.now();
            Mint::new(now.0, Seed::random()).session()
        });
        let made = self.make_worktree_of_session(id, &request.cwd, choice).await?;
        let created =
            self.create_in_folder(NewSessionRequest { session_id: Some(id), cwd: made.cwd, ..request }).await;
        if created.is_err() && self.inner.shared.store.find(id).await.is_ok_and(|key| key.is_none()) {
            self.finish_worktree_of_session(id).await;
        }
        created
    }

    async fn make_worktree_of_session(
        &self,
        id: SessionId,
        cwd: &str,
        choice: WorktreeChoice,
    ) -> Result<MadeWorktree, SessionError> {
        let known = self.inner.shared.store.worktree_of(WorktreeOwner::Session(id)).await?;
        let exists = self.inner.shared.store.find(id).await?.is_some();
        // Without a worktree, the session was created by another request.
        if exists && known.is_none_or(|row| row.removed_at.is_some() || row.job_id.is_some()) {
            return Err(SessionError::Conflict("session_id"));
        }
        let request = WorktreeRequest {
            name: id.to_string(),
            job_id: None,
            session_id: Some(id),
            cwd: cwd.to_owned(),
            choice,
            cancel: CancellationToken::new(),
        };
        self.make_worktree(request).await
    }

    /// The worktree that a new session with this folder would work in. The folders of the daemon's worktrees are open only
    /// for the session that they were made for, and for its sub-agents.
    pub(super) async fn require_own_worktree(
        &self,
        cwd: &str,
        request: &NewSessionRequest,
    ) -> Result<Option<Box<SessionWorktree>>, SessionError> {
        let shared = &self.inner.shared;
        let Some(path) = shared.components().tools.worktree_of(Path::new(cwd)) else {
            self.require_foreign_folder(cwd)?;
            return Ok(None);
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let row = shared.store.worktree_named(&name).await?.filter(|row| row.removed_at.is_none());
        let is_own = |row: &WorktreeRow| match (row.job_id, row.session_id) {
            // A sub-agent works in the folder of its session.
            _ if request.inherited.is_some() => true,
            (Some(job), _) => request.job_id == Some(job),
            (None, session) => session.is_some() && request.session_id == session,
        };
        match row.filter(is_own) {
            Some(WorktreeRow { path, base_folder, branch, base, .. }) => {
                let worktree = SessionWorktree { path, base_folder, branch, base, shared_with: None };
                Ok(Some(Box::new(worktree)))
            }
            None => {
                let why = format!("{cwd} lies in a worktree of the daemon, which belongs to another session");
                Err(SessionError::BadParam("cwd", why))
            }
        }
    }

    /// Refuses the daemon's own data as a workspace. Its commands could read and write all sessions and worktrees there.
    pub(super) fn require_foreign_folder(&self, cwd: &str) -> Result<(), SessionError> {
        let components = self.inner.shared.components();
        match components.settings.worktrees_dir.parent() {
            Some(data) if Path::new(cwd).starts_with(data) => {
                let why = format!("{cwd} is a folder of the daemon itself, which no tool may change");
                Err(SessionError::BadParam("cwd", why))
            }
            _ => Ok(()),
        }
    }

    /// Ends the work in the worktree of a session that has ended. A failure is logged, and the next start tries again.
    pub(super) async fn finish_worktree_of_session(&self, id: SessionId) {
        let row = self.inner.shared.store.worktree_of(WorktreeOwner::Session(id)).await;
        // A job ends the work in its worktree itself.
        let Ok(Some(row)) = row else { return };
        if row.job_id.is_some() || row.removed_at.is_some() || !row.is_complete {
            return;
        }
        let message = format!("agentd: work of session {id}");
        if let Err(error) = self.finish_worktree(&row.name, &message, &CancellationToken::new()).await {
            tracing::warn!(session = %id, %error, "could not finish the worktree of an ended session");
        }
    }

    /// Ends the work in a worktree that its owner left to this session, a fork, if no other session uses it. A failure is
    /// logged.
    pub(super) async fn finish_worktree_left_to(&self, id: SessionId, cwd: &str) {
        let shared = &self.inner.shared;
        let Some(path) = shared.components().tools.worktree_of(Path::new(cwd)) else { return };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(Some(row)) = shared.store.worktree_named(&name).await else { return };
        let is_left = row.finished_at.is_some() && row.removed_at.is_none() && row.session_id != Some(id);
        if !is_left || !matches!(self.user_of(&row).await, Ok(None)) {
            return;
        }
        let message = format!("agentd: work of session {id}");
        if let Err(error) = self.finish_worktree(&name, &message, &CancellationToken::new()).await {
            tracing::warn!(session = %id, %error, "could not finish the worktree of an ended fork");
        }
    }
}
