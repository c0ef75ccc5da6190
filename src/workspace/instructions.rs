//! Reads `AGENTS.md` and `CLAUDE.md` from the repository's root down to the folder, with `@path` includes. Text
//! only: nothing is run, and nothing outside the root is read.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

use super::repository_root;

/// Bytes of one file that are read.
const FILE_BYTES: u64 = 64 * 1024;
/// Bytes of all files.
const ALL_BYTES: usize = 192 * 1024;
/// Depth of nested includes.
const DEPTH: usize = 4;

const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// One file of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    pub path: PathBuf,
    pub text: String,
}

/// The user's own file first, then the root's and those of each folder down to this one; then the same for each
/// additional folder.
pub(super) fn collect(cwd: &Path, additional: &[PathBuf], user_dir: Option<&Path>) -> Vec<Instruction> {
    let mut reader = Reader { seen: HashSet::new(), found: Vec::new(), bytes: 0 };
    if let Some(dir) = user_dir.and_then(|dir| dir.canonicalize().ok()) {
        reader.read(&dir.join(NAMES[0]), &dir, 0);
    }
    for folder in std::iter::once(cwd).chain(additional.iter().map(PathBuf::as_path)) {
        reader.read_down(folder);
    }
    reader.found
}

/// The folders from the repository's root down to this one.
fn way_down(cwd: &Path) -> (PathBuf, Vec<PathBuf>) {
    let root = repository_root(cwd).unwrap_or_else(|| cwd.to_path_buf());
    let mut folders: Vec<PathBuf> =
        cwd.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_path_buf).collect();
    folders.reverse();
    (root, folders)
}

struct Reader {
    seen: HashSet<PathBuf>,
    found: Vec<Instruction>,
    bytes: usize,
}

impl Reader {
    fn read_down(&mut self, cwd: &Path) {
        let (root, folders) = way_down(cwd);
        for folder in folders {
            for name in NAMES {
                self.read(&folder.join(name), &root, 0);
            }
        }
    }

    fn read(&mut self, path: &Path, root: &Path, depth: usize) {
        // Resolve the path first: a link must not lead out of the root.
        let Ok(resolved) = path.canonicalize() else { return };
        if !resolved.starts_with(root) || !resolved.is_file() || !self.seen.insert(resolved.clone()) {
            return;
        }
        // A path that has become a link or a pipe since is an attack.
        let how = OpenHow::new()
            .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
        let Ok(file) = openat2(AT_FDCWD, &resolved, how).map(File::from) else { return };
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return;
        }
        let mut bytes = Vec::new();
        if file.take(FILE_BYTES + 1).read_to_end(&mut bytes).is_err() {
            return;
        }
        let cut = bytes.len() as u64 > FILE_BYTES;
        bytes.truncate(FILE_BYTES as usize);
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if cut {
            text.push_str("\n[cut: the file is longer]");
        }
        if self.bytes + text.len() > ALL_BYTES {
            return;
        }
        self.bytes += text.len();
        let includes = includes(&text);
        self.found.push(Instruction { path: resolved.clone(), text });
        if depth == DEPTH {
            return;
        }
        let folder = resolved.parent().unwrap_or(root).to_path_buf();
        for include in includes {
            self.read(&folder.join(include), root, depth + 1);
        }
    }
}

/// Paths named by `@path` words outside code fences.
fn includes(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut paths = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let named = line.split_whitespace().filter_map(|word| word.strip_prefix('@'));
            paths.extend(
                named
                    .map(|path| path.trim_end_matches([',', '.', ';', ')']))
                    .filter(|path| path.contains(['/', '.']))
                    .map(String::from),
            );
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(cwd: &Path) -> Vec<String> {
        collect(cwd, &[], None).into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn instructions_are_read_from_root_with_includes() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("resolved");
        std::fs::create_dir_all(root.join(".git")).expect("made");
        std::fs::create_dir_all(root.join("a/b")).expect("made");
        std::fs::write(root.join("AGENTS.md"), "root, see @docs.md.").expect("written");
        std::fs::write(root.join("docs.md"), "docs @AGENTS.md").expect("written");
        std::fs::write(root.join("a/CLAUDE.md"), "below").expect("written");
        assert_eq!(texts(&root.join("a/b")), ["root, see @docs.md.", "docs @AGENTS.md", "below"]);
    }

    #[test]
    fn instructions_outside_root_are_not_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let base = dir.path().canonicalize().expect("resolved");
        std::fs::create_dir_all(base.join("ws/.git")).expect("made");
        std::fs::write(base.join("secret.md"), "secret").expect("written");
        std::fs::write(base.join("ws/AGENTS.md"), "@../secret.md @link.md").expect("written");
        std::os::unix::fs::symlink(base.join("secret.md"), base.join("ws/link.md")).expect("linked");
        assert_eq!(texts(&base.join("ws")), ["@../secret.md @link.md"]);
    }
}
