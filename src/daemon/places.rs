//! Where this daemon keeps its state and its socket.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::config::Config;
use super::error::DaemonError;
use crate::api::endpoint::{self, Env};

/// Resolved places.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub home: PathBuf,
    pub data_dir: PathBuf,
    pub socket: PathBuf,
    /// Folder of the user's configuration.
    pub config_dir: PathBuf,
}

pub(super) fn find(env: Env<'_>, socket: Option<PathBuf>, config: &Config) -> Result<Places, DaemonError> {
    let data_dir = endpoint::data_dir(env, config.daemon.data_dir.clone())?;
    let socket = endpoint::socket(env, socket, config.daemon.socket.clone(), Some(data_dir.clone()))?;
    // Without HOME nothing lies in a home folder.
    let home = endpoint::home(env).unwrap_or_else(|_| PathBuf::from("/nonexistent"));
    let config_dir = match env("XDG_CONFIG_HOME").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("agentd"),
        None => home.join(".config/agentd"),
    };
    for path in [&data_dir, &socket] {
        if !path.is_absolute() {
            return Err(DaemonError::Folder(format!("{} is not an absolute path", path.display())));
        }
    }
    Ok(Places { home, data_dir, socket, config_dir })
}

/// Makes a folder that only we can enter, or checks that it is one.
pub(super) fn make_private(dir: &Path) -> Result<(), DaemonError> {
    let failed = |error: std::io::Error| {
        DaemonError::Folder(format!("could not make the data folder {}: {error}", dir.display()))
    };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let meta = std::fs::metadata(dir).map_err(failed)?;
    if meta.uid() != nix::unistd::geteuid().as_raw() {
        return Err(DaemonError::Folder(format!(
            "the data folder {} belongs to another user: choose one with AGENTD_DATA_DIR",
            dir.display()
        )));
    }
    if meta.mode() & 0o077 != 0 {
        use std::os::unix::fs::PermissionsExt as _;
        // Taking a shared folder away from everybody else would be worse than not starting (S20).
        if meta.mode() & 0o1022 != 0 || !is_ours(dir).map_err(failed)? {
            return Err(DaemonError::Folder(format!(
                "{} cannot hold the data: it is open to others (mode {:04o}); chmod it to 0700, or choose a folder \
                 of its own with [daemon] data_dir",
                dir.display(),
                meta.mode() & 0o7777
            )));
        }
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
        tracing::warn!(dir = %dir.display(), "the data folder was open to others; its mode is now 0700");
    }
    Ok(())
}

/// Whether nothing but our own state lies in the folder.
fn is_ours(dir: &Path) -> std::io::Result<bool> {
    let mut is_empty = true;
    for entry in std::fs::read_dir(dir)? {
        if entry?.file_name() == "agentd.lock" {
            return Ok(true);
        }
        is_empty = false;
    }
    Ok(is_empty)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_folder_of_others_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let mode = |dir: &Path| std::fs::metadata(dir).expect("there").mode() & 0o7777;
        for (name, open, holds, expected) in [
            ("new", 0o755, None, Some(0o700)),
            ("known", 0o755, Some("agentd.lock"), Some(0o700)),
            ("home", 0o755, Some("letters"), None),
            ("group", 0o770, None, None),
            ("tmp", 0o1777, Some("agentd.lock"), None),
            ("private", 0o700, Some("letters"), Some(0o700)),
        ] {
            let dir = folder.path().join(name);
            std::fs::create_dir(&dir).expect("made");
            if let Some(file) = holds {
                std::fs::write(dir.join(file), "").expect("written");
            }
            std::fs::set_permissions(&dir, Permissions::from_mode(open)).expect("set");
            assert_eq!(make_private(&dir).is_ok(), expected.is_some(), "{name}");
            assert_eq!(mode(&dir), expected.unwrap_or(open), "{name}");
        }
    }
}
