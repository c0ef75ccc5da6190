//! Inventory of the files in a folder that can run code, and a digest of it. The user trusts exactly this
//! digest.
//!
//! The inventory of a session's folder also has the files of the folders above it, up to the root of its project. If these
//! have none, the digest is the same as for the folder alone.
//!
//! The scan runs no program. Files, depth and bytes are limited, because the folder may be hostile. Links are
//! recorded and never followed; pipes and devices are never opened. A file that is too large to read completely is
//! never used.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use sha2::{Digest as _, Sha256};

use crate::folders::{ProjectFolders, may_exist};
use crate::folders::{open_plain, read_up_to};
use crate::workspace::git_settings::git_settings;
use crate::workspace::project;
use crate::workspace::project::Project;
use types::hex;

/// Maximum bytes of one file whose content is used. Larger files, such as programs of hooks, are still part
/// of the digest.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Bytes of all files.
const MAX_TOTAL_BYTES: u64 = 16 << 20;
/// Number of files and folders.
const MAX_ENTRIES: usize = 2_000;
/// Depth of nested folders.
const MAX_DEPTH: usize = 8;
/// Number of parts that are listed by name.
const MAX_PARTS: usize = 100;

/// Part of every digest. A new version gives other digests, so that the user is asked again after the scan
/// was changed.
const VERSION: &str = "agentd workspace 1";

/// Path of the project's own settings.
const SETTINGS_FILE: &str = ".agentd/config.toml";
/// Files in a workspace that are bound by trust, and the parts of them that this version uses.
const BOUND_FILES: [(&str, &str); 8] = [
    (".agentd/hooks", "hooks: commands that run here"),
    (".agentd/agents", "agents"),
    (".agentd/commands", "slash commands"),
    (".agentd/skills", "skills"),
    (".mcp.json", "MCP servers: programs that sessions here start"),
    (".mcprc", "MCP servers: programs that sessions here start"),
    (".claude", "slash commands, skills, agents, and hooks: commands that run here"),
    (".kode", "slash commands, skills and agents"),
];

/// A file as the scan read it: its path below its folder of the project, and its content or the reason why it is not
/// used.
pub type ScannedFile = (PathBuf, Result<Vec<u8>, String>);

/// Files of one folder of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFiles {
    /// The folder.
    pub folder: PathBuf,
    /// The files. Their paths start at the folder.
    pub files: Vec<ScannedFile>,
}

/// The settings file of one folder of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderSettings {
    /// The folder, where relative patterns of the rules start.
    pub folder: PathBuf,
    /// Name of the file for users.
    pub name: String,
    /// The content.
    pub project: Project,
}

/// Result of a scan of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustInventory {
    /// Digest of all files that trust would cover, in hexadecimal.
    pub digest: String,
    /// Parts that become active with trust, now or in a later version, as text for users. Empty if there are
    /// none.
    pub parts: Vec<String>,
    /// The project's own settings files, that of the nearest folder first. A folder without such a file has no entry.
    pub settings: Vec<FolderSettings>,
    /// Whether a repository exists whose state can be given to the model.
    pub(super) has_git: bool,
}

/// Scans the folders of a project, whose paths must be absolute and without links. Blocking and bounded. Never fails: an
/// unreadable file is listed as a part that is not used.
#[must_use]
pub fn scan(folders: &ProjectFolders) -> TrustInventory {
    scan_with_files(folders, &[]).0
}

