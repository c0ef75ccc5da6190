//! The folders that clients name: resolved, and checked as workspaces.

use std::path::Path;

use crate::error::SessionError;
use crate::registry::Registry;

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
        let path = Path::new(requested);
        if !path.is_absolute() {
            let why = format!("expected an absolute path, got {requested:?}");
            return Err(SessionError::BadParam(name, why));
        }
        let owned_path = path.to_owned();
        let resolution = tokio::task::spawn_blocking(move || {
            let cwd = owned_path.canonicalize()?;
            let is_folder = cwd.metadata()?.is_dir();
            Ok((cwd, is_folder))
        });
        let cwd = match resolution.await.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            Ok((cwd, true)) => cwd,
            Ok(_) => return Err(SessionError::BadParam(name, format!("{requested} is not a folder"))),
            Err(error) => {
                return Err(SessionError::BadParam(name, format!("could not open {requested}: {error}")));
            }
        };
        let cwd = cwd.to_str().map(String::from);
        cwd.ok_or_else(|| SessionError::BadParam(name, "the path is not valid UTF-8".into()))
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
