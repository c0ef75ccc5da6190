//! Everything that a judgement depends on, except for the call itself.

use std::path::{Path, PathBuf};

use super::rule::{Rule, Rules, verdict};
use super::shell::Repository;
use crate::types::permission::{Mode, Verdict, VerdictKind};

/// What the mode `bypass` does with calls that delete or write what is hardest to replace: the root, the home folder
/// and folders above the workspace with everything in them, SSH and GnuPG keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BypassGuard {
    /// A person is asked.
    #[default]
    Ask,
    /// The call is denied: the session is unattended.
    Deny,
    /// They run like any other call.
    Off,
}

/// The folders of keys in a home folder, by their own names. A caller that can read the disk adds where links lead.
#[must_use]
pub fn key_folders(home: &Path) -> Vec<PathBuf> {
    [".ssh", ".gnupg"].iter().map(|name| home.join(name)).collect()
}

/// Everything a verdict depends on, apart from the call itself.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// Rules of every lasting scope.
    pub rules: &'a Rules,
    /// What people granted for this session: allow rules.
    pub grants: &'a [Rule],
    /// The session's workspace, absolute and free of links. Relative patterns start here.
    pub workspace: &'a Path,
    /// Further folders that count as workspace, absolute and free of links.
    pub additional: &'a [PathBuf],
    /// The home folder, absolute and free of links. `~/` in patterns.
    pub home: &'a Path,
    /// Everything that is not denied asks.
    pub safe_mode: bool,
    /// Commands that only look, inside the workspace, pass without a rule.
    pub safe_commands: bool,
    /// What git finds in the workspace.
    pub repository: Repository,
    /// What still asks in the mode `bypass`.
    pub bypass_guard: BypassGuard,
    /// Folders of keys that the guard of `bypass` protects, by each of their names: see [`key_folders`].
    pub key_folders: &'a [PathBuf],
}

impl Policy<'_> {
    /// The verdict over a call that the guard of `bypass` caught for `reason`.
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

    /// Whether calls are looked at for the guard.
    pub(super) fn has_guard(&self) -> bool {
        self.mode == Mode::Bypass && self.bypass_guard != BypassGuard::Off
    }
}

#[cfg(test)]
static TEST_KEY_FOLDERS: std::sync::LazyLock<Vec<PathBuf>> =
    std::sync::LazyLock::new(|| key_folders(Path::new("/home/u")));

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
        }
    }
}
