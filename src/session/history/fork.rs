//! `Registry::fork`: a new session that starts with the history of another one.

use std::collections::BTreeMap;

use crate::error::SessionError;
use crate::history::new_session::new_session;
use crate::idempotency::{IdempotencyKey, method, remembered};
use crate::journal_copy::{copy_journal, history_point};
use crate::registry::Registry;
use engine::{CopyLimits, HistoryPoint};
use store::StoreError;
use types::daemon_event::SessionChangeKind;
use types::event::Origin;
use types::history::ForkedFrom;
use types::ids::{BlobId, ItemId, Mint, Seed, SessionId};
use types::session::SessionView;

/// Appended to the title of the forked session, if the caller gives no title.
const TITLE_SUFFIX: &str = " (fork)";

/// The parameters of a fork.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The last item of the copied history. `None` copies the whole history.
    pub item_id: Option<ItemId>,
    /// Title of the new session.
    pub title: Option<String>,
    /// Idempotency key, if the caller sent one.
    pub keyed: Option<IdempotencyKey>,
    /// The client that sent the request.
    pub origin: Origin,
}

impl Registry {
    /// Creates a session with the conversation of `id` up to an item. The new session has its own journal
    /// and shares nothing with the source. A repeated call with the same key returns the same session.
    ///
    /// # Errors
    /// The session or the item does not exist, the item is not complete, or the store failed. Nothing was
    /// created.
    pub async fn fork(&self, id: SessionId, request: ForkRequest) -> Result<SessionView, SessionError> {
        self.check_open()?;
        let shared = &self.inner.shared;
        let known = async || match &request.keyed {
            Some(keyed) => remembered::<SessionId>(&shared.store, method::FORK, id, keyed).await,
            None => Ok(None),
        };
        if let Some(known) = known().await? {
            return self.view_with_details(known).await;
        }
        shared.check_journal_quota()?;
        // The handle keeps the session from being deleted while its blobs are copied.
        let source = self.open(id).await?;
        let key = source.key();
        let (item_id, point) = match request.item_id {
            Some(item_id) => (Some(item_id), history_point(shared, key, item_id).await?),
            None => {
                let newest = shared.store.find_item(key, None).await?;
                (newest.map(|item| item.item_id), HistoryPoint::END)
            }
        };
        let title = match &request.title {
            Some(title) => title.clone(),
            None => self.view(id).await?.summary.title + TITLE_SUFFIX,
        };
        let (now, forked_from) = (shared.clock.now(), ForkedFrom { session_id: id, item_id });
        let fork_id = Mint::new(now.0, Seed::random()).session();
        let spec = shared.store.spec(key).await?;
        let owner = spec.parent.map_or(id, |parent| parent.root_session_id);
        let limits = CopyLimits::from_spec(&spec);
        let copy = copy_journal(shared, (id, key), item_id, point, (fork_id, limits), |spec| {
            spec.title = title;
            spec.forked_from = Some(forked_from);
            // The fork is no sub-agent, so it has no parent call, and no attempt of a job.
            (spec.parent, spec.job_id) = (None, None);
            if let Some(worktree) = &mut spec.worktree {
                worktree.shared_with = Some(id);
            }
        })
        .await?;
        let idempotency = request.keyed.clone().and_then(|keyed| keyed.row(method::FORK, id, &fork_id));
        self.check_mode(copy.ending.next.mode())?;
        let blobs: Vec<BlobId> = copy.blobs.iter().copied().collect();
        let mut new =
            new_session(copy, BTreeMap::new(), now, &request.origin).ok_or(SessionError::NotFound)?;
        new.idempotency = idempotency;
        new.history.copied_blobs = Some((key, blobs));
        self.copy_servers(owner, fork_id).await?;
        let environment_of = if self.has_environment(id).await { id } else { owner };
        self.copy_environment(environment_of, fork_id).await?;
        match shared.database.create(new).await {
            Ok(_) => {
                shared.notify_session(fork_id, SessionChangeKind::Created);
                self.view_with_details(fork_id).await
            }
            // Another call with the same key was faster.
            Err(StoreError::Taken) => match known().await? {
                Some(known) => self.view_with_details(known).await,
                None => Err(SessionError::Conflict("idempotency_key")),
            },
            Err(error) => Err(error.into()),
        }
    }
}
