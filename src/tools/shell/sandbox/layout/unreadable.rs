//! Handles paths that cannot be read: if the daemon's user owns a folder that cannot be searched, listed or
//! written now, a command in the sandbox may open it again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, eaccess};

use crate::file_errors::is_missing;
use base::open::is_plain;

/// Links in one path; the kernel's own limit, path_resolution(7).
const MAX_LINKS: usize = 40;

/// Result of following a path.
enum FollowResult {
    To(PathBuf),
    Nowhere,
    /// Stops at a folder that cannot be searched now, or in which the name is too long.
    UpTo(PathBuf),
    /// Stops at a link that is not followed.
    Link,
}

/// Follows a path, including those links for which `follows` returns true. It receives the folder and the path
/// of the link.
fn follow_path(path: &Path, follows: &mut dyn FnMut(&Path, &Path) -> bool) -> FollowResult {
    let parts =
        |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    let (mut rest, mut at, mut links) = (parts(path), PathBuf::new(), 0);
    while let Some(part) = rest.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS || !follows(&at, &next) {
                    return FollowResult::Link;
                }
                let Ok(to) = fs::read_link(&next) else { return FollowResult::Nowhere };
                rest.extend(parts(&to));
            }
            Ok(_) => at = next,
            Err(error) if is_missing(&error) => return FollowResult::Nowhere,
            Err(_) => return FollowResult::UpTo(at),
        }
    }
    FollowResult::To(at)
}

/// The ancestor of a path, with links followed, that cannot be searched now and belongs to the daemon's user. A
/// command may open such a folder again. Also returns a folder in which the name is too long.
pub(super) fn unsearchable_ancestor(path: &Path) -> Option<PathBuf> {
    match follow_path(path, &mut |_, _| true) {
        FollowResult::UpTo(at) if is_ours(&at) => Some(at),
        _ => None,
    }
}

/// A link in the path, in a folder for which `counts` returns true. A process that can write there may replace
/// the link, and no mount can cover a link.
pub(super) fn find_link(path: &Path, counts: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    if is_plain(path) {
        return None;
    }
    let mut found = None;
    follow_path(path, &mut |folder, link| {
        let stops = counts(folder);
        if stops {
            found = Some(link.to_owned());
        }
        !stops
    });
    found
}

/// Resolves a path if no link in it can be the work of a command. A command can create links that belong to the
/// daemon's user; if that is root, all links outside the topmost folder count. Such a link would extend the
/// rights of all commands.
pub(super) fn resolve_foreign_links(path: &Path) -> Option<PathBuf> {
    if is_plain(path) {
        return Some(path.components().collect());
    }
    let is_root = nix::unistd::geteuid().is_root();
    match follow_path(path, &mut |folder, link| folder == Path::new("/") || !is_root && !is_ours(link)) {
        FollowResult::To(real) => Some(real),
        _ => None,
    }
}

/// The parent of a path, if no entry can be created in it now and it belongs to the daemon's user.
pub(super) fn closed_parent(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let meta = fs::symlink_metadata(folder).ok()?;
    let is_closed = meta.is_dir() && meta.mode() & 0o300 != 0o300 && !nix::unistd::geteuid().is_root();
    (is_closed && is_ours(folder)).then(|| folder.to_owned())
}

fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.uid() == nix::unistd::geteuid().as_raw())
}

/// Whether a folder exists and cannot be listed or searched.
pub(super) fn is_shut(folder: &Path) -> bool {
    lacks_access(folder, AccessFlags::R_OK | AccessFlags::X_OK)
}

/// Whether a folder exists and cannot be searched.
pub(super) fn is_locked(folder: &Path) -> bool {
    lacks_access(folder, AccessFlags::X_OK)
}

fn lacks_access(folder: &Path, access: AccessFlags) -> bool {
    eaccess(folder, access).is_err_and(|errno| !is_missing(&errno.into()))
}

/// The type of the file at a path, with links followed; `None` if it does not exist.
///
/// # Errors
/// The path cannot be read now.
pub(super) fn kind(path: &Path) -> io::Result<Option<fs::FileType>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(meta.file_type())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the path exists and is not a link.
pub(super) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_symlink())
}

#[cfg(test)]
mod tests {
    use crate::shell::sandbox::layout::unreadable::*;

    #[test]
    fn command_writable_symlink_does_not_widen_access() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("cache/real")).unwrap();
        fs::create_dir(root.join("keys")).unwrap();
        std::os::unix::fs::symlink("../keys", root.join("cache/planted")).unwrap();
        let found = |name: &str| resolve_foreign_links(&root.join(name));
        assert_eq!(found("cache/real"), Some(root.join("cache/real")));
        assert_eq!(found("cache/../keys"), Some(root.join("keys")));
        let within =
            |folder: &str| find_link(&root.join("cache/planted/in"), &|path| path == root.join(folder));
        assert_eq!((within("cache"), within("keys")), (Some(root.join("cache/planted")), None));
        assert_eq!(
            (found("cache/planted"), found("cache/planted/in"), found("cache/none")),
            (None, None, None)
        );
        // System links in the topmost folder, such as `/bin`, are not the work of a command.
        let topmost = fs::read_dir("/").unwrap().flatten().map(|entry| entry.path());
        for link in topmost.filter(|path| path.is_symlink() && path.is_dir()) {
            assert_eq!(resolve_foreign_links(&link), link.canonicalize().ok(), "{}", link.display());
        }
    }
}