/// Same as [`scan`], and returns contents of files of each folder, the nearest folder first: the files that `names`
/// names, and the Markdown files below the folders that it names. These contents are exactly those that the digest
/// covers.
#[must_use]
pub fn scan_with_files(folders: &ProjectFolders, names: &[&str]) -> (TrustInventory, Vec<FolderFiles>) {
    let mut inventory = TrustInventory::default();
    let mut digest = Sha256::new();
    digest.update(VERSION);
    let mut walk = InventoryWalk {
        digest: &mut digest,
        entries: 0,
        bytes: 0,
        too_large: false,
        wanted: Vec::new(),
        files: Vec::new(),
    };
    let mut found = Vec::new();
    for (level, folder) in folders.nearest_first().enumerate() {
        if level > 0 {
            let mut bound = BOUND_FILES.iter().map(|(name, _)| *name).chain([SETTINGS_FILE]);
            if !bound.any(|name| may_exist(&folder.join(name))) {
                continue;
            }
            walk.add_to_digest(level.to_string().as_bytes(), b"folder above");
        }
        walk.wanted = names.iter().map(|name| folder.join(name)).collect();
        walk.scan_folder(folders, folder, &mut inventory);
        if level == 0 {
            walk.scan_git(folder, &mut inventory);
        }
        let below =
            |(path, content): (PathBuf, _)| (path.strip_prefix(folder).unwrap_or(&path).to_owned(), content);
        let files: Vec<ScannedFile> = std::mem::take(&mut walk.files).into_iter().map(below).collect();
        if !files.is_empty() {
            found.push(FolderFiles { folder: folder.to_owned(), files });
        }
    }
    if folders.is_too_deep() {
        let why =
            "the folder lies too deep in its project, so the files of some folders above it are not read";
        let project = project::project_of_unreadable(why.into());
        let name = folders.root().display().to_string();
        inventory.parts.extend(project.describe(&name));
        inventory.settings.push(FolderSettings { folder: folders.root().to_owned(), name, project });
    }
    if inventory.parts.len() > MAX_PARTS {
        let more = inventory.parts.len() - MAX_PARTS;
        inventory.parts.truncate(MAX_PARTS);
        inventory.parts.push(format!("and {more} more"));
    }
    inventory.digest = hex::encode(&digest.finalize());
    (inventory, found)
}

struct InventoryWalk<'d> {
    digest: &'d mut Sha256,
    entries: usize,
    bytes: u64,
    too_large: bool,
    /// Files that are returned, and folders whose Markdown files are returned.
    wanted: Vec<PathBuf>,
    files: Vec<(PathBuf, Result<Vec<u8>, String>)>,
}

