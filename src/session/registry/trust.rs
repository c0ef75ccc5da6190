//! Trust in a folder: what the user allowed, and the rules that depend on it.
//!
//! Trust applies to a digest. Code that depends on trust scans the folder at that moment and uses exactly the
//! content that this scan read. So no file can be exchanged in between.
//!
//! The files are read and hashed for each verdict, not cached by size and times. A change within the clock
//! granularity of the file system, or through an older memory mapping, leaves size and times unchanged. Trust
//! would then cover content that the user never reviewed. The content is small in normal folders, limited in
//! all others, and read on a blocking thread.

use std::path::Path;

use crate::judge::Rules;
use crate::session::error::SessionError;
use crate::session::registry::Registry;
use crate::session::shared::Shared;
use crate::store::{StoreError, TrustChange};
use crate::types::audit::{AuditKind, AuditNote};
use crate::types::event::Origin;
use crate::types::session::Untrusted;
use crate::workspace::{self, TrustInventory};

/// The trust state of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStatus {
    /// The folder as an absolute path without symbolic links.
    pub cwd: String,
    /// Whether it is trusted in its current state.
    pub trusted: bool,
    /// Digest of the files that trust would cover.
    pub digest: String,
    /// The parts that become active with trust.
    pub parts: Vec<String>,
}

/// Scans a folder and checks whether it is trusted in this state.
pub(in crate::session) async fn inspect(
    shared: &Shared,
    cwd: &Path,
) -> Result<(TrustInventory, bool), StoreError> {
    let folder = cwd.to_owned();
    let ground = tokio::task::spawn_blocking(move || workspace::scan(&folder)).await.unwrap_or_default();
    let trusted = is_trusted(shared, cwd, &ground.digest).await?;
    Ok((ground, trusted))
}

/// Whether a folder is trusted with this digest.
async fn is_trusted(shared: &Shared, cwd: &Path, digest: &str) -> Result<bool, StoreError> {
    let known = shared.store.trusted(&cwd.to_string_lossy()).await?;
    Ok(!digest.is_empty() && known.as_deref() == Some(digest))
}

/// The effective rules of the project itself, and why every call needs a request, if that is so.
pub(in crate::session) async fn rules(
    shared: &Shared,
    cwd: &Path,
    ground: TrustInventory,
) -> (Rules, Option<String>) {
    let project = ground.project;
    // Only allow rules depend on trust.
    let trusted = !project.allow.is_empty()
        && is_trusted(shared, cwd, &ground.digest).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a folder is trusted cannot be read: it counts as not");
            false
        });
    let allow = if trusted { project.allow } else { Vec::new() };
    let problem = project.problem.filter(|_| project.is_closed).map(|problem| {
        format!("the project's .agentd/config.toml is not understood, so every call asks: {problem}")
    });
    (Rules { allow, ask: project.ask, deny: project.deny }, problem)
}

/// The parts of a folder that wait for trust; `None` if there are none.
pub(in crate::session) async fn waiting(shared: &Shared, cwd: &Path) -> Option<Untrusted> {
    let (ground, trusted) = inspect(shared, cwd).await.ok()?;
    let waits = !trusted && !ground.parts.is_empty();
    waits.then_some(Untrusted { digest: ground.digest, parts: ground.parts })
}

impl Registry {
    /// The trust state of a folder.
    ///
    /// # Errors
    /// The folder does not exist, or the database could not be read.
    pub async fn workspace(&self, cwd: &str) -> Result<TrustStatus, SessionError> {
        let cwd = self.folder(cwd).await?;
        let (ground, trusted) = inspect(self.shared(), Path::new(&cwd)).await?;
        Ok(TrustStatus { cwd, trusted, digest: ground.digest, parts: ground.parts })
    }

    /// Trusts a folder in the state with this digest; without a digest, in its current state.
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
    ///
    /// # Errors
    /// The store failed.
    pub async fn untrust(&self, cwd: &str, origin: Origin) -> Result<TrustStatus, SessionError> {
        let found = match self.workspace(cwd).await {
            Ok(found) => TrustStatus { trusted: false, ..found },
            Err(_) if Path::new(cwd).is_absolute() => {
                let (digest, parts) = (String::new(), Vec::new());
                TrustStatus { cwd: cwd.to_owned(), trusted: false, digest, parts }
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
        let note = AuditNote::new(shared.clock.now(), AuditKind::Trust, verdict, reason).by(Some(&origin));
        let note = AuditNote { digest: digest.clone(), ..note };
        Ok(shared.store.trust(TrustChange { cwd, digest, note }).await?)
    }
}
