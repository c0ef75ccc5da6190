//! Everything that a judgement depends on, except for the call itself.

use std::path::{Path, PathBuf};

use super::file_facts::FileFacts;
use super::rule::{Rule, verdict};
use super::rules::Rules;
use super::shell::Repository;
use types::permission::{Mode, Verdict, VerdictKind};

/// The reaction of bypass mode to the calls that cause the greatest damage. These calls delete the
/// root, the home folder or a folder above the workspace with all content, or write SSH or GnuPG keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BypassGuard {
    /// The call needs a permission request.
    #[default]
    Ask,
    /// The call is denied, because the session is unattended and no user can answer a request.
    Deny,
    /// The guard is off: such a call runs like any other.
    Off,
}

/// The folders of keys in a home folder, by their own names. This function does not read the disk; a
/// caller that can read it adds the targets of links.
#[must_use]
pub fn key_folders(home: &Path) -> Vec<PathBuf> {
    [".ssh", ".gnupg"].iter().map(|name| home.join(name)).collect()
}

/// Everything a verdict depends on, apart from the call itself.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The session's approval mode.
    pub mode: Mode,
    /// The rules of all scopes except the session's own grants.
    pub rules: &'a Rules,
    /// Allow rules that users granted for this session.
    pub grants: &'a [Rule],
    /// The session's workspace, absolute and free of links. Relative patterns start here.
    pub workspace: &'a Path,
    /// The additional folders of the workspace, absolute and free of links.
    pub additional: &'a [PathBuf],
    /// The home folder, absolute and free of links. Patterns that begin with `~/` are relative to it.
    pub home: &'a Path,
    /// Safe mode: every call that is not denied needs a permission request.
    pub safe_mode: bool,
    /// Whether read-only commands inside the workspace run without a rule.
    pub safe_commands: bool,
    /// The kind of repository that git finds in the workspace.
    pub repository: Repository,
    /// The reaction of bypass mode to calls that its guard stops.
    pub bypass_guard: BypassGuard,
    /// Folders of keys that the guard of bypass mode protects, each by all of its names. See
    /// [`key_folders`].
    pub key_folders: &'a [PathBuf],
    /// What the disk says about the reads of the call: see [`crate::file_reads`]. Without it, only commands
    /// that read no files run without a rule.
    pub file_facts: &'a FileFacts,
}

impl Policy<'_> {
    /// The verdict on a call that the guard of bypass mode stopped for `reason`.
    pub(super) fn guard_verdict(&self, reason: &str) -> Verdict {
        match self.bypass_guard {
            BypassGuard::Deny => {
                let why = "bypass does not allow this in an unattended session";
                verdict(VerdictKind::Deny, None, format!("{reason}: {why}"))
            }
            BypassGuard::Ask | BypassGuard::Off => {
                verdict(VerdictKind::Ask, None, format!("{reason}: this asks in the mode bypass, too"))
            }
        }
    }

    /// Whether the guard of bypass mode checks the session's calls.
    pub(super) fn has_guard(&self) -> bool {
        self.mode == Mode::Bypass && self.bypass_guard != BypassGuard::Off
    }
}

#[cfg(test)]
static TEST_KEY_FOLDERS: std::sync::LazyLock<Vec<PathBuf>> =
    std::sync::LazyLock::new(|| key_folders(Path::new("/home/u")));

#[cfg(test)]
static TEST_FACTS: std::sync::LazyLock<FileFacts> =
    std::sync::LazyLock::new(|| FileFacts::simulated(super::shell::worst_disk));

#[cfg(test)]
impl<'a> Policy<'a> {
    /// Defaults for tests.
    pub(super) fn for_tests(rules: &'a Rules) -> Self {
        Self {
            mode: Mode::Default,
            rules,
            grants: &[],
            workspace: Path::new("/w/proj"),
            additional: &[],
            home: Path::new("/home/u"),
            safe_mode: false,
            safe_commands: false,
            repository: Repository::Top,
            bypass_guard: BypassGuard::Ask,
            key_folders: &TEST_KEY_FOLDERS,
            file_facts: &TEST_FACTS,
        }
    }
}
