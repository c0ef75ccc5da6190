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
use judge::{Rule, Rules};
use project::folders::ProjectFolders;
use project::workspace::{self, FolderFiles, FolderSettings, TrustInventory};
use store::StoreError;
use types::session::UntrustedParts;

/// Scans the folders of a workspace's project, and checks whether the workspace is trusted in this state.
pub(super) async fn inspect(
    shared: &Shared,
    project: ProjectFolders,
) -> Result<(TrustInventory, bool), StoreError> {
    let cwd = project.cwd().to_owned();
    let inventory = tokio::task::spawn_blocking(move || workspace::scan(&project)).await.unwrap_or_default();
    let trusted = is_trusted(shared, &cwd, &inventory.digest).await?;
    Ok((inventory, trusted))
}

/// Reads these files of each folder of a workspace's project, and the Markdown files below these folders. The nearest
/// folder comes first. Also returns whether the workspace is trusted in the state in which they were read.
pub(super) async fn files(
    shared: &Shared,
    cwd: &Path,
    names: &'static [&'static str],
) -> Result<(Vec<FolderFiles>, bool), StoreError> {
    let project = shared.find_project(cwd).await;
    let scanned = tokio::task::spawn_blocking(move || workspace::scan_with_files(&project, names)).await;
    let (inventory, files) = scanned.unwrap_or_default();
    Ok((files, is_trusted(shared, cwd, &inventory.digest).await?))
}

/// What a user decided about a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderTrust {
    /// The user trusts its files as they are.
    Trusted,
    /// The user trusted it with other files.
    Changed,
    /// The user never trusted it, or ended the trust.
    Untrusted,
}

/// Whether a folder is trusted with this digest. A worktree of the daemon is trusted as well if its base folder is trusted
/// with exactly this digest.
pub(super) async fn is_trusted(shared: &Shared, cwd: &Path, digest: &str) -> Result<bool, StoreError> {
    Ok(folder_trust(shared, cwd, digest).await? == FolderTrust::Trusted)
}

/// Like [`is_trusted`], and whether the folder was trusted with another digest.
pub(super) async fn folder_trust(
    shared: &Shared,
    cwd: &Path,
    digest: &str,
) -> Result<FolderTrust, StoreError> {
    let trusted = shared.store.trusted(&cwd.to_string_lossy()).await?;
    let is_same = |trusted: &Option<String>| !digest.is_empty() && trusted.as_deref() == Some(digest);
    if is_same(&trusted) {
        return Ok(FolderTrust::Trusted);
    }
    if let Some(base) = shared.worktree_bases.find(cwd)
        && is_same(&shared.store.trusted(&base.folder.to_string_lossy()).await?)
    {
        return Ok(FolderTrust::Trusted);
    }
    Ok(if trusted.is_some() { FolderTrust::Changed } else { FolderTrust::Untrusted })
}

/// Returns the effective rules of the project itself, those of all its folders. If every call needs a request, also
/// returns the reason.
pub(super) async fn rules(
    shared: &Shared,
    project: &ProjectFolders,
    inventory: TrustInventory,
) -> (Rules, Option<String>) {
    // Only allow rules depend on trust.
    let has_allow_rules = inventory.settings.iter().any(|settings| !settings.project.allow.is_empty());
    let trusted = has_allow_rules
        && is_trusted(shared, project.cwd(), &inventory.digest).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not read whether a folder is trusted; treating it as not trusted");
            false
        });
    let (mut rules, mut problem) = (Rules::default(), None);
    for FolderSettings { folder, name, project: found } in inventory.settings {
        let mut is_whole = !found.is_closed;
        let mut add = |into: &mut Vec<Rule>, more: Vec<Rule>| {
            for rule in more {
                // Patterns start at the workspace, unless the file lies above it.
                let based = if folder == project.cwd() { Some(rule) } else { rule.with_base(&folder) };
                is_whole &= based.is_some();
                into.extend(based);
            }
        };
        add(&mut rules.ask, found.ask);
        add(&mut rules.deny, found.deny);
        if trusted {
            add(&mut rules.allow, found.allow);
        }
        if !is_whole && problem.is_none() {
            let why = found.problem.unwrap_or_else(|| "the path of its folder is not UTF-8".into());
            problem = Some(format!("{}, so every call asks", unread_project(&name, &why)));
        }
    }
    (rules, problem)
}

/// A project's file whose deny and ask rules are not known.
pub(super) fn unread_project(name: &str, problem: &str) -> String {
    format!("could not read the project's {name}: {problem}")
}

/// The parts of a folder that need trust and do not have it; `None` if there are none.
pub(super) async fn find_untrusted(shared: &Shared, cwd: &Path) -> Option<UntrustedParts> {
    let (inventory, is_trusted) = inspect(shared, shared.find_project(cwd).await).await.ok()?;
    // A folder outside git may have no parts that need trust. Then trust makes no difference.
    if inventory.parts.is_empty() || is_trusted {
        return None;
    }
    Some(UntrustedParts { digest: inventory.digest, parts: inventory.parts })
}
