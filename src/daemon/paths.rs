//! Paths of the daemon's state and socket.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::{self, Config, Override};
use crate::error::DaemonError;
use api::endpoint::{self, Env};

/// Resolved paths.
#[derive(Clone, Debug)]
pub(super) struct DaemonPaths {
    pub home: PathBuf,
    pub data_dir: PathBuf,
    pub socket: PathBuf,
    /// Folder of the user's configuration.
    pub config_dir: PathBuf,
}

pub(super) fn find(
    env: Env<'_>,
    socket: Option<PathBuf>,
    config: &Config,
) -> Result<DaemonPaths, DaemonError> {
    let is_set = |name: &str| env(name).is_some_and(|value| !value.is_empty());
    let is_data_chosen = config.daemon.data_dir.is_some() || is_set("AGENTD_DATA_DIR");
    let is_socket_chosen = socket.is_some() || config.daemon.socket.is_some() || is_set("AGENTD_SOCKET");
    let data_dir = endpoint::data_dir(env, config.daemon.data_dir.clone())?;
    let socket = endpoint::socket(env, socket, config.daemon.socket.clone(), Some(data_dir.clone()))?;
    // Without HOME, no path can be in a home folder.
    let home = endpoint::home(env).unwrap_or_else(|_| PathBuf::from("/nonexistent"));
    let config_dir = endpoint::config_dir(env).unwrap_or_else(|_| home.join(".config/agentd"));
    for path in [&data_dir, &socket] {
        if !path.is_absolute() {
            return Err(DaemonError::Folder(format!("{} is not an absolute path", path.display())));
        }
    }
    endpoint::check_socket_length(&socket).map_err(DaemonError::Folder)?;
    if !is_data_chosen {
        check_default(&data_dir, "[daemon] data_dir or AGENTD_DATA_DIR")?;
    }
    if let Some(folder) = socket.parent().filter(|_| !is_socket_chosen) {
        check_default(folder, "[daemon] socket or AGENTD_SOCKET")?;
    }
    Ok(DaemonPaths { home, data_dir, socket, config_dir })
}

/// The effective paths, each with its origin unless a file sets it.
pub(super) fn overrides(
    env: Env<'_>,
    is_socket_flag: bool,
    is_activated: bool,
    places: &DaemonPaths,
) -> [Override; 2] {
    let by_variable =
        |name: &str| env(name).filter(|value| !value.is_empty()).map(|_| config::variable_origin(name));
    let socket = match (is_activated, is_socket_flag) {
        (true, _) => Some("socket activation".to_owned()),
        (false, true) => Some("flag".to_owned()),
        (false, false) => by_variable("AGENTD_SOCKET"),
    };
    let value = |path: &Path| path.display().to_string();
    [
        Override { key: "daemon.socket", value: value(&places.socket), origin: socket },
        Override {
            key: "daemon.data_dir",
            value: value(&places.data_dir),
            origin: by_variable("AGENTD_DATA_DIR"),
        },
    ]
}

/// Creates a folder that only the user can enter, or checks an existing one.
///
/// If other users can only read the folder and it is empty, its mode is corrected: nothing was exposed yet.
///
/// # Errors
/// Other users can access the folder. The folder stays unchanged, and the text says how to correct it.
pub(super) fn make_private(dir: &Path) -> Result<(), DaemonError> {
    if is_empty_and_only_readable(dir) {
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(dir, private).map_err(|error| {
            DaemonError::Folder(format!("could not close {} to others: {error}", dir.display()))
        })?;
        tracing::warn!(dir = %dir.display(), "other users could read the data folder; changed its mode to 0700");
    }
    transport::private_folder(dir)?;
    Ok(())
}

