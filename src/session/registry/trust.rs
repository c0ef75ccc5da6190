//! What a folder may do in a session: its user's trust, and the rules that hang on it (S22).
//!
//! Trust is given to a digest. Whoever uses what hangs on it surveys the folder at that moment and uses
//! what that very survey read, so that nothing can be put in its place in between.
//!
//! The files are read and hashed for each verdict, and not remembered by their size and times: a change within the
//! grain of the file system's clock, or one through a mapping that was written to before, leaves those as they were, and
//! trust would then hold for what nobody has seen. What there is to read is small in any honest folder, bounded
//! in all others, and read on a thread of its own.

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

/// How a folder stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustStatus {
    /// The folder, absolute and free of links.
    pub cwd: String,
    /// Whether it is trusted as it is now.
    pub trusted: bool,
    /// Of what trust would cover.
    pub digest: String,
    /// What is active with trust.
    pub parts: Vec<String>,
}

/// Looks at a folder and asks whether it is trusted as it is.
pub(in crate::session) async fn inspect(
    shared: &Shared,
    cwd: &Path,
) -> Result<(TrustInventory, bool), StoreError> {
    let folder = cwd.to_owned();
    let ground = tokio::task::spawn_blocking(move || workspace::scan(&folder)).await.unwrap_or_default();
    let trusted = is_trusted(shared, cwd, &ground.digest).await?;
    Ok((ground, trusted))
}

/// Whether a folder is trusted as this digest tells of it.
async fn is_trusted(shared: &Shared, cwd: &Path, digest: &str) -> Result<bool, StoreError> {
    let known = shared.store.trusted(&cwd.to_string_lossy()).await?;
    Ok(!digest.is_empty() && known.as_deref() == Some(digest))
}

/// The project's own rules as far as they count now, and why nothing may pass unasked there, if so.
pub(in crate::session) async fn rules(
    shared: &Shared,
    cwd: &Path,
    ground: TrustInventory,
) -> (Rules, Option<String>) {
    let project = ground.project;
    // Only what it allows hangs on trust.
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

/// What waits for trust in a folder; `None` if nothing does.
pub(in crate::session) async fn waiting(shared: &Shared, cwd: &Path) -> Option<Untrusted> {
    let (ground, trusted) = inspect(shared, cwd).await.ok()?;
    let waits = !trusted && !ground.parts.is_empty();
    waits.then_some(Untrusted { digest: ground.digest, parts: ground.parts })
}

impl Registry {
    /// How a folder stands.
    ///
    /// # Errors
    /// There is no such folder, or the database could not be read.
    pub async fn workspace(&self, cwd: &str) -> Result<TrustStatus, SessionError> {
        let cwd = self.folder(cwd).await?;
        let (ground, trusted) = inspect(self.shared(), Path::new(&cwd)).await?;
        Ok(TrustStatus { cwd, trusted, digest: ground.digest, parts: ground.parts })
    }

    /// Trusts a folder as it was seen: by its digest; without one, as it is.
    ///
    /// # Errors
    /// It is not like that any more, or the store failed.
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

    /// Takes the trust in a folder back; also of one that is gone. Tells how it stands then.
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
