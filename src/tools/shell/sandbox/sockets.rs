//! Hidden paths at level 2 that may contain sockets.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use super::layout::FsPolicy;
use super::temp::EmptySources;
use crate::shell::sandbox::readonly_mounts::MountKind;

/// Mounts over hidden paths that may contain sockets. Landlock does not restrict connecting to a socket by its
/// path, and services such as `docker`, `tmux` and `gpg-agent` execute requests. Writable paths and their
/// ancestors are not covered, nor is the daemon's own socket, which checks its clients.
pub(super) fn socket_covers(
    layout: &FsPolicy,
    nothing: &EmptySources,
) -> io::Result<Vec<(PathBuf, MountKind)>> {
    let visible_paths = [&layout.writable, &layout.pinned, &layout.guarded].into_iter().flatten();
    let visible_paths: Vec<&PathBuf> =
        visible_paths.chain([&layout.temp, &layout.home]).chain(&layout.socket).collect();
    let is_beyond = |path: &&PathBuf| !layout.writable.iter().any(|folder| path.starts_with(folder));
    let mut left: Vec<PathBuf> = top_paths(&layout.hidden).into_iter().filter(is_beyond).cloned().collect();
    let mut covers = Vec::new();
    while let Some(path) = left.pop() {
        let Ok(kind) = fs::symlink_metadata(&path).map(|meta| meta.file_type()) else { continue };
        if visible_paths.contains(&&path) {
            continue;
        }
        if visible_paths.iter().any(|other| other.starts_with(&path)) {
            // Cover all siblings one by one.
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.take(MAX_UNHIDDEN_ENTRIES + 1).map(|entry| entry.path()));
            if left.len() > MAX_UNHIDDEN_ENTRIES {
                return Err(io::Error::other(format!(
                    "{} holds too many entries that are not hidden: sockets in it cannot be covered",
                    path.display()
                )));
            }
        } else if kind.is_dir() {
            covers.push((path, MountKind::Hide(nothing.folder.clone())));
        } else if kind.is_socket() {
            covers.push((path, MountKind::Hide(nothing.file.clone())));
        }
    }
    Ok(covers)
}

/// Entries in the folders of the daemon's own socket, and of writable paths in a hidden folder.
const MAX_UNHIDDEN_ENTRIES: usize = 2_000;

/// The paths that lie in no other one: paths in a covered folder are invisible.
fn top_paths(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut sorted: Vec<&PathBuf> = paths.iter().collect();
    // Sorted paths place a folder's content directly after the folder.
    sorted.sort();
    sorted.dedup_by(|path, above| path.starts_with(above));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_paths_are_not_top_folders() {
        let paths = ["/a/b/c", "/a/b", "/a/b-c", "/a/b/d/e", "/a", "/ab", "/x/y", "/x/y"].map(PathBuf::from);
        let found = |paths: &[PathBuf]| top_paths(paths).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(found(&paths), ["/a", "/ab", "/x/y"].map(PathBuf::from));
        assert_eq!(found(&paths[..4]), ["/a/b", "/a/b-c"].map(PathBuf::from));
    }
}
