//! Finds the folders with files that git applies or executes: repositories behind `.git` files and links, work
//! trees, and settings that name them (gitrepository-layout(5), git-worktree(1)).

use std::path::{Path, PathBuf};

use crate::file_errors::is_missing;
use crate::sensitivity::repository;
use crate::shell::sandbox::placeholders::is_placeholder;

/// The folder that a `.git` file names.
pub(super) fn named_in(git: &Path) -> Option<PathBuf> {
    repository::named_in(git)?.canonicalize().ok().filter(|real| real.is_dir())
}

/// The `.git` file that an entry of `worktrees` names as its own.
fn owning_git_file(own: &Path) -> Option<PathBuf> {
    Some(own.join(repository::text_of(&own.join("gitdir"))?.trim_end()))
}

/// Whether a folder is a bare repository, also while a command has removed parts of it: its configuration in
/// git's form remains, and its hooks. `has_own` says whether the folder contains a `.git`; then a configuration
/// alone does not make it a repository.
pub(super) fn is_bare(folder: &Path, has_own: bool) -> bool {
    let is_there = |name: &str| folder.join(name).exists();
    let is_written_by_git = || {
        let config = folder.join("config");
        match repository::text_of(&config) {
            Some(text) => repository::settings(&text)
                .any(|setting| matches!(setting.name.as_str(), "repositoryformatversion" | "bare")),
            // An unreadable configuration may belong to a repository.
            None => std::fs::symlink_metadata(&config).is_ok_and(|meta| meta.is_file()),
        }
    };
    let has_parts = || ["HEAD", "objects", "refs", "hooks", "packed-refs"].iter().any(|name| is_there(name));
    is_whole(folder) || is_written_by_git() && (!has_own || has_parts())
}

/// Whether git accepts a folder as a repository with its own objects.
fn is_whole(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && ["objects", "refs"].iter().all(|name| folder.join(name).is_dir())
}

pub(super) enum WorkTreeLocation {
    At(PathBuf),
    /// The path does not exist: the work tree was removed or moved, or its disk is not mounted.
    Gone(PathBuf),
    /// No file names the location.
    Nowhere,
    /// The location cannot be read now.
    Unknown,
}

/// Whether git reads `config.worktree` of a repository (git-worktree(1)).
pub(super) fn reads_tree_config(git: &Path) -> bool {
    let config = git.join("config");
    match repository::text_of(&config) {
        Some(text) => repository::settings(&text).any(|setting| setting.name == "worktreeconfig"),
        // An unreadable configuration may enable it.
        None => std::fs::symlink_metadata(config).is_ok(),
    }
}

/// The folder of the work tree that an entry of `worktrees` belongs to.
pub(super) fn work_tree_of(own: &Path) -> WorkTreeLocation {
    let Some(git) = owning_git_file(own) else {
        return match std::fs::metadata(own.join("gitdir")) {
            Err(error) if is_missing(&error) => WorkTreeLocation::Nowhere,
            _ => WorkTreeLocation::Unknown,
        };
    };
    let tree = git.parent().unwrap_or(Path::new("/"));
    match std::fs::metadata(&git).and_then(|meta| Ok((meta, tree.canonicalize()?))) {
        Ok((meta, tree)) if meta.is_file() => WorkTreeLocation::At(tree),
        // Another repository is at this path.
        Ok((_, tree)) => WorkTreeLocation::Gone(tree),
        Err(error) if is_missing(&error) => WorkTreeLocation::Gone(tree.to_owned()),
        Err(_) => WorkTreeLocation::Unknown,
    }
}

/// Whether a repository's configuration names its work tree, or says that it has none. Git ignores both if
/// there is a `commondir` (`check_repository_format_gently` in its setup.c).
pub(super) fn names_work_tree(git: &Path) -> bool {
    let files = ["config", "config.worktree"].into_iter();
    files.filter_map(|name| repository::text_of(&git.join(name))).any(|text| {
        repository::settings(&text).any(|setting| match setting.name.as_str() {
            "worktree" => true,
            "bare" => {
                !setting.value.is_some_and(|value| matches!(value.as_str(), "false" | "no" | "off" | "0"))
            }
            _ => false,
        })
    })
}

