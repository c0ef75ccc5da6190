//! Inventory of the files in a folder that can run code, and a digest of it. The user trusts exactly this
//! digest.
//!
//! The inventory of a session's folder also has the files of the folders above it, up to the root of its project. If these
//! have none, the digest is the same as for the folder alone.
//!
//! The scan runs no program. Files, depth and bytes are limited, because the folder may be hostile. A link is recorded, and
//! followed if it stays in the project; then the digest covers the bytes that are read. Pipes and devices are never opened.
//! A file that is too large to read completely is never used.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use sha2::{Digest as _, Sha256};

use crate::folders::{ProjectFolders, may_exist};
use crate::folders::{open_plain, project_target, read_up_to};
use crate::workspace::git_settings::git_settings;
use crate::workspace::project;
use crate::workspace::project::Project;
use base::open::{self, open_resolved};
use types::hex;

/// Maximum bytes of one file whose content is used. Larger files, such as programs of hooks, are still part
/// of the digest.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Bytes of all files.
const MAX_TOTAL_BYTES: u64 = 32 << 20;
/// Number of files and folders.
const MAX_ENTRIES: usize = 20_000;
/// How many parts may be too large before the room that they took counts for the others.
const MAX_TOO_LARGE: usize = 4;
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
const BOUND_FILES: [(&str, &str); 10] = [
    (".agentd/hooks", "hooks: commands that run here"),
    (".agentd/agents", "agents"),
    (".agentd/commands", "slash commands"),
    (".agentd/jobs", "templates of unattended jobs"),
    (".agentd/skills", "skills"),
    (".mcp.json", "MCP servers: programs that sessions here start"),
    (".mcprc", "MCP servers: programs that sessions here start"),
    (".claude", "slash commands, skills, agents, and hooks: commands that run here"),
    (".kode", "slash commands, skills and agents"),
    (".agents/skills", "skills"),
];

/// A file as the scan read it: its path below its folder of the project, and its content or the reason why it is not
/// used.
pub type ScannedFile = (PathBuf, Result<Vec<u8>, String>);

/// Files of one folder of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFiles {
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
        left_out: 0,
        folders: folders.clone(),
        above: Vec::new(),
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
    /// How many parts were too large.
    left_out: usize,
    folders: ProjectFolders,
    /// The folders without links that are being scanned, the outermost first.
    above: Vec<PathBuf>,
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
            let (before, entries, bytes) = (self.files.len(), self.entries, self.bytes);
            self.inspect_entry(&path, &path, name.as_bytes(), 0);
            if self.too_large {
                self.left_out += 1;
                if self.left_out <= MAX_TOO_LARGE {
                    (self.entries, self.bytes) = (entries, bytes);
                }
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

    /// Adds an entry to the digest. `real` is its path without the links that were followed to it.
    fn inspect_entry(&mut self, path: &Path, real: &Path, name: &[u8], depth: usize) {
        self.entries += 1;
        if self.entries > MAX_ENTRIES || depth > MAX_DEPTH {
            self.too_large = true;
            self.add_to_digest(name, b"too many");
            return;
        }
        let Ok(meta) = fs::symlink_metadata(real) else {
            self.add_to_digest(name, b"unreadable");
            return;
        };
        if meta.is_symlink() {
            let target = fs::read_link(real).unwrap_or_default();
            self.add_to_digest(name, b"link");
            self.add_to_digest(target.as_os_str().as_bytes(), b"to");
            let followed = project_target(real, self.folders.root(), self.folders.home());
            match followed.and_then(|target| self.refuse_circle(target)) {
                Ok(target) => self.inspect_entry(path, &target, b"target", depth + 1),
                Err(why) if self.wanted.iter().any(|folder| path.starts_with(folder)) => {
                    self.files.push((path.to_owned(), Err(why)));
                }
                Err(_) => {}
            }
        } else if meta.is_dir() {
            self.add_to_digest(name, b"folder");
            let entries: Vec<_> =
                fs::read_dir(real).into_iter().flatten().flatten().take(MAX_ENTRIES + 1).collect();
            let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
            names.sort_unstable();
            self.above.push(real.to_owned());
            for name in names {
                self.inspect_entry(&path.join(&name), &real.join(&name), name.as_bytes(), depth + 1);
            }
            self.above.pop();
            self.add_to_digest(b"", b"end");
        } else if meta.is_file() {
            self.add_to_digest(name, b"file");
            self.add_to_digest(&[u8::from(meta.mode() & 0o111 != 0)], b"may run");
            self.file(path, real);
        } else {
            // A pipe or a device: opening it may block forever or have a side effect.
            self.add_to_digest(name, b"neither");
        }
    }

    /// Refuses the target of a link that holds the link itself.
    fn refuse_circle(&self, target: PathBuf) -> Result<PathBuf, String> {
        match self.above.iter().any(|folder| folder.starts_with(&target)) {
            true => Err("the link leads in a circle and is not followed".into()),
            false => Ok(target),
        }
    }

    fn file(&mut self, path: &Path, real: &Path) {
        let room = MAX_TOTAL_BYTES.saturating_sub(self.bytes);
        let open = if path == real { open_plain(path) } else { open_resolved(real) };
        match open.and_then(|file| read_up_to(file, room)) {
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
    // The daemon watches the folder, and opening it for reading wakes the watcher. A handle does not.
    let folder_flags = open::HANDLE | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
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
mod tests;
