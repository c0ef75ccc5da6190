//! The methods of the registry about trust in folders.

use std::path::Path;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::{trust, trusted_programs};
use project::workspace;
use store::TrustChange;
use types::audit::{AuditKind, AuditNote};
use types::event::Origin;
use types::trust::TrustStatus;

impl Registry {
    /// The trust state of a folder.
    pub async fn workspace(&self, cwd: &str) -> Result<TrustStatus, SessionError> {
        let cwd = self.folder(cwd).await?;
        let project = self.shared().find_project(Path::new(&cwd)).await;
        let project_root = Some(project.root().display().to_string());
        let scan = move || {
            let (inventory, files) = workspace::scan_with_files(&project, &trusted_programs::PROGRAM_FILES);
            (inventory, trusted_programs::programs(&project, &files))
        };
        let (inventory, programs) = tokio::task::spawn_blocking(scan).await.unwrap_or_default();
        let trusted = trust::is_trusted(self.shared(), Path::new(&cwd), &inventory.digest).await?;
        Ok(TrustStatus {
            cwd,
            project_root,
            trusted,
            digest: inventory.digest,
            parts: inventory.parts,
            programs,
            changed_files: None,
        })
    }

    /// Trusts a folder in the state with this digest. Without a digest, trusts the folder in its current state.
    ///
    /// # Errors
    /// The folder has changed, or the store failed.
    pub async fn trust(
        &self,
        cwd: &str,
        digest: Option<&str>,
        origin: Origin,
    ) -> Result<TrustStatus, SessionError> {
        let found = self.workspace(cwd).await?;
        if digest.is_some_and(|digest| found.digest != digest) {
            return Err(SessionError::StaleTrust { digest: found.digest });
        }
        let reason = format!("{}: {}", found.cwd, found.parts.join(", "));
        self.change(found.cwd.clone(), Some(found.digest.clone()), "trusted", reason, origin).await?;
        Ok(TrustStatus { trusted: true, ..found })
    }

    /// Revokes the trust in a folder, which need not exist. Returns its new trust state.
    pub async fn untrust(&self, cwd: &str, origin: Origin) -> Result<TrustStatus, SessionError> {
        let found = match self.workspace(cwd).await {
            Ok(found) => TrustStatus { trusted: false, ..found },
            Err(_) if Path::new(cwd).is_absolute() => {
                TrustStatus { cwd: cwd.to_owned(), ..TrustStatus::default() }
            }
            Err(error) => return Err(error),
        };
        self.change(found.cwd.clone(), None, "untrusted", found.cwd.clone(), origin).await?;
        Ok(found)
    }

    async fn change(
        &self,
        cwd: String,
        digest: Option<String>,
        verdict: &str,
        reason: String,
        origin: Origin,
    ) -> Result<(), SessionError> {
        let shared = self.shared();
        let note =
            AuditNote::new(shared.clock.now(), AuditKind::Trust, verdict, reason).with_origin(Some(&origin));
        let note = AuditNote { digest: digest.clone(), ..note };
        Ok(shared.database.trust(TrustChange { cwd, digest, note }).await?)
    }
}