/// The work tree that a repository's configuration names, without links.
fn named_tree(git: &Path) -> Option<PathBuf> {
    let own = reads_tree_config(git).then_some("config.worktree");
    let mut texts = own.into_iter().chain(["config"]).filter_map(|name| repository::text_of(&git.join(name)));
    let setting = |text: String| {
        repository::settings(&text).filter(|it| it.section == "core" && it.name == "worktree").last()?.value
    };
    git.join(texts.find_map(setting)?.trim_matches('"')).canonicalize().ok()
}

/// Whether a repository belongs to the work tree that its configuration names, whose `.git` file names the repository.
/// Git then finds the same work tree without the configuration.
pub(super) fn is_of_named_tree(git: &Path) -> bool {
    let named = named_tree(git).and_then(|tree| named_in(&tree.join(".git")));
    named.is_some_and(|named| git.canonicalize().is_ok_and(|git| git == named))
}

/// Whether a folder `.git` is the repository of the folders around it, as far as its configuration says.
pub(super) fn is_of_folder(git: &Path, folder: &Path) -> bool {
    named_tree(git).map_or_else(|| !names_work_tree(git), |tree| folder.starts_with(tree))
}

/// The target of a submodule's `.git`, if the target's configuration also names this submodule (gitsubmodules(7)). As in
/// [`work_tree`], a file alone gives no access.
pub(super) fn submodule(git: &Path) -> Option<PathBuf> {
    let own = named_in(git)?;
    let shared = own.join("commondir");
    let has_own_parts = std::fs::symlink_metadata(&shared).is_err() || is_placeholder(&shared);
    (is_whole(&own) && has_own_parts && named_tree(&own)? == git.parent()?).then_some(own)
}

/// The git folders of a work tree that was made by `git worktree`.
pub(super) struct WorkTreeFolders {
    pub(super) common: PathBuf,
    pub(super) own: PathBuf,
}

