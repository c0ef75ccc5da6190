//! The folders that clients name: resolved, and checked as workspaces.

use std::path::Path;
use std::sync::Arc;

use crate::error::SessionError;
use crate::project_config::{MayHaveSettings, ProjectLayer};
use crate::registry::Registry;
use project::folders::ProjectFolders;

/// Maximum number of additional folders of a session.
const MAX_ADDITIONAL_DIRS: usize = 16;

impl Registry {
    /// The canonical path of a folder: absolute and without symbolic links.
    pub(crate) async fn folder(&self, requested: &str) -> Result<String, SessionError> {
        self.resolve_folder("cwd", requested).await
    }

    /// The canonical path of a workspace that a client names.
    ///
    /// # Errors
    /// The path is not an absolute path of a folder.
    pub async fn workspace_folder(&self, requested: &str) -> Result<String, SessionError> {
        self.resolve_folder("workspace", requested).await
    }

    async fn resolve_folder(&self, name: &'static str, requested: &str) -> Result<String, SessionError> {
        self.look_at_folder(name, requested, |_| ()).await.map(|(folder, ())| folder)
    }

    /// The canonical path of the folder of a new session, with its project and whether that may have settings. All of it is
    /// one trip to a blocking thread.
    pub(crate) async fn folder_with_project(
        &self,
        requested: &str,
    ) -> Result<(String, ProjectFolders, MayHaveSettings), SessionError> {
        let shared = &self.inner.shared;
        let (workspaces, home) = (Arc::clone(&shared.workspaces), shared.components().settings.home.clone());
        let look = move |cwd: &Path| {
            let project = workspaces.project_folders(cwd, &home);
            (ProjectLayer::may_have_settings(&project), project)
        };
        let (cwd, (may_have, project)) = self.look_at_folder("cwd", requested, look).await?;
        Ok((cwd, project, may_have))
    }

    /// Resolves a folder, and calls `look` with it on a blocking thread.
    async fn look_at_folder<T: Send + 'static>(
        &self,
        name: &'static str,
        requested: &str,
        look: impl FnOnce(&Path) -> T + Send + 'static,
    ) -> Result<(String, T), SessionError> {
        let path = Path::new(requested);
        if !path.is_absolute() {
            let why = format!("expected an absolute path, got {requested:?}");
            return Err(SessionError::BadParam(name, why));
        }
        let owned_path = path.to_owned();
        let resolution = tokio::task::spawn_blocking(move || {
            let cwd = owned_path.canonicalize()?;
            let is_folder = cwd.metadata()?.is_dir();
            let seen = is_folder.then(|| look(&cwd));
            Ok((cwd, seen))
        });
        let (cwd, seen) = match resolution.await.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            Ok((cwd, Some(seen))) => (cwd, seen),
            Ok(_) => return Err(SessionError::BadParam(name, format!("{requested} is not a folder"))),
            Err(error) => {
                return Err(SessionError::BadParam(name, format!("could not open {requested}: {error}")));
            }
        };
        match cwd.to_str() {
            Some(cwd) => Ok((cwd.to_owned(), seen)),
            None => Err(SessionError::BadParam(name, "the path is not valid UTF-8".into())),
        }
    }

    /// Checks additional workspace folders. Each must exist and must not be the root or a folder of the system
    /// or the daemon.
    pub(crate) async fn check_additional_dirs(
        &self,
        requested_dirs: &[String],
    ) -> Result<Vec<String>, SessionError> {
        const NAME: &str = "additional_dirs";
        if requested_dirs.len() > MAX_ADDITIONAL_DIRS {
            let why = format!("{} folders are too many, {MAX_ADDITIONAL_DIRS} at most", requested_dirs.len());
            return Err(SessionError::BadParam(NAME, why));
        }
        let components = self.inner.shared.components();
        let mut dirs = Vec::new();
        for requested in requested_dirs {
            let dir = self.resolve_folder(NAME, requested).await?;
            let path = Path::new(&dir);
            let of_system = ["/proc", "/sys", "/dev"].iter().any(|place| path.starts_with(place));
            if path.parent().is_none() || of_system {
                let why = format!("{requested} cannot be a workspace: name a folder of a project");
                return Err(SessionError::BadParam(NAME, why));
            }
            if components.tools.is_protected(path) {
                let why = format!("{requested} is a folder of the daemon itself, which no tool may change");
                return Err(SessionError::BadParam(NAME, why));
            }
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        Ok(dirs)
    }
}
