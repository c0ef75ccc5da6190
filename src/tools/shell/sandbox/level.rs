//! Sandbox levels, which of them work on this machine, and the level that a call gets.

use std::path::PathBuf;

use crate::error::ToolError;
use crate::settings::{LevelSetting, NetworkSetting, SandboxSettings};
use types::tool::Confinement;

/// Sandbox level; a greater value is stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// No sandbox.
    Off,
    /// Resource limits only.
    Rlimits,
    /// Landlock, seccomp and rlimits.
    Landlock,
    /// Namespaces by bubblewrap, seccomp and rlimits.
    Bubblewrap,
}

/// Which levels work here, or why they do not.
#[derive(Clone, Debug)]
pub struct AvailableLevels {
    /// The Landlock version; 0 if there is none.
    pub(super) abi: u32,
    /// Path of bubblewrap. It is found once, because commands may change the folders of PATH later.
    pub(super) bwrap: PathBuf,
    pub(super) landlock: Result<(), String>,
    pub(super) guards: Result<(), String>,
    pub(super) bubblewrap: Result<(), String>,
}

impl AvailableLevels {
    /// Whether level 2 works.
    pub(crate) fn landlock(&self) -> Result<(), &str> {
        self.landlock.as_ref().copied().map_err(String::as_str)
    }

    /// Whether level 2 can make files in a writable folder read-only.
    pub(crate) fn guards(&self) -> Result<(), &str> {
        self.guards.as_ref().copied().map_err(String::as_str)
    }

    /// Whether level 3 works.
    pub(crate) fn bubblewrap(&self) -> Result<(), &str> {
        self.bubblewrap.as_ref().copied().map_err(String::as_str)
    }

    #[cfg(test)]
    pub(super) fn for_test(bubblewrap: bool, landlock: bool) -> Self {
        let so = |works: bool| if works { Ok(()) } else { Err("not here".to_owned()) };
        Self {
            abi: 7,
            bwrap: PathBuf::new(),
            landlock: so(landlock),
            guards: so(landlock),
            bubblewrap: so(bubblewrap),
        }
    }
}

/// The sandbox that a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSandbox {
    pub(crate) level: Level,
    pub(crate) network: bool,
    /// Whether `.git/config`, `.git/hooks` and `.agentd` of a workspace are read-only.
    pub(crate) guards: bool,
}

impl Level {
    /// Number of the level, and a description of its means.
    pub(super) const fn number_and_text(self) -> (u8, &'static str) {
        match self {
            Level::Bubblewrap => (3, "bubblewrap, seccomp, rlimits"),
            Level::Landlock => (2, "landlock, seccomp, rlimits"),
            Level::Rlimits => (1, "rlimits"),
            Level::Off => (0, "off"),
        }
    }
}

impl CallSandbox {
    /// Describes the restrictions.
    pub(crate) fn description(self) -> &'static str {
        match self {
            CallSandbox { level: Level::Landlock, guards: true, .. } => "landlock, mounts, seccomp, rlimits",
            _ => self.level.number_and_text().1,
        }
    }

    /// The value for the journal.
    pub(crate) fn confinement(self) -> Confinement {
        Confinement { level: self.level.number_and_text().0, network: self.network, unsandboxed: false }
    }
}

impl SandboxSettings {
    /// Selects the sandbox for a command of such a session.
    ///
    /// # Errors
    /// The configured level does not work here, and no command may run.
    pub(crate) fn choose(&self, unattended: bool, here: &AvailableLevels) -> Result<CallSandbox, ToolError> {
        let level = match self.level {
            LevelSetting::Off => Level::Off,
            LevelSetting::Rlimits => Level::Rlimits,
            LevelSetting::Landlock => {
                here.landlock().map(|()| Level::Landlock).map_err(|why| self.unavailable_error(why))?
            }
            LevelSetting::Bubblewrap => {
                here.bubblewrap().map(|()| Level::Bubblewrap).map_err(|why| self.unavailable_error(why))?
            }
            LevelSetting::Auto => match (unattended, here.bubblewrap(), here.landlock()) {
                (true, Ok(()), _) | (false, Ok(()), Err(_)) => Level::Bubblewrap,
                (_, _, Ok(())) => Level::Landlock,
                (false, Err(_), Err(_)) => Level::Rlimits,
                (true, Err(bubblewrap), Err(landlock)) => {
                    return Err(no_sandbox(format!(
                        "an unattended session runs commands only in a sandbox, and there is none here \
                         (bubblewrap: {bubblewrap}; Landlock: {landlock}): install bubblewrap, or set [sandbox] \
                         level to \"rlimits\" or \"off\" if you mean it"
                    )));
                }
            },
        };
        let network = match self.network {
            NetworkSetting::On => true,
            NetworkSetting::Off if level < Level::Landlock => {
                return Err(no_sandbox(format!(
                    "[sandbox] network = \"off\" cannot be held at level {} ({}): nothing is run",
                    level.number_and_text().0,
                    level.number_and_text().1
                )));
            }
            NetworkSetting::Off => false,
            // A user who chose a level without network control also chose network access.
            NetworkSetting::Auto => !unattended || level < Level::Landlock,
        };
        let guards = match level {
            Level::Bubblewrap => true,
            Level::Landlock => here.guards().is_ok(),
            Level::Rlimits | Level::Off => false,
        };
        Ok(CallSandbox { level, network, guards })
    }