/// The target of a work tree's `.git`, if the target also names this work tree. A file in the workspace alone
/// gives no access to a folder elsewhere (gitrepository-layout(5)).
pub(super) fn work_tree(git: &Path) -> Option<WorkTreeFolders> {
    let own = named_in(git)?;
    // Compare the exact path: through a link, it would name a work tree elsewhere with an unrelated repository.
    let named = owning_git_file(&own)?;
    let is_mutual = named.parent()?.canonicalize().ok()?.join(named.file_name()?) == git;
    let common = repository::common_folder(&own)?.canonicalize().ok()?;
    let is_inside = own.parent() == Some(common.join("worktrees").as_path()) && common.join("HEAD").is_file();
    (is_mutual && is_inside).then_some(WorkTreeFolders { common, own })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::layout::FsPolicy;
    use super::*;

    #[test]
    fn work_tree_opens_its_own_git_folder_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let own = root.join("main/.git/worktrees/w");
        fs::create_dir_all(&own).unwrap();
        fs::create_dir(root.join("w")).unwrap();
        fs::write(root.join("main/.git/HEAD"), "x").unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("gitdir"), format!("{}\n", root.join("w/.git").display())).unwrap();
        fs::write(root.join("w/.git"), format!("gitdir: {}\n", own.display())).unwrap();
        let found = work_tree(&root.join("w/.git")).unwrap();
        assert_eq!((found.common, found.own), (root.join("main/.git"), own.clone()));
        let mut layout = FsPolicy::default();
        layout.guard(&root.join("w"));
        assert!(layout.guarded.contains(&own.join("commondir")), "{layout:?}");

        // A link to the file makes no other folder a work tree of the repository.
        fs::create_dir(root.join("thief")).unwrap();
        std::os::unix::fs::symlink(root.join("w/.git"), root.join("thief/.git")).unwrap();
        assert!(work_tree(&root.join("thief/.git")).is_none());
        let mut layout = FsPolicy { writable: vec![root.join("thief")], ..FsPolicy::default() };
        layout.guard(&root.join("thief"));
        assert_eq!(layout.writable, [root.join("thief")]);
        // The form that git writes with `worktree.useRelativePaths`.
        fs::write(own.join("gitdir"), "../../../../w/.git\n").unwrap();
        assert!(work_tree(&root.join("w/.git")).is_some());

        fs::write(own.join("gitdir"), format!("{}\n", root.join("other/.git").display())).unwrap();
        assert!(work_tree(&root.join("w/.git")).is_none());
    }

    #[test]
    fn git_config_names_work_tree_or_bare_repository() {
        let dir = tempfile::tempdir().unwrap();
        for (text, expected) in [
            ("[core]\n\tbare = false\n[extensions]\n\tworktreeConfig = true\n", false),
            ("", false),
            ("[core]\n\tWorkTree = ../../src\n", true),
            ("[core] worktree=..\n", true),
            ("[core]\n\tbare = true\n", true),
            ("[core]\n\tbare\n", true),
            ("[branch \"bare\"]\n\tremote = x\n", false),
        ] {
            fs::write(dir.path().join("config"), text).unwrap();
            assert_eq!(names_work_tree(dir.path()), expected, "{text}");
        }
        fs::write(dir.path().join("config.worktree"), "[core]\nbare = true\n").unwrap();
        assert!(names_work_tree(dir.path()));
    }

    #[test]
    fn linked_bare_and_foreign_repositories_are_protected() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let ws = root.join("ws");
        for folder in
            ["ws/.bare/objects", "ws/.bare/refs", "ws/.bare/worktrees/in", "ws/.bare/worktrees/out", "ws/in"]
        {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(ws.join(".git"), "gitdir: ./.bare\n").unwrap();
        fs::write(ws.join(".bare/HEAD"), "x").unwrap();
        fs::write(ws.join(".bare/config"), "[core]\n\tbare = true\n").unwrap();
        fs::create_dir(root.join("out")).unwrap();
        for (name, tree) in [("in", ws.join("in/.git")), ("out", root.join("out/.git"))] {
            fs::write(&tree, "gitdir: elsewhere\n").unwrap();
            let own = ws.join(".bare/worktrees").join(name);
            fs::write(own.join("gitdir"), format!("{}\n", tree.display())).unwrap();
            fs::write(own.join("commondir"), "../..\n").unwrap();
        }
        let bare = ws.join(".bare");
        let out = bare.join("worktrees/out");
        let mut layout = FsPolicy { writable: vec![ws.clone()], ..FsPolicy::default() };
        layout.guard(&ws);
        let guarded = [bare.join("config"), out.join("commondir"), out.join("gitdir"), ws.join(".git")];
        assert_eq!(layout.guarded, guarded);
        let absent = [
            ws.join(".agentd"),
            bare.join("hooks"),
            bare.join("config.worktree"),
            out.join("config.worktree"),
        ];
        assert_eq!(layout.absent, absent);
        assert_eq!(layout.pinned, [out, bare.join("worktrees"), bare.clone()]);

        // Many forged entries do not displace the real ones.
        for n in 0..400 {
            let own = bare.join(format!("worktrees/{n}"));
            fs::create_dir(&own).unwrap();
            fs::write(own.join("gitdir"), format!("{}\n", root.join("out/.git").display())).unwrap();
        }
        let mut layout = FsPolicy { writable: vec![ws.clone()], ..FsPolicy::default() };
        layout.guard(&ws);
        assert!(layout.guarded.contains(&bare.join("worktrees")), "{layout:?}");

        let mut layout = FsPolicy { writable: vec![bare.clone()], ..FsPolicy::default() };
        layout.guard(&bare);
        assert!(layout.guarded.contains(&bare.join("config")), "{layout:?}");
        assert!(layout.absent.contains(&bare.join("hooks")), "{layout:?}");
    }

    #[test]
    fn ancestors_of_hidden_paths_are_pinned() {
        let path = |text: &str| PathBuf::from(text);
        let mut layout = FsPolicy {
            writable: vec![path("/h"), path("/h/a/b/c"), path("/other/x")],
            guarded: vec![path("/h/g/.git/config"), path("/h/g/.git/hooks")],
            hidden: vec![path("/h/.config/gh"), path("/h/g/.git/hooks/in/key"), path("/etc/shadow")],
            absent: vec![path("/h/.local/share/agentd")],
            pinned: vec![path("/h/g/.git")],
            ..FsPolicy::default()
        };
        layout.pin_ancestors();
        let added = ["/h/.config", "/h/.local", "/h/.local/share", "/h/a", "/h/a/b", "/h/g"].map(path);
        assert_eq!(layout.pinned[1..], added);
    }
}
