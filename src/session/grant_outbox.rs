//! The outbox of workspace grants. A grant is first committed with its answer and then written to the
//! policy file. After a crash in between, the next daemon writes the file.

use std::path::Path;
use std::sync::Arc;

use crate::error::SessionError;
use crate::shared::Shared;
use base::crash;
use project::policy::{PolicyEntry, PolicyError, PolicyScope};
use store::PendingGrant;
use types::ids::{PermissionId, SessionId};
use types::permission::RuleKind;

/// The pending grant of an answer. It is written in the answer's transaction.
pub(super) fn pending_grant(workspace: &str, request_id: PermissionId, entry: &PolicyEntry) -> PendingGrant {
    PendingGrant {
        request_id: request_id.to_string(),
        workspace: workspace.into(),
        // Serialising cannot fail, because the entry is plain data with string keys.
        entry: serde_json::to_string(entry).unwrap_or_default(),
    }
}

/// Writes a pending grant to its policy file and removes it from the outbox. After a failure, the next
/// daemon tries again.
pub(super) async fn write_grant(shared: &Arc<Shared>, grant: PendingGrant) -> Result<(), SessionError> {
    let policies = Arc::clone(&shared.policies);
    let PendingGrant { request_id, workspace, entry } = grant;
    crash::point("C24.grant_owed");
    let written = tokio::task::spawn_blocking(move || {
        let entry: PolicyEntry =
            serde_json::from_str(&entry).map_err(|error| PolicyError::BadRule(error.to_string()))?;
        policies.add(PolicyScope::Workspace(Path::new(&workspace)), entry)
    });
    written.await.map_err(|_| SessionError::Crashed)?.map_err(SessionError::Policy)?;
    crash::point("C24.grant_written");
    Ok(shared.database.discard_grants(vec![request_id]).await?)
}

/// The policy file entry of a grant that a user gave with an answer.
pub(super) fn policy_entry(
    shared: &Shared,
    rule: String,
    by: Option<types::event::Origin>,
    session_id: SessionId,
    request_id: PermissionId,
) -> PolicyEntry {
    PolicyEntry {
        kind: RuleKind::Allow,
        rule,
        added_at_ms: shared.clock.now(),
        by,
        session_id: Some(session_id),
        request_id: Some(request_id),
    }
}
