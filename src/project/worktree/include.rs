//! Copies ignored files into a new worktree, for example `.env`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::WorktreeProblem;
use super::repository::Repository;
use crate::git::path_of;
use base::open::open_resolved;

/// Maximum number of files that are copied.
const MAX_FILES: usize = 20_000;
/// Maximum size of all copied files together.
const MAX_BYTES: u64 = 1 << 30;

/// Copies the files that git ignores and that these paths or globs name. Links are left out. A pattern without a file
/// copies nothing.
pub(super) async fn copy_ignored_files(
    repository: &Repository,
    worktree: &Path,
    include: &[String],
) -> Result<(), WorktreeProblem> {
    let Some(top) = repository.top.clone().filter(|_| !include.is_empty()) else { return Ok(()) };
    let patterns = include.iter().map(|pattern| format!(":(top,glob){}", pattern.trim_start_matches("./")));
    let list = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--"];
    let listed = repository.read().args(list).args(patterns).output().await?;
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let paths: Vec<PathBuf> = paths.map(|path| path_of(path).to_owned()).collect();
    let worktree = worktree.to_owned();
    let copied = tokio::task::spawn_blocking(move || copy_all(&top, &worktree, &paths)).await;
    copied
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| WorktreeProblem::new("worktree.include", format!("could not copy: {error}")))
}

fn copy_all(top: &Path, worktree: &Path, paths: &[PathBuf]) -> io::Result<()> {
    if paths.len() > MAX_FILES {
        return Err(io::Error::other(format!("more than {MAX_FILES} files")));
    }
    let mut rest = MAX_BYTES;
    for path in paths {
        let from = top.join(path);
        if fs::symlink_metadata(&from)?.is_file() {
            rest = copy(&from, worktree, path, rest)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        }
    }
    Ok(())
}

/// Copies one file and returns how many bytes may follow. A file of the base commit stays as it is.
fn copy(from: &Path, worktree: &Path, path: &Path, rest: u64) -> io::Result<u64> {
    // A tool of another session could put a link in its place.
    let mut source: File = open_resolved(from)?;
    let mode = source.metadata()?.mode() & 0o777;
    make_folders(worktree, path.parent().unwrap_or(Path::new("")))?;
    let target = OpenOptions::new().write(true).create_new(true).mode(mode).open(worktree.join(path));
    let mut target = match target {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(rest),
        opened => opened?,
    };
    let mut limited = io::Read::take(&mut source, rest + 1);
    let bytes = io::copy(&mut limited, &mut target)?;
    rest.checked_sub(bytes).ok_or_else(|| io::Error::other(format!("more than {MAX_BYTES} bytes in all")))
}

/// Makes the missing folders of a path. A link of the base commit on the way is refused, because it may lead elsewhere.
fn make_folders(worktree: &Path, folders: &Path) -> io::Result<()> {
    let mut folder = worktree.to_owned();
    for name in folders {
        folder.push(name);
        match fs::symlink_metadata(&folder) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(io::Error::other("the base commit has a file or a link in this place")),
            Err(error) if error.kind() == ErrorKind::NotFound => fs::create_dir(&folder)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
