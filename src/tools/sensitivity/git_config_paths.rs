//! Files of a workspace that git runs or reads because the repository's own configuration names them
//! (git-config(1): `core.hooksPath`, `core.fsmonitor`, `core.attributesFile`, `include.path`).

use std::path::{Component, Path, PathBuf};

use crate::sensitivity::repository;
use crate::sensitivity::repository::GitSetting;

/// Configuration files that are read, including included ones.
const MAX_FILES: usize = 16;

/// The files and folders that the configuration of the repository around `folder` names, including included
/// files. If the configuration is too long or unreadable, every path counts as named. Never waits.
pub(crate) fn paths_named_by_git(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let Some((root, git)) = folder.ancestors().find_map(|root| Some((root, git_folders(root)?))) else {
        return Vec::new();
    };
    let mut files = vec![git.shared.join("config"), git.own.join("config.worktree")];
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(file) = files.get(at).cloned() {
        at += 1;
        if at > MAX_FILES {
            found.push(root.to_owned());
            break;
        }
        if repository::is_longer(&file) {
            found.push(root.to_owned());
        }
        let Some(text) = repository::text_of(&file) else { continue };
        // An include is relative to the folder of its file; other paths are relative to the top of the work
        // tree.
        let folder = file.parent().unwrap_or(root);
        for (is_include, value) in named_paths(&text) {
            let path = normalize_path(&match value.strip_prefix("~/") {
                Some(rest) => home.join(rest),
                None => if is_include { folder } else { root }.join(value),
            });
            if is_include && !files.contains(&path) {
                files.push(path.clone());
            }
            // A folder that contains the whole work tree is not a program.
            if !root.starts_with(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// The paths that a configuration names, each with a flag for included files.
fn named_paths(text: &str) -> impl Iterator<Item = (bool, String)> {
    repository::settings(text).flat_map(|GitSetting { section, name, value }| {
        let value = unquote(&value.unwrap_or_default());
        let is_include = matches!(section.as_str(), "include" | "includeif") && name == "path";
        let is_path = is_include
            || matches!(
                (section.as_str(), name.as_str()),
                ("core", "hookspath" | "attributesfile") | ("init", "templatedir")
            );
        let is_program = match section.as_str() {
            "core" => matches!(
                name.as_str(),
                "fsmonitor"
                    | "sshcommand"
                    | "editor"
                    | "pager"
                    | "askpass"
                    | "gitproxy"
                    | "alternaterefscommand"
            ),
            "filter" => matches!(name.as_str(), "clean" | "smudge" | "process"),
            "diff" => matches!(name.as_str(), "textconv" | "command" | "external"),
            "difftool" | "mergetool" | "guitool" | "browser" | "man" => {
                matches!(name.as_str(), "cmd" | "path")
            }
            // gitremote-helpers(7): `ext::COMMAND`.
            "remote" => {
                matches!(name.as_str(), "uploadpack" | "receivepack")
                    || matches!(name.as_str(), "url" | "pushurl") && value.starts_with("ext::")
            }
            "gpg" => matches!(name.as_str(), "program" | "defaultkeycommand"),
            "trailer" | "hook" => matches!(name.as_str(), "cmd" | "command"),
            "merge" => name == "driver",
            "credential" => name == "helper",
            "sequence" => name == "editor",
            "interactive" => name == "difffilter",
            "uploadpack" => name == "packobjectshook",
            "tar" => name == "command",
            "instaweb" => name == "httpd",
            "imap" => name == "tunnel",
            "sendemail" => name.ends_with("cmd"),
            "pager" => true,
            "alias" | "submodule" => value.starts_with('!'),
            _ => false,
        };
        let paths = match (is_path, is_program) {
            (true, _) => vec![value],
            (_, true) => command_words(&value),
            _ => Vec::new(),
        };
        let is_name = |path: &String| !matches!(path.as_str(), "" | "true" | "false");
        paths.into_iter().filter(is_name).map(move |path| (is_include, path))
    })
}

/// The words of a command line that may name files: the program, an interpreter's script, the value of a
/// variable.
fn command_words(line: &str) -> Vec<String> {
    let line = line.replace("$(git rev-parse --show-toplevel)/", "");
    let line: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '{' | '}' | '!')).collect();
    let words =
        line.split(|c: char| c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>' | '='));
    let mut named: Vec<String> = Vec::new();
    let mut before = "";
    for word in words.filter(|word| !word.is_empty()) {
        // A module of Python or Perl is a file, or a folder with the file.
        if before == "-m" && word.contains(|c: char| c.is_alphanumeric()) {
            let module = word.replace("::", "/").replace('.', "/");
            named.extend(
                ["", ".py", "/__main__.py", "/__init__.py", ".pm"].map(|end| format!("{module}{end}")),
            );
        }
        if !word.starts_with(['-', '%']) {
            named.push(word.trim_start_matches("ext::").replace("$PWD/", ""));
        }
        before = word;
    }
    named
}

/// A value without quotes and without a trailing comment.
fn unquote(value: &str) -> String {
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

/// The configuration folders of a work tree and its repository.
struct GitFolders {
    own: PathBuf,
    shared: PathBuf,
}

/// `.git`, or the folder that a `.git` file names.
fn git_folders(root: &Path) -> Option<GitFolders> {
    let git = root.join(".git");
    let own = if git.is_dir() { git } else { repository::named_in(&git)? };
    let shared = repository::common_folder(&own).unwrap_or_else(|| own.clone());
    Some(GitFolders { own, shared })
}

/// The path without `.` and `..`, and the same with links as written.
fn normalize_path(path: &Path) -> PathBuf {
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
    use crate::sensitivity::git_config_paths::*;
    use std::fs;

    #[test]
    fn paths_named_by_git_config_are_found() {
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
        assert_eq!(paths_named_by_git(&root, home), expected);
        fs::create_dir(of("sub")).unwrap();
        assert_eq!(paths_named_by_git(&of("sub"), home), expected, "from a folder within");
        // Through a `.git` file.
        let tree = root.join("tree");
        fs::create_dir_all(root.join(".git/worktrees/t")).unwrap();
        fs::create_dir(&tree).unwrap();
        fs::write(root.join(".git/worktrees/t/commondir"), "../..\n").unwrap();
        fs::write(tree.join(".git"), format!("gitdir: {}\n", root.join(".git/worktrees/t").display()))
            .unwrap();
        assert!(paths_named_by_git(&tree, home).contains(&tree.join(".my-hooks")));
        assert!(paths_named_by_git(Path::new("/nothing"), home).is_empty());
    }

    #[test]
    fn git_config_executables_are_not_ordinary_edit_targets() {
        use crate::fs::jail::Jail;
        use crate::sensitivity::Access;
        use types::tool::PathSensitivity;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join(".git")).unwrap();
        fs::write(root.join(".git/config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
        let jail = Jail::open(std::slice::from_ref(&root), Path::new("/home/u"), &[]);
        let care = |name: &str, access| jail.decide(name, &root, access).unwrap().resolved.sensitivity;
        assert_eq!(care("tools/hooks/pre-commit", Access::Edit), PathSensitivity::AutoExecuted);
        assert_eq!(care("tools/hooks/pre-commit", Access::Read), PathSensitivity::Ordinary);
        assert_eq!(care("tools/other", Access::Edit), PathSensitivity::Ordinary);

        // Through an interpreter, a variable, an included file.
        let text = "[filter \"f\"]\n\tclean = LC_ALL=C sh '$PWD/tools/a.sh' %f\n[alias]\n\tx = \"!python3 tools/b.py; ./c\"\n\
                    [pager]\n\tlog = sh tools/d.sh\n[include]\n\tpath = ../more.inc\n[core]\n\tworktree = ..\n";
        fs::write(root.join(".git/config"), text).unwrap();
        fs::write(root.join("more.inc"), "[core]\n\thooksPath = ~/../u/h\n\teditor = make -C . edit\n")
            .unwrap();
        for name in ["tools/a.sh", "tools/b.py", "c", "tools/d.sh", "more.inc", "edit"] {
            assert_eq!(care(name, Access::Edit), PathSensitivity::AutoExecuted, "{name}");
        }
        assert!(paths_named_by_git(&root, Path::new("/home/u")).contains(&PathBuf::from("/home/u/h")));
        assert_eq!(care("tools/other", Access::Edit), PathSensitivity::Ordinary);
        // Modules, programs in addresses, and programs of rarer commands.
        let text = "[filter \"f\"]\n\tclean = python3 -m tools.f %f\n[remote \"o\"]\n\turl = ext::tools/e.sh %S\n\
                    [instaweb]\n\thttpd = tools/web -f\n[imap]\n\ttunnel = sh tools/t.sh\n[remote \"p\"]\n\turl = tools/p\n";
        fs::write(root.join(".git/config"), text).unwrap();
        for name in ["tools/f.py", "tools/f/__main__.py", "tools/e.sh", "tools/web", "tools/t.sh"] {
            assert_eq!(care(name, Access::Edit), PathSensitivity::AutoExecuted, "{name}");
        }
        assert_eq!(care("tools/p", Access::Edit), PathSensitivity::Ordinary, "a repository to fetch from");
        fs::write(root.join(".git/config"), "#".repeat(70_000)).unwrap();
        assert_eq!(
            care("tools/other", Access::Edit),
            PathSensitivity::AutoExecuted,
            "who knows what it names"
        );
    }
}