impl InventoryWalk<'_> {
    /// Adds the settings and the bound files of one folder of the project.
    fn scan_folder(&mut self, folders: &ProjectFolders, folder: &Path, inventory: &mut TrustInventory) {
        let settings = read_below(folder, Path::new(SETTINGS_FILE), MAX_FILE_BYTES);
        self.add_to_digest(SETTINGS_FILE.as_bytes(), b"settings");
        let project = match &settings {
            Ok(Some(text)) => {
                self.add_to_digest(text, b"text");
                Some(project::read(text))
            }
            Ok(None) => None,
            Err(error) => {
                self.add_to_digest(error.to_string().as_bytes(), b"unreadable");
                Some(project::project_of_unreadable(error.to_string()))
            }
        };
        if let Some(project) = project {
            let name = folders.display_name(folder, Path::new(SETTINGS_FILE));
            inventory.parts.extend(project.describe(&name));
            inventory.settings.push(FolderSettings { folder: folder.to_owned(), name, project });
        }
        for (name, usage) in BOUND_FILES {
            let path = folder.join(name);
            if fs::symlink_metadata(&path).is_err() {
                continue;
            }
            let shown = folders.display_name(folder, Path::new(name));
            self.too_large = false;
            let before = self.files.len();
            self.inspect_entry(&path, name.as_bytes(), 0);
            if self.too_large {
                // The digest does not cover the whole entry, so a file in it could run parts that were changed
                // later.
                for (_, content) in &mut self.files[before..] {
                    *content = Err(format!("{shown} is too large for trust to cover it; make it smaller"));
                }
            }
            let size = if self.too_large { ", and too large to be used at all" } else { "" };
            inventory.parts.push(format!("{shown} ({usage}{size})"));
        }
    }

    /// Adds the configuration of the repository from which the model gets facts.
    fn scan_git(&mut self, cwd: &Path, inventory: &mut TrustInventory) {
        let Some(root) = crate::workspace::repository_root(cwd) else { return };
        match git_settings(&root) {
            Ok(text) => {
                self.add_to_digest(text.as_bytes(), b"git");
                inventory.has_git = true;
                inventory.parts.push(
                    "git facts for the model (branch, status, last commits, user): git is run here".into(),
                );
            }
            Err(why) => {
                self.add_to_digest(why.as_bytes(), b"no git");
                inventory.parts.push(format!("git facts (not used: {why})"));
            }
        }
    }

    /// Adds a value with a tag to the digest, so that two different inventories never have the same bytes.
    fn add_to_digest(&mut self, value: &[u8], word: &[u8]) {
        for part in [word, value] {
            self.digest.update((part.len() as u64).to_be_bytes());
            self.digest.update(part);
        }
    }

    fn inspect_entry(&mut self, path: &Path, name: &[u8], depth: usize) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES || depth > MAX_DEPTH {
            self.too_large = true;
            self.add_to_digest(name, b"too many");
            return;
        }
        let Ok(meta) = fs::symlink_metadata(path) else {
            self.add_to_digest(name, b"unreadable");
            return;
        };
        if meta.is_symlink() {
            let target = fs::read_link(path).unwrap_or_default();
            self.add_to_digest(name, b"link");
            self.add_to_digest(target.as_os_str().as_bytes(), b"to");
            if self.wanted.iter().any(|folder| path.starts_with(folder)) {
                self.files.push((path.to_owned(), Err("a link in a project is not followed".into())));
            }
        } else if meta.is_dir() {
            self.add_to_digest(name, b"folder");
            let entries: Vec<_> =
                fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES + 1).collect();
            let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
            names.sort_unstable();
            for name in names {
                self.inspect_entry(&path.join(&name), name.as_bytes(), depth + 1);
            }
            self.add_to_digest(b"", b"end");
        } else if meta.is_file() {
            self.add_to_digest(name, b"file");
            self.add_to_digest(&[u8::from(meta.mode() & 0o111 != 0)], b"may run");
            self.file(path);
        } else {
            // A pipe or a device: opening it may block forever or have a side effect.
            self.add_to_digest(name, b"neither");
        }
    }

    fn file(&mut self, path: &Path) {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.bytes);
        match open_plain(path).and_then(|file| read_up_to(file, room)) {
            Ok(Some(bytes)) => {
                self.bytes += bytes.len() as u64;
                self.add_to_digest(&bytes, b"text");
                let is_small = bytes.len() as u64 <= MAX_FILE_BYTES;
                self.collect(path, || {
                    is_small.then_some(bytes).ok_or_else(|| "the file is too large".into())
                });
            }
            Ok(None) => {
                self.too_large = true;
                self.add_to_digest(b"", b"too large");
                self.collect(path, || Err("the file is too large".into()));
            }
            Err(error) => {
                self.add_to_digest(error.kind().to_string().as_bytes(), b"unreadable");
                self.collect(path, || Err(format!("could not read the file: {error}")));
            }
        }
    }

    /// Returns the content of a wanted file to the caller of the scan.
    fn collect(&mut self, path: &Path, content: impl FnOnce() -> Result<Vec<u8>, String>) {
        let is_markdown = path.extension().is_some_and(|ending| ending == "md");
        let is_wanted = |wanted: &PathBuf| wanted == path || is_markdown && path.starts_with(wanted);
        if self.wanted.iter().any(is_wanted) {
            self.files.push((path.to_owned(), content()));
        }
    }
}

