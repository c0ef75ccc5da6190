//! Files of a workspace that git runs or reads because the repository's own configuration names them
//! (git-config(1): `core.hooksPath`, `core.fsmonitor`, `core.attributesFile`, `include.path`).

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use nix::fcntl::OFlag;

/// Of a longer configuration the beginning is read.
const MOST_BYTES: u64 = 64 * 1024;

/// The files and folders that the configuration of the repository at `root` names. Never waits.
pub(super) fn by_git(root: &Path, home: &Path) -> Vec<PathBuf> {
    let Some(git) = folder_of(root) else { return Vec::new() };
    let Some(text) = text_of(&git.join("config")) else { return Vec::new() };
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut line = line;
        if let Some((head, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            section = head.split([' ', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            line = rest.trim();
        }
        let Some((name, value)) = line.split_once('=') else { continue };
        // A file's own place counts for what it includes, the top of the work tree for all else.
        let from = match (section.as_str(), name.trim().to_ascii_lowercase().as_str()) {
            ("core", "hookspath" | "fsmonitor" | "attributesfile") => root,
            ("include" | "includeif", "path") => git.as_path(),
            _ => continue,
        };
        let value = value.split([';', '#']).next().unwrap_or_default().trim().trim_matches('"');
        if value.is_empty() || matches!(value, "true" | "false") {
            continue;
        }
        found.push(match value.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => plain(&from.join(value)),
        });
    }
    found
}

/// Where the configuration lies: `.git`, or behind a file of this name (gitrepository-layout(5)).
fn folder_of(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let own = root.join(text_of(&git)?.strip_prefix("gitdir:")?.trim());
    Some(text_of(&own.join("commondir")).map_or_else(|| own.clone(), |shared| own.join(shared.trim())))
}

/// A file's text, if it is one: no pipe is waited for.
fn text_of(path: &Path) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).ok()?;
    let mut bytes = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Without dots; links are as they are written, too.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.canonicalize().unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_the_configuration_names_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        let text = "[core]\n\tbare = false\n\thooksPath = .my-hooks ; mine\n\tfsmonitor = true\n[include]\n\tpath = \"../shared.inc\"\n\
                    [includeIf \"gitdir:~/x\"] path = ~/other\n[branch \"x\"]\n\tpath = no\n";
        fs::write(root.join(".git/config"), text).unwrap();
        let home = Path::new("/home/u");
        let expected = [root.join(".my-hooks"), root.join("shared.inc"), home.join("other")];
        assert_eq!(by_git(&root, home), expected);
        // Behind a file.
        let tree = root.join("tree");
        fs::create_dir_all(root.join(".git/worktrees/t")).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(root.join(".git/worktrees/t/commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", root.join(".git/worktrees/t").display()))
            .unwrap();
        assert!(by_git(&tree, home).contains(&tree.join(".my-hooks")));
        assert!(by_git(&root.join("nothing"), home).is_empty());
    }

    #[test]
    fn what_git_is_told_to_run_is_no_ordinary_file_to_write() {
        use crate::tools::care::Access;
        use crate::tools::jail::Jail;
        use crate::types::tool::PathCare;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
        let jail = Jail::open(std::slice::from_ref(&root), Path::new("/home/u"), &[]);
        let care = |name: &str, access| jail.decide(name, &root, access).unwrap().resolved.care;
        assert_eq!(care("tools/hooks/pre-commit", Access::Edit), PathCare::AutoExecuted);
        assert_eq!(care("tools/hooks/pre-commit", Access::Read), PathCare::Ordinary);
        assert_eq!(care("tools/other", Access::Edit), PathCare::Ordinary);
    }
}
