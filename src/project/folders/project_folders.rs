//! Finds the project of a folder: its root, and the folders from the root down to that folder.
//!
//! The root is the top of the git work tree that holds the folder. Git is not run, its variables are ignored, and a
//! `.git` counts only if git would accept it. Without a work tree, the root is the farthest folder below the home folder
//! that has files of an agent; else it is the folder itself. The root is never the home folder or a folder above it, so a
//! repository of settings in the home folder does not turn all folders of a user into one project.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::unistd::{Group, User, geteuid};

use super::plain_file::{open_plain, read_up_to};

/// Files and folders that make a folder without git the root of a project.
const AGENT_FILES: [&str; 4] = [".agentd", ".claude", ".kode", ".mcp.json"];
/// Maximum number of folders of a project whose files are read for one session.
const MAX_FOLDERS: usize = 256;
/// Maximum bytes of a file that names a repository: its prefix and the longest path.
const MAX_POINTER_BYTES: u64 = 4_200;
/// Sticky, and writable by every user, like `/tmp`.
const SHARED_MODE: u32 = 0o1002;

/// The folders of a project from its root down to a session's folder. Equal values name equal folders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProjectFolders {
    root: PathBuf,
    cwd: PathBuf,
    home: PathBuf,
}

impl ProjectFolders {
    /// Finds the project of a folder, whose path must be absolute and without links. The folder need not exist. Blocks
    /// on the disk, and takes a bounded number of system calls for each folder above.
    #[must_use]
    pub fn find(cwd: &Path, home: &Path) -> Self {
        let real_home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let is_below_home = |folder: &Path| folder.starts_with(&real_home) && folder != real_home;
        let owners = Owners::new(cwd);
        let mut above_home = cwd.ancestors().filter(|folder| !real_home.starts_with(folder));
        let work_tree = above_home.find(|folder| is_work_tree_top(folder, &owners));
        let with_agent_files = || {
            let above = cwd.ancestors().skip(1).take_while(|folder| is_below_home(folder));
            let count = |folder: &&Path| {
                AGENT_FILES.iter().any(|name| may_exist(&folder.join(name))) && is_of_user_alone(folder)
            };
            above.filter(count).last().filter(|_| real_home.is_absolute())
        };
        let root = work_tree.or_else(with_agent_files).unwrap_or(cwd);
        Self { root: root.to_owned(), cwd: cwd.to_owned(), home: home.to_owned() }
    }

    /// The project of another folder of the same user. Blocks on the disk.
    #[must_use]
    pub fn find_other(&self, folder: &Path) -> Self {
        Self::find(folder, &self.home)
    }

    /// The same folders with a root that lies farther out, but below the home folder or elsewhere. Any other root changes
    /// nothing.
    #[must_use]
    pub fn widened_to(self, root: &Path) -> Self {
        match self.root.starts_with(root) && !self.home.starts_with(root) {
            true => Self { root: root.to_owned(), ..self },
            false => self,
        }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The session's folder.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The user's home folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folders whose files count, from the session's folder to the root. The root is always one of them.
    pub fn nearest_first(&self) -> impl Iterator<Item = &Path> {
        let near = self.cwd.ancestors().take(self.count().min(MAX_FOLDERS));
        near.chain(self.is_too_deep().then_some(self.root.as_path()))
    }

    /// Whether some folders between the root and the session's folder are left out, because there are too many.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        self.count() > MAX_FOLDERS
    }

    /// Whether one of the folders may hold one of these files. Blocks on the disk.
    #[must_use]
    pub fn may_have(&self, files: &[&str]) -> bool {
        self.nearest_first().any(|folder| files.iter().any(|file| may_exist(&folder.join(file))))
    }

    /// The name of a file for users: below the session's folder its path from there, else the whole path.
    #[must_use]
    pub fn display_name(&self, folder: &Path, file: &Path) -> String {
        let path = if folder == self.cwd { file.to_owned() } else { folder.join(file) };
        path.display().to_string()
    }

    /// The number of folders from the root to the session's folder, both included.
    fn count(&self) -> usize {
        self.cwd.strip_prefix(&self.root).map_or(1, |below| below.iter().count() + 1)
    }
}

/// Whether a path exists, or cannot be seen: a file that cannot be read may restrict.
pub(crate) fn may_exist(path: &Path) -> bool {
    let is_absent = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
    !fs::symlink_metadata(path).is_err_and(|error| is_absent(error.kind()))
}

