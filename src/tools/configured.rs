//! Files of a workspace that git runs or reads because the repository's own configuration names them
//! (git-config(1): `core.hooksPath`, `core.fsmonitor`, `core.attributesFile`, `include.path`).

use std::path::{Component, Path, PathBuf};

use super::repository::{self, Setting};

/// The files and folders that the configuration of the repository around `folder` names. Never waits. What an included
/// file names is not looked for.
pub(super) fn by_git(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let Some((root, git)) = folder.ancestors().find_map(|root| Some((root, folders_of(root)?))) else {
        return Vec::new();
    };
    let files = [git.shared.join("config"), git.own.join("config.worktree")];
    files.iter().filter_map(|file| Some((file, repository::text_of(file)?))).fold(
        Vec::new(),
        |mut found, (file, text)| {
            // A file's own place counts for what it includes, the top of the work tree for all else.
            let beside = file.parent().unwrap_or(root);
            found.extend(named(&text).map(|(is_include, value)| match value.strip_prefix("~/") {
                Some(rest) => home.join(rest),
                None => plain(&if is_include { beside } else { root }.join(value)),
            }));
            found
        },
    )
}

/// What a configuration names: whether it is a file to include, and its path.
fn named(text: &str) -> impl Iterator<Item = (bool, String)> {
    repository::settings(text).filter_map(|Setting { section, name, value }| {
        let value = unquoted(&value?);
        let is_include = matches!(section.as_str(), "include" | "includeif") && name == "path";
        let is_path =
            is_include || section == "core" && matches!(name.as_str(), "hookspath" | "attributesfile");
        let is_program = match section.as_str() {
            "core" => matches!(name.as_str(), "fsmonitor" | "sshcommand" | "editor" | "pager"),
            "filter" => matches!(name.as_str(), "clean" | "smudge" | "process"),
            "diff" => matches!(name.as_str(), "textconv" | "command" | "external"),
            "merge" => name == "driver",
            "credential" => name == "helper",
            "gpg" => name == "program",
            "alias" => value.starts_with('!'),
            _ => false,
        };
        let path = match (is_path, is_program) {
            (true, _) => value,
            // Of a command line the program.
            (_, true) => value.trim_start_matches('!').split_whitespace().next()?.to_owned(),
            _ => return None,
        };
        (!matches!(path.as_str(), "" | "true" | "false")).then_some((is_include, path))
    })
}

/// A value without quotes and without the comment behind it.
fn unquoted(value: &str) -> String {
    let mut text = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in value.chars() {
        match c {
            _ if escaped => {
                text.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ';' | '#' if !quoted => break,
            c => text.push(c),
        }
    }
    text.trim_end().to_owned()
}

/// Where a work tree and its repository keep their configurations.
struct Folders {
    own: PathBuf,
    shared: PathBuf,
}

/// `.git`, or what lies behind a file of this name.
fn folders_of(root: &Path) -> Option<Folders> {
    let git = root.join(".git");
    let own = if git.is_dir() { git } else { repository::named_in(&git)? };
    let shared = repository::shared_of(&own).unwrap_or_else(|| own.clone());
    Some(Folders { own, shared })
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
        let text = "[core]\n\tbare = false\n\thooksPath = .my-hooks ; mine\n\tfsmonitor = true\n[include]\n\tpath = \"../a;b.inc\"\n\
                    [includeIf \"gitdir:~/x\"] path = ~/other\n[branch \"x\"]\n\tpath = no\n[filter \"f\"]\n\tclean = ./c.sh --x\n\
                    [alias]\n\tx = !tools/x\n\tst = status\n";
        fs::write(root.join(".git/config"), text).unwrap();
        fs::write(root.join(".git/config.worktree"), "[core]\n\thooksPath = \"h\"k\n").unwrap();
        let home = Path::new("/home/u");
        let of = |name: &str| root.join(name);
        let expected =
            [of(".my-hooks"), of("a;b.inc"), home.join("other"), of("c.sh"), of("tools/x"), of("hk")];
        assert_eq!(by_git(&root, home), expected);
        fs::create_dir(of("sub")).unwrap();
        assert_eq!(by_git(&of("sub"), home), expected, "from a folder within");
        // Behind a file.
        let tree = root.join("tree");
        fs::create_dir_all(root.join(".git/worktrees/t")).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(root.join(".git/worktrees/t/commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", root.join(".git/worktrees/t").display()))
            .unwrap();
        assert!(by_git(&tree, home).contains(&tree.join(".my-hooks")));
        assert!(by_git(Path::new("/nothing"), home).is_empty());
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