/// Reads a file below a folder without following any link. `None` if it does not exist.
fn read_below(folder: &Path, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    // The daemon watches the folder, and opening it for reading wakes the watcher. O_PATH does not.
    let folder_flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut at = File::options().read(true).custom_flags(folder_flags.bits()).open(folder)?;
    for name in path {
        match openat(&at, Path::new(name), flags, Mode::empty()).map_err(io::Error::from) {
            Ok(fd) => at = File::from(fd),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(nix::libc::ELOOP) => {
                return Err(io::Error::other("a link is not followed"));
            }
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOTDIR) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    if !at.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    read_up_to(at, most)?.map(Some).ok_or_else(|| io::Error::other(format!("it has more than {most} bytes")))
}

#[cfg(test)]
mod tests {
    use crate::workspace::trust_inventory::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct TestFolder(tempfile::TempDir);

    impl TestFolder {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"))
        }

        fn path(&self) -> PathBuf {
            self.0.path().canonicalize().expect("resolved")
        }

        fn write_file(&self, name: &str, text: &str) {
            let path = self.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }

        fn folders(&self) -> ProjectFolders {
            ProjectFolders::find(&self.path(), Path::new("/nonexistent"))
        }

        fn scan(&self) -> TrustInventory {
            scan(&self.folders())
        }

        fn digest(&self) -> String {
            self.scan().digest
        }
    }

    #[test]
    fn change_of_trusted_file_changes_digest() {
        let folder = TestFolder::new();
        let mut seen = vec![folder.digest()];
        let mut changed = |what: &str| {
            let digest = folder.digest();
            assert!(!seen.contains(&digest), "{what} is not noticed");
            seen.push(digest);
        };
        folder.write_file(".agentd/config.toml", "[permissions]\nallow = [\"Bash(make)\"]\n");
        changed("a new file");
        folder.write_file(".agentd/config.toml", "[permissions]\nallow = [\"Bash(make:*)\"]\n");
        changed("another rule");
        folder.write_file(".agentd/hooks/a", "x");
        changed("a file in a folder");
        folder.write_file(".agentd/hooks/b", "");
        changed("an empty file");
        fs::rename(folder.path().join(".agentd/hooks/b"), folder.path().join(".agentd/hooks/c"))
            .expect("moved");
        changed("a name");
        let hook = folder.path().join(".agentd/hooks/a");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("set");
        changed("that it may run");
        symlink("/etc/passwd", folder.path().join(".mcp.json")).expect("linked");
        changed("a link");
        fs::remove_file(folder.path().join(".mcp.json")).expect("removed");
        symlink("/etc/group", folder.path().join(".mcp.json")).expect("linked");
        changed("where a link leads");
        folder.write_file(".git/config", "[core]\n\tbare = false\n");
        changed("a repository");
        folder.write_file(".git/config", "[core]\n\tbare = false\n[filter \"x\"]\n\tclean = touch pwned\n");
        changed("a program of git's");
        folder.write_file(".git/config.worktree", "[core]\n\tfsmonitor = touch pwned\n");
        changed("a program of the work tree's");
        folder.write_file("other/config", "[core]\n\tfsmonitor = touch pwned\n");
        folder.write_file(".git/commondir", "../other\n");
        changed("another repository's configuration");
    }

    #[test]
    fn ordinary_changes_keep_trust_digest() {
        let folder = TestFolder::new();
        folder.write_file(".git/config", "[core]\n\tbare = false\n[branch \"main\"]\n\tremote = origin\n");
        let before = folder.digest();
        folder
            .write_file(".git/config", "[core]\n\tbare = false\n[branch \"other\"]\n\tremote = elsewhere\n");
        folder.write_file("src/main.rs", "fn main() {}");
        folder.write_file("AGENTS.md", "text");
        assert_eq!(folder.digest(), before);
        // Placeholders of the sandbox do not change the digest.
        folder.write_file(".git/commondir", "./\n");
        folder.write_file(".git/config.worktree", "");
        assert_eq!(folder.digest(), before);
        // Text on the same line after the head of such a section does count.
        folder
            .write_file(".git/config", "[core]\n\tbare = false\n[branch \"x\"] y = 1\n\tfsmonitor = pwned\n");
        assert_ne!(folder.digest(), before);
    }

    #[test]
    fn scanned_markdown_files_are_those_of_the_digest() {
        let folder = TestFolder::new();
        folder.write_file(".claude/commands/a.md", "one");
        folder.write_file(".claude/commands/team/b.md", "two");
        folder.write_file(".claude/settings.md", "no");
        folder.write_file(".agentd/commands/c.txt", "no");
        symlink("/etc/passwd", folder.path().join(".claude/commands/leak.md")).expect("linked");
        let (inventory, files) =
            scan_with_files(&folder.folders(), &[".agentd/commands", ".claude/commands"]);
        let files = files.into_iter().next().expect("files").files;
        assert_eq!(inventory.digest, folder.digest());
        let names: Vec<_> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(
            names,
            [".claude/commands/a.md", ".claude/commands/leak.md", ".claude/commands/team/b.md"]
        );
        assert_eq!(files[0].1, Ok(b"one".to_vec()));
        assert!(files[1].1.is_err());
    }

    #[test]
    fn trust_scan_does_not_hang_or_exhaust_memory() {
        let folder = TestFolder::new();
        let pipe = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).expect("a pipe");
        };
        pipe(".agentd/config.toml");
        pipe(".mcp.json");
        pipe(".claude/pipe");
        folder.write_file(".git", "gitdir: elsewhere");
        // This is a sparse file of ten gigabytes.
        let huge = File::create(folder.path().join(".mcprc")).expect("made");
        huge.set_len(10 << 30).expect("a hole");
        for n in 0..3_000 {
            folder.write_file(&format!(".kode/{n}"), "x");
        }
        let deep = (0..40).map(|_| "d").collect::<Vec<_>>().join("/");
        folder.write_file(&format!(".agentd/skills/{deep}/x"), "x");
        let inventory = folder.scan();
        let parts_text = inventory.parts.join("\n");
        let settings = ".agentd/config.toml (not understood, so every call asks: it is not a file)";
        assert!(parts_text.contains(settings), "{parts_text}");
        for (name, usage) in
            BOUND_FILES.into_iter().filter(|(name, _)| [".mcprc", ".kode", ".agentd/skills"].contains(name))
        {
            assert!(parts_text.contains(&format!("{name} ({usage}, and too large")), "{name}: {parts_text}");
        }
        assert!(inventory.settings[0].project.is_closed && !inventory.has_git, "{parts_text}");
    }

    #[test]
    fn change_of_large_script_changes_digest() {
        let folder = TestFolder::new();
        let script =
            |end: &str| format!("{}{end}", "#".repeat(usize::try_from(MAX_FILE_BYTES).expect("small") + 10));
        folder.write_file(".claude/hooks/a.sh", &script("good"));
        let before = folder.scan();
        assert!(!before.parts.join("\n").contains("too large"), "{:?}", before.parts);
        folder.write_file(".claude/hooks/a.sh", &script("evil"));
        assert_ne!(folder.scan().digest, before.digest);
    }

    #[test]
    fn folder_that_trust_cannot_cover_gives_no_file() {
        let folder = TestFolder::new();
        folder.write_file(".claude/agents/a.md", "x");
        for n in 0..=MAX_ENTRIES {
            folder.write_file(&format!(".claude/hooks/{n}"), "x");
        }
        let (inventory, files) = scan_with_files(&folder.folders(), &[".claude/agents"]);
        let files = files.into_iter().next().expect("files").files;
        assert!(inventory.parts.join("\n").contains("too large"), "{:?}", inventory.parts);
        assert!(files.iter().all(|(_, content)| content.is_err()) && !files.is_empty(), "{files:?}");
    }

    /// The inventory of a folder in a repository that lies two folders deep.
    fn scan_deep(folder: &TestFolder) -> TrustInventory {
        scan(&ProjectFolders::find(&folder.path().join("sub/deep"), Path::new("/nonexistent")))
    }

    #[test]
    fn folders_above_without_bound_files_keep_old_digest() {
        let folder = TestFolder::new();
        folder.write_file(".git/config", "[core]\n");
        folder.write_file("sub/deep/.mcp.json", "{}");
        folder.write_file("sub/deep/.agentd/config.toml", "[permissions]\nallow = [\"Bash(make)\"]\n");
        let alone = scan_deep(&folder);
        folder.write_file(".git/HEAD", "ref: refs/heads/main\n");
        folder.write_file(".git/objects/x", "");
        folder.write_file(".git/refs/x", "");
        folder.write_file("AGENTS.md", "text");
        folder.write_file(".agentd/notes.txt", "not bound");
        let in_project = scan_deep(&folder);
        assert_eq!(in_project, alone, "trust given to the folder alone stays valid");
        folder.write_file(".mcp.json", "{}");
        assert_ne!(scan_deep(&folder).digest, alone.digest, "a file more asks again");
    }

    #[test]
    fn each_file_on_the_way_is_named_and_bound() {
        let folder = TestFolder::new();
        for name in [".git/HEAD", ".git/objects/x", ".git/refs/x", ".git/config", "sub/deep/x"] {
            folder.write_file(name, "ref: refs/heads/main\n");
        }
        let mut seen = vec![scan_deep(&folder).digest];
        for level in ["", "sub/", "sub/deep/"] {
            for (name, _) in BOUND_FILES.into_iter().chain([(SETTINGS_FILE, "")]) {
                let file = match name.ends_with(".json") || name.ends_with("rc") || name.ends_with(".toml") {
                    true => format!("{level}{name}"),
                    false => format!("{level}{name}/x.md"),
                };
                folder.write_file(&file, "[session]\nmode = \"plan\"\n");
                let inventory = scan_deep(&folder);
                assert!(!seen.contains(&inventory.digest), "{file} is not noticed");
                let shown = match level {
                    "sub/deep/" => name.to_owned(),
                    _ => folder.path().join(level).join(name).display().to_string(),
                };
                let is_named = |part: &String| {
                    part.starts_with(&format!("{shown} (")) || part.starts_with(&format!("{shown}: "))
                };
                assert!(inventory.parts.iter().any(is_named), "{shown}: {:?}", inventory.parts);
                seen.push(inventory.digest);
            }
        }
        let project = ProjectFolders::find(&folder.path().join("sub/deep"), Path::new("/nonexistent"));
        let (inventory, files) = scan_with_files(&project, &[".mcp.json", ".claude"]);
        let folders =
            ["sub/deep", "sub", ""].map(|name| folder.path().join(name).components().collect::<PathBuf>());
        assert_eq!(
            files.iter().map(|of| of.folder.clone()).collect::<Vec<_>>(),
            folders,
            "the nearest comes first"
        );
        assert_eq!(inventory.settings.iter().map(|of| of.folder.clone()).collect::<Vec<_>>(), folders);
        let names: Vec<_> = files[2].files.iter().map(|(path, _)| path.display().to_string()).collect();
        assert_eq!(names, [".mcp.json", ".claude/x.md"]);
        // The same files in another folder of the project are another content.
        fs::rename(folder.path().join("sub/.mcp.json"), folder.path().join("mcp")).expect("moved");
        let one = scan_deep(&folder).digest;
        fs::rename(folder.path().join("mcp"), folder.path().join("sub/.mcp.json")).expect("moved");
        fs::remove_file(folder.path().join(".mcp.json")).expect("removed");
        assert_ne!(scan_deep(&folder).digest, one);
    }

    #[test]
    fn unreadable_settings_above_and_too_deep_folders_close_project() {
        let folder = TestFolder::new();
        for name in [".git/HEAD", ".git/objects/x", ".git/refs/x", "sub/deep/x"] {
            folder.write_file(name, "ref: refs/heads/main\n");
        }
        let is_closed = |inventory: &TrustInventory| inventory.settings.iter().any(|of| of.project.is_closed);
        assert!(!is_closed(&scan_deep(&folder)));
        symlink("/etc", folder.path().join("sub/.agentd")).expect("linked");
        assert!(!is_closed(&scan_deep(&folder)), "no such file is there");
        fs::remove_file(folder.path().join("sub/.agentd")).expect("removed");
        folder.write_file("sub/.agentd/config.toml/x", "a folder");
        let inventory = scan_deep(&folder);
        assert!(is_closed(&inventory), "{inventory:?}");
        assert!(inventory.settings[0].name.ends_with("/sub/.agentd/config.toml"), "{inventory:?}");
        fs::remove_dir_all(folder.path().join("sub/.agentd")).expect("removed");
        let deep = folder.path().join("d/".repeat(300));
        assert!(is_closed(&scan(&ProjectFolders::find(&deep, Path::new("/nonexistent")))));
    }

    #[test]
    fn trust_scan_does_not_follow_symlinks() {
        let outside = TestFolder::new();
        outside.write_file("config.toml", "[permissions]\nallow = [\"Bash\"]\n");
        for link in [".agentd", ".agentd/config.toml"] {
            let folder = TestFolder::new();
            let path = folder.path().join(link);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            let target = if link == ".agentd" { outside.path() } else { outside.path().join("config.toml") };
            symlink(target, path).expect("linked");
            let inventory = folder.scan();
            let none = project::project_of_unreadable("a link is not followed".into());
            assert_eq!(inventory.settings[0].project, none, "{link}");
        }
    }
}
