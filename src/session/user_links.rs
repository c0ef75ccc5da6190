//! Links in the user's own folders that lead into a workspace. Agents can write there, so such a link is followed only if
//! the workspace is trusted.

use std::path::Path;

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust;
use project::folders::ProjectFolders;
use project::workspace;

/// Refuses the target of a link if it lies in a workspace that is not trusted: that of `cwd`, one with a loaded session, or
/// one that was trusted before. Blocks on the disk and on the database.
///
/// # Errors
/// The reason, for users.
pub(crate) fn check(shared: &Shared, cwd: &Path, runtime: &Handle, target: &Path) -> Result<(), String> {
    let mut owners: Vec<ProjectFolders> = shared
        .workspaces
        .list()
        .iter()
        .map(|workspace| shared.project_folders(workspace))
        .chain([shared.project_folders(cwd)])
        .filter(|project| target.starts_with(project.root()))
        .collect();
    let holder = if target.is_dir() { target } else { target.parent().unwrap_or(target) };
    let own = shared.project_folders(cwd).find_other(holder);
    let own = own.find_other(own.root());
    let was_trusted = runtime.block_on(shared.store.trusted(&own.root().to_string_lossy()));
    if was_trusted.map_err(|error| error.to_string())?.is_some() {
        owners.push(own);
    }
    let is_trusted = |project: &ProjectFolders| {
        let digest = workspace::scan(project).digest;
        runtime.block_on(trust::is_trusted(shared, project.cwd(), &digest)).unwrap_or(false)
    };
    match owners.first() {
        Some(project) if !owners.iter().any(is_trusted) => Err(format!(
            "the link leads into {}, which is not trusted (agentctl trust)",
            project.root().display()
        )),
        _ => Ok(()),
    }
}
