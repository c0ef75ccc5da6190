//! Markdown files of the user and of the trusted project, for commands and agents. The files are read
//! again for each use, because they are few and small, and the user may have just changed them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::shared::Shared;
use crate::trust;
use crate::user_links::UserLinkCheck;
use project::extensions::{self, Diagnostic, ExtensionSource, MarkdownFile, UserLinks};
use project::workspace::{FolderFiles, ScannedFile};
use store::StoreError;

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
pub(crate) async fn load(
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