    /// Whether commands of attended sessions could run at all.
    ///
    /// # Errors
    /// They could not run; the text gives the reason for users.
    pub fn check(&self, here: &AvailableLevels) -> Result<(), String> {
        self.choose(false, here).map(|_| ()).map_err(|refusal| refusal.text)
    }

    /// The lowest level that commands of any session get; 0 also if none can run.
    #[must_use]
    pub fn least_level(&self, here: &AvailableLevels) -> u8 {
        let levels = [false, true].map(|unattended| self.choose(unattended, here));
        levels.iter().flatten().map(|choice| choice.confinement().level).min().unwrap_or(0)
    }

    fn unavailable_error(&self, why: &str) -> ToolError {
        let name = self.level.name();
        no_sandbox(format!("[sandbox] level = {name:?} does not work here: {why}; nothing is run without it"))
    }
}

fn no_sandbox(text: String) -> ToolError {
    ToolError::new("sandbox_unavailable", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use LevelSetting as L;
    use NetworkSetting as N;

    fn check(level: L, network: N, unattended: bool, works: (bool, bool), expected: Option<(Level, bool)>) {
        let settings = SandboxSettings { level, network, ..SandboxSettings::default() };
        let here = AvailableLevels::for_test(works.0, works.1);
        let chosen = settings.choose(unattended, &here).map(|choice| (choice.level, choice.network));
        let case = (level, network, unattended, works);
        match (&chosen, expected) {
            (Ok(chosen), Some(expected)) => assert_eq!(*chosen, expected, "{case:?}"),
            (Err(refusal), None) => assert_eq!(refusal.code, "sandbox_unavailable", "{case:?}"),
            _ => panic!("{case:?} gave {chosen:?}"),
        }
    }

    #[test]
    fn strongest_available_level_is_chosen_and_never_below_requested() {
        let (all, none, landlock, bubble) = ((true, true), (false, false), (false, true), (true, false));
        for (level, network, unattended, works, expected) in [
            (L::Auto, N::Auto, false, all, Some((Level::Landlock, true))),
            (L::Auto, N::Auto, true, all, Some((Level::Bubblewrap, false))),
            (L::Auto, N::Auto, true, landlock, Some((Level::Landlock, false))),
            (L::Auto, N::Auto, false, bubble, Some((Level::Bubblewrap, true))),
            (L::Auto, N::Auto, false, none, Some((Level::Rlimits, true))),
            (L::Auto, N::Auto, true, none, None),
            (L::Auto, N::On, true, all, Some((Level::Bubblewrap, true))),
            (L::Auto, N::Off, false, all, Some((Level::Landlock, false))),
            (L::Auto, N::Off, false, none, None),
            (L::Bubblewrap, N::Auto, false, all, Some((Level::Bubblewrap, true))),
            (L::Bubblewrap, N::Auto, false, landlock, None),
            (L::Landlock, N::Auto, true, all, Some((Level::Landlock, false))),
            (L::Landlock, N::Auto, false, bubble, None),
            (L::Rlimits, N::Auto, true, none, Some((Level::Rlimits, true))),
            (L::Rlimits, N::Off, false, all, None),
            (L::Off, N::Auto, true, all, Some((Level::Off, true))),
            (L::Off, N::Off, true, all, None),
        ] {
            check(level, network, unattended, works, expected);
        }
    }
}
