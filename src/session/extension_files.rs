//! Markdown files of the user and of the trusted project, for commands and agents. The files are read
//! again for each use, because they are few and small, and the user may have just changed them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::error::SessionError;
use crate::registry::Registry;
use crate::shared::Shared;
use crate::trust;
use crate::user_links::UserLinkCheck;
use project::extensions::{self, Diagnostic, ExtensionSource, MarkdownFile, UserLinks};
use project::workspace::{FolderFiles, ScannedFile};
use store::StoreError;

/// The folder of a project with templates of jobs.
const JOB_TEMPLATES: [&str; 1] = [".agentd/jobs"];

/// The files of some folders.
#[derive(Debug, Default)]
pub struct ExtensionFiles {
    /// The files of each folder, the folder with priority first.
    pub folders: Vec<(ExtensionSource, Vec<MarkdownFile>)>,
    /// Files and folders that cannot be used.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the files of the user's folders. Also reads those of all folders of the project, the nearest first, if the
/// workspace is trusted in its current state. `kind` names the content of the files for users, such as `commands`.
///
/// # Errors
/// The database could not be read.
pub(super) async fn load(
    shared: &Arc<Shared>,
    cwd: &Path,
    project_folders: &'static [&'static str],
    user_folders: Vec<PathBuf>,
    kind: &'static str,
) -> Result<ExtensionFiles, StoreError> {
    let (project, is_trusted) = match project_folders {
        [] => (Vec::new(), false),
        folders => trust::files(shared, cwd, folders).await?,
    };
    let (shared, cwd, runtime) = (Arc::clone(shared), cwd.to_owned(), Handle::current());
    let read = tokio::task::spawn_blocking(move || {
        let mut found = ExtensionFiles::default();
        let places =
            project.iter().flat_map(|of| project_folders.iter().map(move |name| (of, Path::new(name))));
        for (FolderFiles { folder, files }, name) in places {
            let below = |(path, content): &ScannedFile| {
                Some((path.strip_prefix(name).ok()?.to_owned(), content.clone()))
            };
            let own: Vec<_> = files.iter().filter_map(below).collect();
            let place = folder.join(name);
            if !own.is_empty() && !is_trusted {
                let message =
                    format!("these {kind} are not used: the workspace is not trusted (agentctl trust)");
                found.diagnostics.push(Diagnostic { path: place, message });
                continue;
            }
            let (files, problems) = extensions::files_from_contents(&place, own);
            found.diagnostics.extend(problems);
            found.folders.push((ExtensionSource::Project, files));
        }
        let check = UserLinkCheck::new(&shared, &cwd, &runtime);
        let home = shared.components().settings.home.clone();
        let links = UserLinks { home: &home, check: &|target| check.check(target) };
        for folder in user_folders {
            let (files, problems) = extensions::scan(&folder, links);
            found.diagnostics.extend(problems);
            found.folders.push((ExtensionSource::User, files));
        }
        found
    });
    Ok(read.await.unwrap_or_default())
}

impl Registry {
    /// The files with templates of jobs: those of the user, and with a folder also those of its project.
    ///
    /// # Errors
    /// The folder does not exist, or the database could not be read.
    pub async fn job_template_files(&self, cwd: Option<&str>) -> Result<ExtensionFiles, SessionError> {
        let settings = &self.shared().components().settings;
        let user = settings.user_dir.iter().map(|folder| folder.join("jobs")).collect();
        let (cwd, project_folders): (_, &'static [&'static str]) = match cwd {
            Some(cwd) => (PathBuf::from(self.folder(cwd).await?), &JOB_TEMPLATES),
            None => (settings.home.clone(), &[]),
        };
        Ok(load(&self.shared_arc(), &cwd, project_folders, user, "templates").await?)
    }
}
