//! What a read-only command reads, and what the disk says about it. The judgement names the reads; its
//! caller inspects the disk before the call is judged, and passes the result in.

use std::collections::HashMap;
use std::fmt;

/// One read of a command that passes without a rule only if the disk holds nothing against it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileRead {
    /// Absolute path as the command would open it: links and `..` are not resolved. In a pattern, `*`,
    /// `?` and `[…]` are wildcards.
    pub path: String,
    /// Whether the path is a pattern that the shell expands.
    pub is_pattern: bool,
    /// What is read there.
    pub kind: ReadKind,
    /// Condition for the names of the files.
    pub names: NameRule,
}

/// What is read at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReadKind {
    /// Names and properties of files, not their content.
    Names,
    /// The content of a file. A folder is not read. Reading a pipe or a device may never end.
    File,
    /// The content of a file, or of the files below a folder.
    Tree(TreeSearch),
    /// No file with one of these names may exist in the folder or in any folder above, because it may choose
    /// the program that runs.
    Absent(Vec<String>),
}

/// Condition for the names of the files that a pattern or a search finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// Any name.
    #[default]
    Any,
    /// No name may begin with `-`, because the program would parse it as an option.
    NoOption,
    /// Only names that every program takes as one file: letters, digits and `_./+@,:=~%^-`.
    Plain,
}

/// The files that a search below a folder reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TreeSearch {
    /// Which files it leaves out on its own.
    pub selection: Selection,
    /// Whether it includes hidden files.
    pub hidden: bool,
    /// What it does with links below the folder.
    pub links: LinkUse,
    /// Maximum depth of folders; 1 for the files of the folder itself.
    pub max_depth: Option<usize>,
    /// If not empty: patterns, one of which a file's name matches.
    pub includes: Vec<String>,
    /// Names of folders that it leaves out.
    pub skipped_folders: Vec<String>,
    /// Globs of ripgrep; a leading `!` excludes.
    pub globs: Vec<String>,
    /// Names of ripgrep's file types.
    pub types: Vec<String>,
}

/// The rules by which a search leaves files out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selection {
    /// It leaves out nothing.
    #[default]
    All,
    /// The ignore files of ripgrep: `.gitignore`, `.ignore`, `.rgignore`, and those of git.
    Unignored,
    /// Only files in git's index.
    Tracked,
    /// Only files in git's index, whose changes are shown. A path that does not exist may be a revision, and
    /// then it stands for all of them.
    Patches,
}

/// What a search does with links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkUse {
    /// It does not follow them.
    #[default]
    Skipped,
    /// It opens linked files and does not enter linked folders.
    Opened,
    /// It follows all of them.
    Followed,
}

/// What is against a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The file, as a user names it.
    pub path: String,
    /// Why it needs a request.
    pub kind: ObstacleKind,
}

/// Why a file needs a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObstacleKind {
    /// It likely holds secrets.
    Secret,
    /// It leads outside the workspace.
    Outside,
    /// Not everything there was inspected, within the limits of number and time.
    Unseen,
    /// A program may misread its name.
    OddName,
    /// It may choose the program that runs.
    ChoosesProgram,
    /// It is a pipe, a socket or a device.
    Endless,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, kind } = self;
        match kind {
            ObstacleKind::Secret => write!(f, "it may read {path}, which likely holds secrets"),
            ObstacleKind::Outside => write!(f, "{path} leads outside the workspace"),
            ObstacleKind::Unseen => write!(f, "not all files of {path} could be checked for secrets"),
            ObstacleKind::OddName => write!(f, "a program may misread the name {path}"),
            ObstacleKind::ChoosesProgram => write!(f, "{path} may choose the program that runs"),
            ObstacleKind::Endless => {
                write!(f, "{path} is no ordinary file, so that reading it may never end")
            }
        }
    }
}

/// The inspected reads of one call. A read that was not inspected needs a request.
#[derive(Clone, Debug, Default)]
pub struct FileFacts {
    inspected: HashMap<FileRead, Option<Obstacle>>,
    /// Computes the result for every read instead.
    #[cfg(test)]
    simulation: Option<fn(&FileRead) -> Option<Obstacle>>,
}

impl FileFacts {
    /// Adds the result for a read.
    pub fn add(&mut self, read: FileRead, obstacle: Option<Obstacle>) {
        self.inspected.insert(read, obstacle);
    }

    #[cfg(test)]
    pub(crate) fn simulated(simulation: fn(&FileRead) -> Option<Obstacle>) -> Self {
        Self { simulation: Some(simulation), ..Self::default() }
    }

    /// What is against a read, if anything.
    pub(crate) fn obstacle(&self, read: &FileRead) -> Option<Obstacle> {
        #[cfg(test)]
        if let Some(simulation) = self.simulation {
            return simulation(read);
        }
        match self.inspected.get(read) {
            Some(known) => known.clone(),
            None => Some(Obstacle { path: read.path.clone(), kind: ObstacleKind::Unseen }),
        }
    }
}
