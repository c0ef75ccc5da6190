//! Trust in a folder: the content that the user trusts, and the rules that depend on this trust.
//!
//! Trust applies to a digest. Code that depends on trust scans the folder at that moment and uses
//! exactly the content that this scan read. So no file can be exchanged between the check and its use.
//!
//! The files are read and hashed for each verdict, not cached by size and times. A change within the clock
//! granularity of the file system, or through an older memory mapping, leaves size and times unchanged. Trust
//! would then cover content that the user never reviewed. The content is small in normal folders, limited in
//! all others, and read on a blocking thread.

use std::path::Path;

use crate::shared::Shared;
use judge::Rules;
use project::workspace::{self, ScannedFile, TrustInventory};
use store::StoreError;
use types::session::UntrustedParts;

/// Scans a folder and checks whether it is trusted in this state.
pub(super) async fn inspect(shared: &Shared, cwd: &Path) -> Result<(TrustInventory, bool), StoreError> {
    let inventory = scan(cwd).await;
    let trusted = is_trusted(shared, cwd, &inventory.digest).await?;
    Ok((inventory, trusted))
}

async fn scan(cwd: &Path) -> TrustInventory {
    let folder = cwd.to_owned();
    tokio::task::spawn_blocking(move || workspace::scan(&folder)).await.unwrap_or_default()
}

/// Reads these files of a workspace and the Markdown files below these folders. Also returns whether
/// the workspace is trusted in the state in which they were read.
pub(super) async fn files(
    shared: &Shared,
    cwd: &Path,
    folders: &'static [&'static str],
) -> Result<(Vec<ScannedFile>, bool), StoreError> {
    let folder = cwd.to_owned();
    let scanned = tokio::task::spawn_blocking(move || workspace::scan_with_files(&folder, folders)).await;
    let (inventory, files) = scanned.unwrap_or_default();
    Ok((files, is_trusted(shared, cwd, &inventory.digest).await?))
}

/// Whether a folder is trusted with this digest.
pub(super) async fn is_trusted(shared: &Shared, cwd: &Path, digest: &str) -> Result<bool, StoreError> {
    let known = shared.store.trusted(&cwd.to_string_lossy()).await?;
    Ok(!digest.is_empty() && known.as_deref() == Some(digest))
}

/// Returns the effective rules of the project itself. If every call needs a request, also returns the reason.
pub(super) async fn rules(shared: &Shared, cwd: &Path, inventory: TrustInventory) -> (Rules, Option<String>) {
    let project = inventory.project;
    // Only allow rules depend on trust.
    let trusted = !project.allow.is_empty()
        && is_trusted(shared, cwd, &inventory.digest).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
            false
        });
    let allow = if trusted { project.allow } else { Vec::new() };
    let problem = project
        .problem
        .filter(|_| project.is_closed)
        .map(|problem| format!("{}, so every call asks", unread_project(&problem)));
    (Rules { allow, ask: project.ask, deny: project.deny }, problem)
}

/// A project's file whose deny and ask rules are not known.
pub(super) fn unread_project(problem: &str) -> String {
    format!("could not read the project's .agentd/config.toml: {problem}")
}

/// The parts of a folder that need trust and do not have it; `None` if there are none.
pub(super) async fn find_untrusted(shared: &Shared, cwd: &Path) -> Option<UntrustedParts> {
    let inventory = scan(cwd).await;
    // A folder outside git may have no parts that need trust. Then trust makes no difference.
    if inventory.parts.is_empty() || is_trusted(shared, cwd, &inventory.digest).await.ok()? {
        return None;
    }
    Some(UntrustedParts { digest: inventory.digest, parts: inventory.parts })
}