/// Whether the folder belongs to the user, is empty, and has the default mode of `mkdir`, with which
/// other users can only read it.
fn is_empty_and_only_readable(dir: &Path) -> bool {
    let Ok(meta) = std::fs::symlink_metadata(dir) else { return false };
    let mode = meta.mode() & 0o7777;
    meta.is_dir()
        && meta.uid() == nix::unistd::geteuid().as_raw()
        && mode & 0o700 == 0o700
        && mode & 0o1022 == 0
        && mode & 0o055 != 0
        && std::fs::read_dir(dir).is_ok_and(|mut entries| {
            // `agentctl` creates the log with its own mode before the daemon starts, so the log does not count.
            entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "agentd.log"))
        })
}

/// Checks that a default path is not directly in a folder that all users share.
fn check_default(folder: &Path, set_with: &str) -> Result<(), DaemonError> {
    if !transport::is_in_shared_place(folder) {
        return Ok(());
    }
    Err(DaemonError::Folder(format!(
        "{} would lie directly in a folder that everybody shares; choose another place with {set_with}",
        folder.display()
    )))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use crate::paths::*;

    fn mode(dir: &Path) -> u32 {
        std::fs::metadata(dir).expect("there").mode() & 0o7777
    }

    #[test]
    fn shared_folder_is_refused_and_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, open, existing_file, expected) in [
            ("new", 0o755, None, Some(0o700)),
            ("first", 0o755, Some("agentd.log"), Some(0o700)),
            ("known", 0o755, Some("agentd.lock"), None),
            ("home", 0o755, Some("letters"), None),
            ("group", 0o770, None, None),
            ("tmp", 0o1777, Some("agentd.lock"), None),
            ("closed", 0o500, None, None),
            ("private", 0o700, Some("letters"), Some(0o700)),
        ] {
            let dir = folder.path().join(name);
            std::fs::create_dir(&dir).expect("made");
            if let Some(file) = existing_file {
                std::fs::write(dir.join(file), "").expect("written");
            }
            std::fs::set_permissions(&dir, Permissions::from_mode(open)).expect("set");
            let result = make_private(&dir);
            assert_eq!(result.is_ok(), expected.is_some(), "{name}");
            assert_eq!(mode(&dir), expected.unwrap_or(open), "{name}");
            if let Err(error) = result {
                let error_text = error.to_string();
                assert!(
                    error_text.contains("0700") || error_text.contains("of its own inside it"),
                    "{error_text}"
                );
            }
        }
    }

    #[test]
    fn symlink_as_data_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        make_private(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let error_text = make_private(&link).expect_err("a link").to_string();
        assert!(error_text.contains("name the folder itself"), "{error_text}");
    }

    #[test]
    fn only_explicit_paths_may_be_in_shared_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let shared = folder.path().join("tmp");
        std::fs::create_dir(&shared).expect("made");
        std::fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("set");
        let shared = shared.display().to_string();
        let check = |pairs: &[(&str, &str)], socket: Option<&str>, fits: bool| {
            let env = |name: &str| {
                let value = pairs.iter().find(|(key, _)| *key == name)?.1;
                Some(value.replace("TMP", &shared))
            };
            let socket = socket.map(|path| PathBuf::from(path.replace("TMP", &shared)));
            let found = find(&env, socket, &Config::default());
            assert_eq!(found.is_ok(), fits, "{pairs:?}: {found:?}");
        };
        check(&[("HOME", "/nonexistent")], None, true);
        check(&[("HOME", "TMP")], None, true);
        check(&[("HOME", "/nonexistent"), ("XDG_RUNTIME_DIR", "TMP")], None, false);
        check(&[("HOME", "/nonexistent"), ("XDG_RUNTIME_DIR", "TMP/run")], None, true);
        check(&[("HOME", "/nonexistent"), ("XDG_RUNTIME_DIR", "TMP")], Some("TMP/mine/s"), true);
        check(&[("HOME", "/nonexistent"), ("AGENTD_SOCKET", "TMP/mine/s")], None, true);
        check(&[("HOME", "/nonexistent"), ("XDG_DATA_HOME", "TMP")], None, false);
        check(&[("HOME", "/nonexistent"), ("AGENTD_DATA_DIR", "TMP/data")], None, true);
    }
}
