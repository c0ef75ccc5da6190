//! What is hidden at level 2, as far as there may be sockets in it.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

use super::layout::FsPolicy;
use super::temp::Nothing;
use crate::tools::shell::sandbox::readonly_mounts::Cover;

/// Covers of what is hidden, as far as there may be sockets: Landlock keeps nobody from those by their path, and behind
/// some there is a service that does what it is told (`docker`, `tmux`, `gpg-agent`). Not of what lies where commands may
/// write, nor around what they may, nor of the daemon's own, which knows whom it talks to.
pub(super) fn without_sockets(layout: &FsPolicy, nothing: &Nothing) -> io::Result<Vec<(PathBuf, Cover)>> {
    let kept = [&layout.writable, &layout.pinned, &layout.guarded].into_iter().flatten();
    let kept: Vec<&PathBuf> = kept.chain([&layout.temp, &layout.home]).chain(&layout.socket).collect();
    let is_beyond = |path: &&PathBuf| !layout.writable.iter().any(|folder| path.starts_with(folder));
    let mut left: Vec<PathBuf> = tops(&layout.hidden).into_iter().filter(is_beyond).cloned().collect();
    let mut covers = Vec::new();
    while let Some(path) = left.pop() {
        let Ok(kind) = fs::symlink_metadata(&path).map(|meta| meta.file_type()) else { continue };
        if kept.contains(&&path) {
            continue;
        }
        if kept.iter().any(|other| other.starts_with(&path)) {
            // All beside it, one by one.
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            left.extend(entries.take(MOST_BESIDE + 1).map(|entry| entry.path()));
            if left.len() > MOST_BESIDE {
                return Err(io::Error::other(format!(
                    "{} holds too much beside what is not hidden: sockets in it cannot be covered",
                    path.display()
                )));
            }
        } else if kind.is_dir() {
            covers.push((path, Cover::Hide(nothing.folder.clone())));
        } else if kind.is_socket() {
            covers.push((path, Cover::Hide(nothing.file.clone())));
        }
    }
    Ok(covers)
}

/// Entries beside the daemon's own socket, and beside what may be written in a hidden folder.
const MOST_BESIDE: usize = 2_000;

/// Those that lie in no other of them: what lies in a covered folder is not there.
fn tops(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut sorted: Vec<&PathBuf> = paths.iter().collect();
    // What lies in a folder comes right behind it.
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
        let found = |paths: &[PathBuf]| tops(paths).into_iter().cloned().collect::<Vec<_>>();
        assert_eq!(found(&paths), ["/a", "/ab", "/x/y"].map(PathBuf::from));
        assert_eq!(found(&paths[..4]), ["/a/b", "/a/b-c"].map(PathBuf::from));
    }
}
