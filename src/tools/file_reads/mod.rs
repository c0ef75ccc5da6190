//! Inspects on the disk what a command would read, before the command is judged: whether a file or a
//! searched folder likely holds secrets, and whether links lead outside the workspace.

mod git_index;
mod patterns;
mod tree;

use std::cell::OnceCell;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::context::escape_name;
use crate::sensitivity::{SecretNames, SensitivePaths};
use judge::{FileFacts, FileRead, NameRule, Obstacle, ObstacleKind, ReadKind, Selection};

/// Maximum number of files and folders that are inspected for one call.
const MAX_ENTRIES: usize = 20_000;
/// Maximum time for one call. The load of a machine must not decide what tests see.
const MAX_TIME: Duration = Duration::from_millis(if cfg!(test) { 60_000 } else { 40 });

/// Where commands read, and what the sandbox hides from them.
pub(crate) struct ReadableFiles<'a> {
    /// The folders of the workspace, without links.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) places: &'a SensitivePaths,
    /// The paths that the sandbox hides. Called only if a likely secret is found.
    pub(crate) hidden: &'a dyn Fn() -> Vec<PathBuf>,
}

/// Inspects reads in a folder, as if no sandbox hid anything. The folder and the home folder are absolute,
/// without links. Blocks on the disk.
#[must_use]
pub fn inspect_reads(reads: Vec<FileRead>, folder: &Path, home: &Path) -> FileFacts {
    let places = SensitivePaths::new(home, &[]).with_links();
    ReadableFiles { roots: &[folder.to_path_buf()], places: &places, hidden: &Vec::new }.inspect(reads)
}

impl ReadableFiles<'_> {
    /// Inspects the reads, within the limits of time and number. What was not inspected counts as a secret.
    pub(crate) fn inspect(&self, reads: Vec<FileRead>) -> FileFacts {
        let mut inspection = Inspection {
            files: self,
            hidden: OnceCell::new(),
            names: SecretNames::new(self.places),
            entries_left: MAX_ENTRIES,
            deadline: Instant::now() + MAX_TIME,
        };
        let mut facts = FileFacts::default();
        for read in reads {
            let obstacle = inspection.inspect(&read).err();
            facts.add(read, obstacle);
        }
        facts
    }
}

/// A running inspection with its limits.
struct Inspection<'a> {
    files: &'a ReadableFiles<'a>,
    hidden: OnceCell<Vec<PathBuf>>,
    names: SecretNames<'a>,
    entries_left: usize,
    deadline: Instant,
}

impl Inspection<'_> {
    fn inspect(&mut self, read: &FileRead) -> Result<(), Obstacle> {
        let path = Path::new(&read.path);
        if let ReadKind::Absent(names) = &read.kind {
            return self.check_absent(path, names);
        }
        if !read.is_pattern {
            return self.inspect_path(path, read);
        }
        for path in self.expand(path)? {
            self.check_name(&path, read.names)?;
            self.inspect_path(&path, read)?;
        }
        Ok(())
    }

    /// Checks that no file with one of the names exists in the folder or above, up to the root of the disk: also
    /// above the target if a link leads to the folder.
    fn check_absent(&self, folder: &Path, names: &[String]) -> Result<(), Obstacle> {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        let linked = folder.ancestors().filter(|above| !real.starts_with(above));
        let mut files =
            real.ancestors().chain(linked).flat_map(|above| names.iter().map(|name| above.join(name)));
        match files.find(|file| file.symlink_metadata().is_ok()) {
            Some(file) => Err(self.obstacle(&file, ObstacleKind::ChoosesProgram)),
            None => Ok(()),
        }
    }

    /// Inspects one path. A path that does not exist is not read.
    fn inspect_path(&mut self, path: &Path, read: &FileRead) -> Result<(), Obstacle> {
        self.count(path)?;
        let real = match (path.canonicalize(), &read.kind) {
            (Ok(real), _) => real,
            // The word may be a revision, whose files the disk does not show.
            (Err(_), ReadKind::Tree(search)) if search.selection == Selection::Tracked => {
                return Err(self.obstacle(path, ObstacleKind::Unseen));
            }
            (Err(_), ReadKind::Tree(search)) if search.selection == Selection::Patches => {
                return self.search_all_tracked(path, search);
            }
            (Err(_), _) => return Ok(()),
        };
        if !self.is_inside(&real) {
            return Err(self.obstacle(path, ObstacleKind::Outside));
        }
        match &read.kind {
            ReadKind::Names | ReadKind::Absent(_) => Ok(()),
            ReadKind::Tree(search) if real.is_dir() => self.search(path, &real, search, read.names),
            ReadKind::File if real.is_dir() => Ok(()),
            ReadKind::File | ReadKind::Tree(_) => {
                self.check_ends(path, real.metadata().map(|meta| meta.file_type()).ok())?;
                self.check_secret(path, &real)
            }
        }
    }

    /// Checks that reading a path ends: it is no pipe, socket or device.
    fn check_ends(&self, path: &Path, kind: Option<FileType>) -> Result<(), Obstacle> {
        match kind.is_none_or(|kind| kind.is_file() || kind.is_dir()) {
            true => Ok(()),
            false => Err(self.obstacle(path, ObstacleKind::Endless)),
        }
    }

    /// Checks a file by its own path and by that of its target.
    fn check_secret(&mut self, path: &Path, real: &Path) -> Result<(), Obstacle> {
        let is_secret = self.names.contain_path(real) || path != real && self.names.contain_path(path);
        if is_secret && !self.is_hidden(real) {
            return Err(self.obstacle(path, ObstacleKind::Secret));
        }
        Ok(())
    }

    fn is_hidden(&self, real: &Path) -> bool {
        self.hidden.get_or_init(|| (self.files.hidden)()).iter().any(|hidden| real.starts_with(hidden))
    }

    fn is_inside(&self, real: &Path) -> bool {
        self.files.roots.iter().any(|root| real.starts_with(root))
    }

    fn check_name(&self, path: &Path, rule: NameRule) -> Result<(), Obstacle> {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let is_plain = |c: char| c.is_alphanumeric() || "_./+@,:=~%^-".contains(c);
        let passes = match rule {
            NameRule::Any => true,
            NameRule::NoOption => !name.starts_with('-'),
            NameRule::Plain => !name.starts_with(['-', '~']) && name.chars().all(is_plain),
        };
        if passes { Ok(()) } else { Err(self.obstacle(path, ObstacleKind::OddName)) }
    }

    /// Counts one file or folder.
    fn count(&mut self, path: &Path) -> Result<(), Obstacle> {
        match self.entries_left.checked_sub(1) {
            Some(left) if Instant::now() < self.deadline => self.entries_left = left,
            _ => return Err(self.obstacle(path, ObstacleKind::Unseen)),
        }
        Ok(())
    }

    /// The path as users write it: relative to the workspace if it lies there.
    fn obstacle(&self, path: &Path, kind: ObstacleKind) -> Obstacle {
        let below = self.files.roots.first().and_then(|root| path.strip_prefix(root).ok());
        let shown = match below {
            Some(below) if below.as_os_str().is_empty() => Path::new("."),
            Some(below) => below,
            None => path,
        };
        let shown: PathBuf = shown.components().collect();
        Obstacle { path: escape_name(&shown.to_string_lossy()), kind }
    }
}