/// Whether the user owns a folder and no other user can write it.
fn is_of_user_alone(folder: &Path) -> bool {
    let Ok(meta) = fs::metadata(folder) else { return false };
    let group_may_write = meta.mode() & 0o020 != 0 && private_group() != Some(meta.gid());
    meta.uid() == geteuid().as_raw() && meta.mode() & 0o002 == 0 && !group_may_write
}

/// The group that has the user as its only member and carries the user's name. Many systems create new folders writable
/// for this group.
fn private_group() -> Option<u32> {
    static GROUP: OnceLock<Option<u32>> = OnceLock::new();
    *GROUP.get_or_init(|| {
        let user = User::from_uid(geteuid()).ok().flatten().filter(|user| !user.uid.is_root())?;
        let group = Group::from_gid(user.gid).ok().flatten()?;
        let is_private = group.name == user.name && group.mem.iter().all(|member| *member == user.name);
        is_private.then(|| group.gid.as_raw())
    })
}

/// The users whose repositories count.
struct Owners {
    user: u32,
    /// The owner of the session's folder, if it exists. This user decides its content in any case.
    of_session: Option<u32>,
}

impl Owners {
    fn new(cwd: &Path) -> Self {
        let of_session = fs::symlink_metadata(cwd).ok().map(|meta| meta.uid());
        Self { user: geteuid().as_raw(), of_session }
    }

    /// Whether the owners of a folder and of its `.git` may decide the root. In a folder like `/tmp` every user could
    /// create a repository around the folders of others.
    fn accept(&self, folder: &Metadata, dot_git: &Metadata) -> bool {
        let is_known = |owner: u32| owner == self.user || owner == 0 || Some(owner) == self.of_session;
        let is_accepted = is_known(folder.uid()) || self.user == 0;
        let is_shared = folder.mode() & SHARED_MODE == SHARED_MODE;
        is_accepted && !is_shared && (is_known(dot_git.uid()) || dot_git.uid() == folder.uid())
    }
}

/// Whether a folder is the top of a git work tree.
fn is_work_tree_top(folder: &Path, owners: &Owners) -> bool {
    let dot_git = folder.join(".git");
    let (Ok(meta), Ok(own)) = (fs::symlink_metadata(&dot_git), fs::metadata(folder)) else { return false };
    owners.accept(&own, &meta) && repository_folder(&dot_git, &meta).is_some_and(|it| is_repository(&it))
}

/// The repository of a `.git`: the folder itself, or the folder that a file or a link names.
fn repository_folder(dot_git: &Path, meta: &Metadata) -> Option<PathBuf> {
    if meta.is_dir() {
        return Some(dot_git.to_owned());
    }
    let real = dot_git.canonicalize().ok()?;
    let named = if real.is_dir() { real } else { named_repository(dot_git, &real)? };
    (!is_of_other_tree(&named, dot_git)).then_some(named)
}

/// The repository that a `.git` file names (gitrepository-layout(5), "gitfile").
fn named_repository(dot_git: &Path, real: &Path) -> Option<PathBuf> {
    let named = dot_git.parent()?.join(read_line(real)?.strip_prefix("gitdir:")?.trim_start());
    named.canonicalize().ok()
}

/// Whether a repository belongs to a work tree elsewhere. A file with one line could otherwise cut a folder off from the
/// rules of its own project by naming the project's repository.
fn is_of_other_tree(repository: &Path, dot_git: &Path) -> bool {
    match read_line(&repository.join("gitdir")) {
        // The file is old if the work tree was moved.
        Some(tree) => repository.join(tree).canonicalize().is_ok_and(|tree| tree != dot_git),
        None => repository.file_name() == Some(OsStr::new(".git")),
    }
}

/// Whether git would accept a folder as a repository (`is_git_directory` of its setup.c).
fn is_repository(folder: &Path) -> bool {
    let shared = read_line(&folder.join("commondir")).map_or_else(|| folder.to_owned(), |it| folder.join(it));
    has_head(&folder.join("HEAD")) && shared.join("objects").is_dir() && shared.join("refs").is_dir()
}

fn has_head(head: &Path) -> bool {
    if let Ok(target) = fs::read_link(head) {
        return target.starts_with("refs");
    }
    read_line(head).is_some_and(|text| match text.strip_prefix("ref:") {
        Some(name) => name.trim_start().starts_with("refs/"),
        None => text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
    })
}

