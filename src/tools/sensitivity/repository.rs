//! Reads the files and configuration of a git repository (gitrepository-layout(5), git-config(1)). They are
//! untrusted content of the workspace: no function waits for a pipe, and only the beginning of a long file is
//! read.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::file_errors::is_missing;
use base::open;

/// Maximum bytes that are read of a file: more than any configuration that a user writes.
const MAX_CONFIG_BYTES: u64 = 64 * 1024;

/// The text of a regular file.
pub(crate) fn text_of(path: &Path) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).ok()?;
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = Vec::new();
    file.take(MAX_CONFIG_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a file is longer than [`text_of`] reads, or may have any content because it cannot be read now.
pub(crate) fn is_longer(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => meta.len() > MAX_CONFIG_BYTES || text_of(path).is_none(),
        Ok(_) => false,
        Err(error) => !is_missing(&error),
    }
}

/// The folder that a `.git` file names, as written; it need not exist.
pub(crate) fn named_in(git: &Path) -> Option<PathBuf> {
    Some(git.parent()?.join(text_of(git)?.strip_prefix("gitdir:")?.trim()))
}

/// The folder that `commondir` names, if there is one.
pub(crate) fn common_folder(own: &Path) -> Option<PathBuf> {
    Some(own.join(text_of(&own.join("commondir"))?.trim()))
}

/// A setting of a configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GitSetting {
    /// Without the subsection; in lower case, like the name.
    pub(crate) section: String,
    pub(crate) name: String,
    /// The value as written; `None` for a name alone, which means `true`.
    pub(crate) value: Option<String>,
}

/// The settings of a configuration in order. A value that continues on the next line is cut at the end of its
/// line.
pub(crate) fn settings(text: &str) -> impl Iterator<Item = GitSetting> {
    let mut section = String::new();
    text.lines().filter_map(move |line| {
        let mut line = line.trim();
        if let Some((head, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = head.split([' ', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            line = rest.trim();
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().to_owned())),
            None => (line, None),
        };
        let is_setting = name.starts_with(|c: char| c.is_ascii_alphabetic());
        is_setting.then(|| GitSetting { section: section.clone(), name: name.to_ascii_lowercase(), value })
    })
}

/// Whether git executes or applies a file at this path: hooks, configuration, and the `.git` entry itself. Decides
/// by the path alone.
pub(super) fn is_git_control(parts: &[&str]) -> bool {
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
pub(crate) fn is_directory(folder: BorrowedFd<'_>) -> bool {
    ["HEAD", "objects", "refs"]
        .iter()
        .filter(|name| open::open_below(folder, Path::new(name), open::HANDLE, Mode::empty()).is_ok())
        .count()
        >= 2
}

#[cfg(test)]
mod tests {
    use crate::sensitivity::repository::*;

    #[test]
    fn git_settings_are_found_in_any_layout() {
        let text = "# x = y\n[core]\n\tbare\n\tHooksPath = a b\n[branch \"m\"] remote=o\n[x.y]\n;\n z = 1\n";
        let found: Vec<_> =
            settings(text).map(|it| (it.section, it.name, it.value.unwrap_or("-".into()))).collect();
        let expected =
            [("core", "bare", "-"), ("core", "hookspath", "a b"), ("branch", "remote", "o"), ("x", "z", "1")];
        assert_eq!(found, expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned())));
    }

    #[test]
    fn fifo_as_git_file_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".git", "commondir"] {
            let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
            nix::unistd::mkfifo(&dir.path().join(name), mode).unwrap();
        }
        assert_eq!((named_in(&dir.path().join(".git")), common_folder(dir.path())), (None, None));
    }
}
