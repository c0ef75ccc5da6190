//! The files of a workspace for its index: found like Grep finds them, opened below the pinned folder.

use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ignore::{DirEntry, WalkBuilder};

use crate::error::ToolError;
use crate::files::walk;
use crate::fs::jail::Jail;
use crate::fs::pinned::{PinnedPath, open_regular};
use crate::sensitivity::{Access, SecretNames, SensitivePaths};
use base::sync::lock;
use knowledge::{
    ErrorKind, FileEntry, FileRefusal, FileSource, FileVisit, KnowledgeError, MAX_LEFT_OUT_FOLDERS,
    is_left_out_folder,
};

/// The files of one workspace. Sensitive files, links and everything outside are left out.
pub struct WorkspaceFiles {
    root: PathBuf,
    places: Arc<SensitivePaths>,
}

impl WorkspaceFiles {
    pub(crate) const fn new(root: PathBuf, places: Arc<SensitivePaths>) -> Self {
        Self { root, places }
    }

    /// The workspace, pinned for one walk or read.
    fn folder(&self) -> Result<PinnedPath, ToolError> {
        let jail = Jail::hold(std::slice::from_ref(&self.root), Arc::clone(&self.places));
        jail.decide_resolved(self.root.clone(), Access::Read, &|_| false)
    }
}

impl FileSource for WorkspaceFiles {
    fn walk(
        &self,
        paths: &[String],
        is_stopped: &dyn Fn() -> bool,
        visit: &mut FileVisit<'_>,
    ) -> Result<Vec<String>, KnowledgeError> {
        let failed = |error: &ToolError| {
            let text = format!("could not list {}: {}; check the folder", self.root.display(), error.text);
            KnowledgeError::new(ErrorKind::Files, text)
        };
        let folder = self.folder().map_err(|error| failed(&error))?;
        let handle = folder.folder_handle().map_err(|error| failed(&error))?;
        let mut secrets = SecretNames::new(&self.places);
        let starts: Vec<PathBuf> = match paths {
            [] => vec![self.root.clone()],
            paths => paths.iter().map(|path| self.root.join(path)).collect(),
        };
        let left_out = Arc::new(Mutex::new(Vec::new()));
        for start in starts {
            let mut builder = WalkBuilder::new(&start);
            builder.require_git(false).follow_links(false).sort_by_file_name(std::ffi::OsStr::cmp);
            let (root, folders) = (self.root.clone(), Arc::clone(&left_out));
            builder.filter_entry(move |entry| is_searched(&root, entry, &folders));
            for entry in builder.build().flatten() {
                if is_stopped() {
                    return Ok(lock(&left_out).clone());
                }
                if !walk::is_file(&entry) {
                    continue;
                }
                let path = entry.path();
                let Ok(below) = path.strip_prefix(&self.root) else { continue };
                let Some(name) = below.to_str().filter(|name| !name.is_empty()) else { continue };
                if secrets.contain_path(path) {
                    continue;
                }
                // If a folder in the path is a link, the path refers to another file. So open the file below
                // the pinned folder.
                let Ok(Some((_, meta))) = open_regular(handle.as_fd(), below, path) else { continue };
                // A file with another name outside the workspace could be any file of the user.
                if meta.nlink() > 1 {
                    continue;
                }
                let modified_ns = modified_ns(&meta);
                let entry = FileEntry { path: name.to_owned(), bytes: meta.len(), modified_ns };
                if visit(entry).is_break() {
                    return Ok(lock(&left_out).clone());
                }
            }
        }
        Ok(lock(&left_out).clone())
    }

    fn find(&self, path: &str) -> Option<FileEntry> {
        let meta = self.root.join(path).symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(FileEntry { path: path.to_owned(), bytes: meta.len(), modified_ns: modified_ns(&meta) })
    }

    fn read(&self, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileRefusal> {
        let below = Path::new(path);
        let full = self.root.join(below);
        let unreadable = |error: &ToolError| FileRefusal::Unreadable(error.text.clone());
        let folder = self.folder().map_err(|error| unreadable(&error))?;
        if SecretNames::new(&self.places).contain_path(&full) {
            return Err(FileRefusal::Secret);
        }
        let handle = folder.folder_handle().map_err(|error| unreadable(&error))?;
        let (file, meta) = match open_regular(handle.as_fd(), below, &full) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Err(FileRefusal::Gone),
            Err(_) if full.is_symlink() => return Err(FileRefusal::Outside),
            Err(error) => return Err(unreadable(&error)),
        };
        if meta.nlink() > 1 {
            return Err(FileRefusal::Outside);
        }
        if meta.len() > max_bytes {
            return Err(FileRefusal::TooLarge);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
        let read = file.take(max_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| FileRefusal::Unreadable(error.to_string()))?;
        if bytes.len() as u64 > max_bytes { Err(FileRefusal::TooLarge) } else { Ok(bytes) }
    }
}

fn modified_ns(meta: &std::fs::Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

/// Whether a walk goes into an entry. Notes folders that are left out; a folder at which the walk starts never is.
fn is_searched(root: &Path, entry: &DirEntry, left_out: &Mutex<Vec<String>>) -> bool {
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    if entry.depth() == 0 || !is_folder {
        return true;
    }
    let Some(path) = entry.path().strip_prefix(root).ok().and_then(Path::to_str) else { return true };
    if !is_left_out_folder(path, &|file| root.join(file).is_file()) {
        return true;
    }
    let mut left_out = lock(left_out);
    if left_out.len() < MAX_LEFT_OUT_FOLDERS {
        left_out.push(path.to_owned());
    }
    false
}
