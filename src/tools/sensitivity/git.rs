//! Paths that git executes or applies: hooks, configuration, and the `.git` entry itself, also of submodules,
//! other work trees, and bare repositories.

use std::os::fd::BorrowedFd;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::tools::disk;

/// Decides by the path alone.
pub(super) fn is_control(parts: &[&str]) -> bool {
    let Some(at) = parts.iter().position(|part| *part == ".git" || is_bare_name(part)) else { return false };
    let is_exact = parts[at] == ".git";
    match &parts[at + 1..] {
        [] => is_exact,
        inner if is_exact => {
            inner.contains(&"hooks")
                || inner.last().is_some_and(|l| matches!(*l, "config" | "config.worktree" | "commondir"))
        }
        // `proj.git/`: the common name of a bare repository.
        inner => matches!(inner, ["hooks", ..] | ["config" | "config.worktree" | "commondir"]),
    }
}

fn is_bare_name(part: &str) -> bool {
    part.len() > ".git".len() && part.ends_with(".git")
}

/// Decides by the content: whether `folder` is a repository with any name. Git accepts every folder with these
/// three entries and applies its `config`.
pub(in crate::tools) fn is_directory(folder: BorrowedFd<'_>) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .filter(|name| disk::open_below(folder, Path::new(name), OFlag::O_PATH, Mode::empty()).is_ok())
        .count()
        >= 2
}
