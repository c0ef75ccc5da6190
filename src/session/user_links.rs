//! Links in the user's own folders that lead into a workspace. Agents can write there, so such a link is followed only if
//! the workspace is trusted.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust;
use project::folders::ProjectFolders;
use project::workspace;

/// Judges the links of one look at the user's folders. Many links may lead into one workspace, which is scanned once.
pub(crate) struct UserLinkCheck<'s> {
    shared: &'s Shared,
    cwd: &'s Path,
    runtime: &'s Handle,
    /// The projects of the session's folder and of all loaded sessions.
    projects: OnceCell<Vec<ProjectFolders>>,
    /// Whether a workspace is trusted, by its folder.
    trusted: RefCell<HashMap<PathBuf, bool>>,
}

impl<'s> UserLinkCheck<'s> {
    /// A check for a session in this folder.
    pub fn new(shared: &'s Shared, cwd: &'s Path, runtime: &'s Handle) -> Self {
        Self { shared, cwd, runtime, projects: OnceCell::new(), trusted: RefCell::default() }
    }

    /// Refuses the target of a link if it lies in a workspace that is not trusted: that of the session, one with a loaded
    /// session, or one that was trusted before. Blocks on the disk and on the database.
    pub fn check(&self, target: &Path) -> Result<(), String> {
        let projects = self.projects.get_or_init(|| {
            let loaded = self.shared.workspaces.list();
            let folders = loaded.iter().map(PathBuf::as_path).chain([self.cwd]);
            folders.map(|folder| self.shared.project_folders(folder)).collect()
        });
        let mut owners: Vec<ProjectFolders> =
            projects.iter().filter(|project| target.starts_with(project.root())).cloned().collect();
        owners.extend(self.known_owner(target)?);
        match owners.first() {
            Some(project) if !owners.iter().any(|owner| self.is_trusted(owner)) => Err(format!(
                "the link leads into {}, which is not trusted (agentctl trust)",
                project.root().display()
            )),
            _ => Ok(()),
        }
    }

    /// The project that holds a path, if it was trusted before.
    fn known_owner(&self, target: &Path) -> Result<Option<ProjectFolders>, String> {
        let holder = if target.is_dir() { target } else { target.parent().unwrap_or(target) };
        let found = ProjectFolders::find(holder, &self.shared.components().settings.home);
        let project = found.find_other(found.root());
        let known = self.runtime.block_on(self.shared.store.trusted(&project.root().to_string_lossy()));
        Ok(known.map_err(|error| error.to_string())?.map(|_| project))
    }

    fn is_trusted(&self, project: &ProjectFolders) -> bool {
        *self.trusted.borrow_mut().entry(project.cwd().to_owned()).or_insert_with(|| {
            let digest = workspace::scan(project).digest;
            let trusted = trust::is_trusted(self.shared, project.cwd(), &digest);
            self.runtime.block_on(trusted).unwrap_or(false)
        })
    }
}
