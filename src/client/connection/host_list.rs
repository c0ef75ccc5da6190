//! The named hosts of the user, in a file of the user's configuration folder. `agentctl host` changes it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::connection::connector::private_dir;
use crate::failure::Failure;
use crate::terminal::escape;
use api::endpoint::{self, Env};

/// The name of the daemon of this machine. It cannot be given to another host.
pub(crate) const DEFAULT_HOST: &str = "default";

/// Maximum bytes of a name.
const MAX_NAME_BYTES: usize = 64;

/// Names with their addresses, and the name in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostList {
    /// The host that commands use without `-H`; `None` for this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// `ssh://…` or the path of a socket.
    #[serde(default)]
    pub(crate) hosts: BTreeMap<String, String>,
}

pub(crate) fn host_file(env: Env<'_>) -> Result<PathBuf, Failure> {
    let folder = endpoint::config_dir(env).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(folder.join("hosts.toml"))
}

impl HostList {
    /// Reads the file; a missing one is an empty list. A mistake in it is an error, because a command must not use
    /// another daemon than the user wrote.
    pub(crate) fn load(file: &Path) -> Result<Self, Failure> {
        let shown = file.display().to_string();
        let wrong = |error: String| {
            Failure::usage(format!("could not read {}: {}", escape::line(&shown), escape::text(&error)))
        };
        match std::fs::read_to_string(file) {
            Ok(text) => toml::from_str(&text).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Replaces the file at once, readable for its owner alone.
    pub(crate) fn save(&self, file: &Path) -> Result<(), Failure> {
        let shown = file.display().to_string();
        let failed =
            |error: String| Failure::internal(format!("could not write {}: {error}", escape::line(&shown)));
        let text = toml::to_string(self).map_err(|error| failed(error.to_string()))?;
        let folder = file.parent().unwrap_or(Path::new("."));
        private_dir(folder).map_err(|error| failed(error.to_string()))?;
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut new| {
            new.write_all(text.as_bytes())?;
            new.as_file().sync_all()?;
            Ok(new.persist(file)?)
        });
        written.map(drop).map_err(|error| failed(error.to_string()))
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain);
    if name == DEFAULT_HOST {
        return Err(format!("{DEFAULT_HOST} is the daemon of this machine; choose another name"));
    }
    match is_name {
        true => Ok(()),
        false => {
            Err("a name is of letters, digits and _ . -, begins with a letter or digit, and has at most 64 \
                      characters"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn saved_list_is_private_and_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("config/agentd/hosts.toml");
        assert_eq!(HostList::load(&file), Ok(HostList::default()));
        let hosts = [("build".to_owned(), "ssh://ann@build:22".to_owned())].into();
        let list = HostList { current: Some("build".into()), hosts };
        list.save(&file).expect("saved");
        assert_eq!(HostList::load(&file), Ok(list));
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let entries = std::fs::read_dir(file.parent().expect("a folder")).expect("readable").count();
        assert_eq!(entries, 1, "no temporary file is left");
    }

    #[test]
    fn file_with_mistake_is_refused_and_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("hosts.toml");
        for text in ["current = 4", "hosts = []", "other = 1", "x"] {
            std::fs::write(&file, text).expect("written");
            let failure = HostList::load(&file).expect_err(text);
            assert!(failure.code == 64 && failure.message.contains("hosts.toml"), "{failure}");
        }
    }

    #[test]
    fn names_that_look_like_options_or_addresses_are_refused() {
        for name in ["", "-x", "a/b", "a b", "ssh://x", "default", ".", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
        for name in ["build", "a-1.b_c", "7"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }
}
