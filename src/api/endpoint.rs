//! Paths of the socket and of the daemon's files: the path rules of `config.md`, "Places".
//!
//! Pure: the environment is passed as a function, so that tests control it.

use std::path::{Path, PathBuf};

/// Reads one environment variable; an empty one counts as absent.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `HOME` is not set, so no default path can be found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("HOME is not set: set it, or set AGENTD_DATA_DIR and AGENTD_CONFIG")]
pub struct NoHome;

fn read_path(env: Env<'_>, name: &str) -> Option<PathBuf> {
    env(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The user's home folder.
///
/// # Errors
/// `HOME` is not set.
pub fn home(env: Env<'_>) -> Result<PathBuf, NoHome> {
    read_path(env, "HOME").ok_or(NoHome)
}

/// The data folder. `AGENTD_DATA_DIR` overrides `configured` (`[daemon] data_dir`). The default is the folder
/// `agentd` in `XDG_DATA_HOME` or in `~/.local/share`.
///
/// # Errors
/// `HOME` is needed and not set.
pub fn data_dir(env: Env<'_>, configured: Option<PathBuf>) -> Result<PathBuf, NoHome> {
    if let Some(dir) = read_path(env, "AGENTD_DATA_DIR").or(configured) {
        return Ok(dir);
    }
    if let Some(dir) = read_path(env, "XDG_DATA_HOME") {
        return Ok(dir.join("agentd"));
    }
    Ok(home(env)?.join(".local/share/agentd"))
}

/// The path of the socket: `flag`, else `AGENTD_SOCKET`, else `configured` (`[daemon] socket`). If none of them is
/// set, the socket is in the folder `agentd` of `XDG_RUNTIME_DIR`, or else in the folder `run` of the data folder.
///
/// # Errors
/// `HOME` is needed and not set.
pub fn socket(
    env: Env<'_>,
    flag: Option<PathBuf>,
    configured: Option<PathBuf>,
    data_dir: Option<PathBuf>,
) -> Result<PathBuf, NoHome> {
    if let Some(path) = flag.or_else(|| read_path(env, "AGENTD_SOCKET")).or(configured) {
        return Ok(path);
    }
    if let Some(dir) = read_path(env, "XDG_RUNTIME_DIR") {
        return Ok(dir.join("agentd/agentd.sock"));
    }
    Ok(self::data_dir(env, data_dir)?.join("run/agentd.sock"))
}

/// Maximum bytes of the path of a Unix socket: 108 bytes with the closing zero (unix(7)).
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Checks that the system can bind the path. It may come from a flag, a variable, the configuration or a folder with
/// a long name, so the text says how to name another one in each of these cases.
///
/// # Errors
/// The path is too long; the text, for users.
pub fn check_socket_length(socket: &Path) -> Result<(), String> {
    let length = socket.as_os_str().len();
    if length <= MAX_SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(format!(
        "the socket path {} has {length} bytes, and the system allows {MAX_SOCKET_PATH_BYTES}; name a shorter one with \
         --socket, AGENTD_SOCKET or `[daemon] socket`, for example AGENTD_SOCKET=/tmp/agentd-$USER/agentd.sock",
        socket.display()
    ))
}

/// The configuration file of the whole system.
pub const SYSTEM_CONFIG: &str = "/etc/agentd/config.toml";

/// The configuration files in the order in which they are read, each with whether it must exist. Values of a later
/// file override those of an earlier one.
///
/// # Errors
/// `HOME` is needed and not set.
pub fn config_files(env: Env<'_>, flag: Option<PathBuf>) -> Result<Vec<(PathBuf, bool)>, NoHome> {
    if let Some(file) = flag.or_else(|| read_path(env, "AGENTD_CONFIG")) {
        return Ok(vec![(file, true)]);
    }
    Ok(vec![(PathBuf::from(SYSTEM_CONFIG), false), (config_dir(env)?.join("config.toml"), false)])
}

/// The user's configuration folder.
///
/// # Errors
/// `HOME` is needed and not set.
pub fn config_dir(env: Env<'_>) -> Result<PathBuf, NoHome> {
    let user = match read_path(env, "XDG_CONFIG_HOME") {
        Some(dir) => dir,
        None => home(env)?.join(".config"),
    };
    Ok(user.join("agentd"))
}

/// The file in which `agentctl login` stores the key of a provider. `None` if the name cannot be that of a file, or
/// there is no configuration folder.
pub fn key_file(env: Env<'_>, provider: &str) -> Option<PathBuf> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = !provider.is_empty() && !provider.starts_with('.') && provider.chars().all(is_plain);
    is_name.then(|| config_dir(env).ok()).flatten().map(|dir| dir.join("keys").join(provider))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env_of(pairs: &'static [(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
        move |name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_string())
    }

    #[test]
    fn socket_path_follows_documented_precedence() {
        let check = |pairs, flag: Option<&str>, expected: &str| {
            let env = env_of(pairs);
            assert_eq!(
                socket(&env, flag.map(PathBuf::from), None, None).expect("a place"),
                PathBuf::from(expected)
            );
        };
        check(&[("HOME", "/h")], None, "/h/.local/share/agentd/run/agentd.sock");
        check(&[("HOME", "/h"), ("AGENTD_DATA_DIR", "/d")], None, "/d/run/agentd.sock");
        check(&[("HOME", "/h"), ("XDG_RUNTIME_DIR", "/r")], None, "/r/agentd/agentd.sock");
        check(&[("XDG_RUNTIME_DIR", "/r"), ("AGENTD_SOCKET", "/s")], None, "/s");
        check(&[("AGENTD_SOCKET", "/s")], Some("/f"), "/f");
    }

    #[test]
    fn too_long_socket_path_is_refused_with_remedy() {
        let path = |bytes: usize| PathBuf::from(format!("/{}", "x".repeat(bytes - 1)));
        assert_eq!(check_socket_length(&path(107)), Ok(()));
        let long = format!("/{}", "ü".repeat(60));
        for path in [path(108), path(4_000), PathBuf::from(long)] {
            let text = check_socket_length(&path).expect_err("too long");
            assert!(
                text.contains("107") && text.contains("AGENTD_SOCKET") && text.contains("--socket"),
                "{text}"
            );
        }
    }

    #[test]
    fn key_file_is_in_configuration_folder_and_names_no_other_folder() {
        let env = env_of(&[("HOME", "/h")]);
        assert_eq!(key_file(&env, "acme-2.eu"), Some("/h/.config/agentd/keys/acme-2.eu".into()));
        for name in ["", ".", "..", "../config.toml", "a/b", ".hidden", "a b", "ü"] {
            assert_eq!(key_file(&env, name), None, "{name}");
        }
        assert_eq!(key_file(&env_of(&[]), "acme"), None);
    }

    #[test]
    fn missing_home_yields_error_without_guessing() {
        let env = env_of(&[]);
        assert_eq!(data_dir(&env, None), Err(NoHome));
        assert_eq!(config_files(&env, Some("/c.toml".into())), Ok(vec![("/c.toml".into(), true)]));
    }
}