/// The text of a small file without its last line break. Does not block on a pipe.
fn read_line(path: &Path) -> Option<String> {
    let bytes = read_up_to(open_plain(path).ok()?, MAX_POINTER_BYTES).ok()??;
    Some(String::from_utf8(bytes).ok()?.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// A home folder in a temporary folder.
    struct TestHome {
        _dir: tempfile::TempDir,
        top: PathBuf,
    }

    impl TestHome {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a folder");
            let top = dir.path().canonicalize().expect("resolved");
            fs::create_dir(top.join("home")).expect("made");
            Self { _dir: dir, top }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.top.join(name)
        }

        /// Makes folders (`a/`), repositories (`a/.git/`), files (`a`), files with text (`a=text`), links (`a->target`), and
        /// sets modes (`a:777`).
        fn make(&self, entries: &[&str]) {
            for entry in entries {
                if let Some((name, target)) = entry.split_once("->") {
                    symlink(target, self.path(name)).expect("linked");
                } else if let Some((name, mode)) = entry.split_once(':').filter(|_| !entry.contains('=')) {
                    let mode = u32::from_str_radix(mode, 8).expect("a mode");
                    fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).expect("set");
                } else if entry.ends_with('/') {
                    fs::create_dir_all(self.path(entry)).expect("made");
                    if entry.ends_with(".git/") {
                        self.make_repository(entry);
                    }
                } else {
                    let (name, text) = entry.split_once('=').unwrap_or((entry, ""));
                    fs::create_dir_all(self.path(name).parent().expect("a folder")).expect("made");
                    fs::write(self.path(name), text.replace("TOP", &self.top.to_string_lossy()))
                        .expect("written");
                }
            }
        }

        fn make_repository(&self, name: &str) {
            for folder in ["objects", "refs"] {
                fs::create_dir_all(self.path(name).join(folder)).expect("made");
            }
            fs::write(self.path(name).join("HEAD"), "ref: refs/heads/main\n").expect("written");
        }

        fn root(&self, cwd: &str) -> PathBuf {
            let folders = ProjectFolders::find(&self.path(cwd), &self.path("home"));
            assert!(folders.nearest_first().any(|folder| folder == self.path(cwd)), "its own files count");
            assert_eq!(folders.nearest_first().last(), Some(folders.root()));
            folders.root().to_owned()
        }
    }

    const WORK_TREE: &str = "srv/r/.git/worktrees/w";

    #[test]
    fn root_is_top_of_work_tree_or_farthest_folder_with_agent_files() {
        let hex = format!("r/.git/HEAD={}\n", "a1".repeat(20));
        let cases: &[(&str, &[&str], &str, &str)] = &[
            ("nothing", &["srv/a/b/"], "srv/a/b", "srv/a/b"),
            ("a repository", &["r/.git/", "r/a/b/"], "r/a/b", "r"),
            ("its top itself", &["r/.git/"], "r", "r"),
            ("a folder that does not exist", &["r/.git/"], "r/gone/a", "r"),
            ("a commit instead of a branch", &["r/.git/", &hex, "r/a/"], "r/a", "r"),
            ("a folder that git ignores", &["r/.git/", "r/.gitignore=out", "r/out/a/"], "r/out/a", "r"),
            ("a nested repository", &["r/.git/", "r/a/.git/", "r/a/b/"], "r/a/b", "r/a"),
            ("a folder in .git", &["r/.git/", "r/.git/hooks/"], "r/.git/hooks", "r"),
            ("a bare repository", &["r/.git/", "r/b.git/", "r/b.git/x/"], "r/b.git/x", "r"),
            // Files that name a repository.
            ("text that is no pointer", &["r/.git/", "r/s/.git=x", "r/s/a/"], "r/s/a", "r"),
            ("a pointer to nothing", &["r/.git/", "r/s/.git=gitdir: /nonexistent", "r/s/a/"], "r/s/a", "r"),
            ("a pointer to a folder", &["r/.git/", "o/", "r/s/.git=gitdir: TOP/o", "r/s/a/"], "r/s/a", "r"),
            (
                "a pointer to the outer repository",
                &["r/.git/", "r/s/.git=gitdir: ../.git", "r/s/a/"],
                "r/s/a",
                "r",
            ),
            (
                "a pointer to another repository",
                &["r/.git/", "o/.git/", "r/s/.git=gitdir: TOP/o/.git", "r/s/a/"],
                "r/s/a",
                "r",
            ),
            (
                "a link to another repository",
                &["r/.git/", "o/.git/", "r/s/a/", "r/s/.git->../../o/.git"],
                "r/s/a",
                "r",
            ),
            // Fakes.
            ("an empty .git", &["r/.git/", "r/s/a/"], "r/s/a", "r"),
            (
                "a .git with a HEAD alone",
                &["r/.git/", "r/s/.git/HEAD=ref: refs/heads/x", "r/s/a/"],
                "r/s/a",
                "r",
            ),
            (
                "a .git with a wrong HEAD",
                &["r/.git/", "r/s/.git/", "r/s/.git/HEAD=evil", "r/s/a/"],
                "r/s/a",
                "r",
            ),
            (
                "a huge .git file",
                &["r/.git/", "r/s/.git=gitdir: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "r/s/a/"],
                "r/s/a",
                "r",
            ),
            // The home folder and the folders above it.
            ("a repository of the home folder", &["home/.git/", "home/a/b/"], "home/a/b", "home/a/b"),
            (
                "the same with agent files",
                &["home/.git/", "home/a/b/", "home/a/.claude/"],
                "home/a/b",
                "home/a",
            ),
            ("the home folder itself", &["home/.git/"], "home", "home"),
            ("a repository above the home folder", &[".git/", "home/a/"], "home/a", "home/a"),
            ("a repository around another folder", &[".git/", "srv/a/"], "srv/a", "srv/a"),
            (
                "a repository below the home folder",
                &["home/.git/", "home/r/.git/", "home/r/a/"],
                "home/r/a",
                "home/r",
            ),
            // Without git.
            ("agent files", &["home/p/.agentd/", "home/p/a/b/"], "home/p/a/b", "home/p"),
            (
                "the farthest of several",
                &["home/p/.claude/", "home/p/a/.mcp.json", "home/p/a/b/"],
                "home/p/a/b",
                "home/p",
            ),
            ("each name", &["home/p/.kode/", "home/p/a/"], "home/p/a", "home/p"),
            ("a file", &["home/p/.mcp.json", "home/p/a/"], "home/p/a", "home/p"),
            ("another file", &["home/p/AGENTS.md", "home/p/a/"], "home/p/a", "home/p/a"),
            ("agent files of the home folder", &["home/.claude/", "home/p/a/"], "home/p/a", "home/p/a"),
            ("agent files outside the home folder", &["srv/.claude/", "srv/a/"], "srv/a", "srv/a"),
            (
                "a folder that others can write",
                &["home/p/.claude/", "home/p/a/", "home/p:777"],
                "home/p/a",
                "home/p/a",
            ),
            (
                "one within it",
                &["home/p/.claude/", "home/p/q/.claude/", "home/p/q/a/", "home/p:777"],
                "home/p/q/a",
                "home/p/q",
            ),
            (
                "git before agent files",
                &["home/p/.claude/", "home/p/r/.git/", "home/p/r/a/"],
                "home/p/r/a",
                "home/p/r",
            ),
            // Folders that others can write.
            ("a repository in a shared folder", &["tmp/.git/", "tmp/a/", "tmp:1777"], "tmp/a", "tmp/a"),
            ("a repository that others can write", &["r/.git/", "r/a/", "r:777"], "r/a", "r"),
        ];
        for (name, entries, cwd, expected) in cases {
            let home = TestHome::new();
            home.make(entries);
            if *name == "an empty .git" {
                fs::create_dir_all(home.path("r/s/.git")).expect("made");
            }
            assert_eq!(home.root(cwd), home.path(expected), "{name}");
        }
    }

    #[test]
    fn work_tree_of_other_folder_has_its_own_root() {
        let home = TestHome::new();
        home.make(&["srv/r/.git/", "srv/w/a/", "srv/w/.git=gitdir: TOP/srv/r/.git/worktrees/w\n"]);
        home.make(&[
            &format!("{WORK_TREE}/HEAD=ref: refs/heads/w\n"),
            &format!("{WORK_TREE}/commondir=../..\n"),
        ]);
        home.make(&[&format!("{WORK_TREE}/gitdir=TOP/srv/w/.git\n")]);
        assert_eq!(home.root("srv/w/a"), home.path("srv/w"));
        // Another folder that names the same work tree is none.
        home.make(&["srv/r/fake/a/", "srv/r/fake/.git=gitdir: TOP/srv/r/.git/worktrees/w\n"]);
        assert_eq!(home.root("srv/r/fake/a"), home.path("srv/r"));
        // A work tree that was moved still is one.
        fs::rename(home.path("srv/w"), home.path("srv/moved")).expect("moved");
        assert_eq!(home.root("srv/moved/a"), home.path("srv/moved"));
        // A submodule.
        home.make(&["srv/r/s/a/", "srv/r/s/.git=gitdir: ../.git/modules/s"]);
        home.make_repository("srv/r/.git/modules/s");
        assert_eq!(home.root("srv/r/s/a"), home.path("srv/r/s"));
        // A repository without `.git` as its name, as a link or with a separate folder.
        home.make(&["srv/l/a/", "srv/l/.git->../store"]);
        home.make_repository("srv/store");
        assert_eq!(home.root("srv/l/a"), home.path("srv/l"));
    }

    #[test]
    fn root_that_git_finds_is_the_same() {
        let home = TestHome::new();
        let git = |folder: &str, args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.arg("-C").arg(home.path(folder)).args(["-c", "user.name=A", "-c", "user.email=a@b"]);
            command.args(["-c", "protocol.file.allow=always"]).args(args);
            command.output().is_ok_and(|output| output.status.success())
        };
        home.make(&["srv/r/", "srv/lib/"]);
        if !git("srv/r", &["init", "-q"]) {
            base::skip_test!("there is no git");
            return;
        }
        assert!(git("srv/lib", &["init", "-q"]));
        assert!(git("srv/lib", &["commit", "-q", "--allow-empty", "-m", "x"]));
        assert!(
            git("srv/r", &["submodule", "--quiet", "add", "../lib", "vendor/lib"]) || {
                let lib = home.path("srv/lib").display().to_string();
                git("srv/r", &["submodule", "--quiet", "add", &lib, "vendor/lib"])
            }
        );
        assert!(git("srv/r", &["commit", "-q", "-m", "x"]));
        assert!(git("srv/r", &["worktree", "add", "-q", "../tree"]));
        assert!(git("srv", &["clone", "-q", "--separate-git-dir", "store", "lib", "separate"]));
        for top in ["srv/r", "srv/r/vendor/lib", "srv/tree", "srv/separate"] {
            fs::create_dir_all(home.path(top).join("a/b")).expect("made");
            assert_eq!(home.root(&format!("{top}/a/b")), home.path(top), "{top}");
        }
    }

    #[test]
    fn pipe_instead_of_repository_does_not_block() {
        let home = TestHome::new();
        home.make(&["srv/r/a/", "srv/l/a/"]);
        let mode = nix::sys::stat::Mode::from_bits_truncate(0o600);
        nix::unistd::mkfifo(&home.path("srv/r/.git"), mode).expect("a pipe");
        symlink(home.path("srv/r/.git"), home.path("srv/l/.git")).expect("linked");
        assert_eq!(home.root("srv/r/a"), home.path("srv/r/a"));
        assert_eq!(home.root("srv/l/a"), home.path("srv/l/a"));
    }

    #[test]
    fn folders_of_deep_project_are_bounded_and_keep_root() {
        let home = TestHome::new();
        home.make(&["r/.git/"]);
        let cwd = home.path("r").join("d/".repeat(MAX_FOLDERS + 50));
        let folders = ProjectFolders::find(&cwd, &home.path("home"));
        assert!(folders.is_too_deep());
        assert_eq!(folders.nearest_first().count(), MAX_FOLDERS + 1);
        assert_eq!(folders.nearest_first().last(), Some(home.path("r").as_path()));
        let near = ProjectFolders::find(&home.path("r/d/d"), &home.path("home"));
        assert!(!near.is_too_deep());
        assert_eq!(near.nearest_first().count(), 3);
        assert_eq!(
            near.clone().widened_to(&home.path("r").join("..")),
            near,
            "only a folder above is a root"
        );
        assert_eq!(near.clone().widened_to(&home.top), near, "a folder above the home folder is no root");
        let inner = ProjectFolders::find(&home.path("o/d"), &home.path("home"));
        assert_eq!(inner.widened_to(&home.path("o")).root(), home.path("o"));
        assert_eq!(near.clone().widened_to(&home.path("home")), near, "a folder elsewhere is no root");
        assert_eq!(near.clone().widened_to(&home.path("r/d")), near, "the root moves outwards only");
    }
}
