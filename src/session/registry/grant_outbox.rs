//! The pending grants of all sessions.

use crate::error::SessionError;
use crate::grant_outbox;
use crate::registry::Registry;
use project::policy::PolicyEntry;
use store::PendingGrant;
use types::permission::RuleKind;

impl Registry {
    /// Writes the pending grants that a crash or an unwritable file has left. Call this at the start,
    /// before any call is judged.
    pub async fn flush_grants(&self) {
        let shared = &self.inner.shared;
        let pending_grants = match shared.store.pending_grants().await {
            Ok(pending_grants) => pending_grants,
            Err(error) => {
                tracing::error!(%error, "could not read the pending grants");
                return;
            }
        };
        for grant in pending_grants {
            let (request, workspace) = (grant.request_id.clone(), grant.workspace.clone());
            match grant_outbox::write_grant(shared, grant).await {
                Ok(()) => tracing::info!(request, workspace, "wrote a pending grant"),
                Err(error) => {
                    tracing::error!(request, workspace, %error, "a pending grant is still not written")
                }
            }
        }
    }

    /// Discards a pending grant, so that the next start does not write a revoked rule.
    pub(crate) async fn discard_pending(
        &self,
        workspace: &str,
        kind: RuleKind,
        rule: &str,
    ) -> Result<(), SessionError> {
        let store = &self.inner.shared.store;
        let is_revoked = |grant: &PendingGrant| {
            let entry: Option<PolicyEntry> = serde_json::from_str(&grant.entry).ok();
            grant.workspace == workspace && entry.is_some_and(|it| it.kind == kind && it.rule == rule)
        };
        let pending_grants = store.pending_grants().await?;
        let request_ids: Vec<String> = pending_grants
            .into_iter()
            .filter(|grant| is_revoked(grant))
            .map(|grant| grant.request_id)
            .collect();
        if request_ids.is_empty() {
            Ok(())
        } else {
            Ok(self.inner.shared.database.discard_grants(request_ids).await?)
        }
    }
}
