//! Finds the socket, the data folder and the configuration from flags, environment and the `[daemon]`
//! table, by the rules of `api::endpoint`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use api::endpoint::{self, Env};

/// Paths of the daemon and of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientPaths {
    /// Path of the socket.
    pub socket: PathBuf,
    /// Whether the command line or `AGENTD_SOCKET` names the socket. If so, the client uses no other socket.
    pub is_socket_named: bool,
    /// Path of the data folder.
    pub data_dir: PathBuf,
    /// `--config` or `AGENTD_CONFIG`; passed on to a daemon that this client starts.
    pub config_flag: Option<PathBuf>,
    /// Configuration files, and whether each must exist.
    pub config_files: Vec<(PathBuf, bool)>,
    /// `--host`, `--socket` and `--config` of the command line with absolute paths, for a command that the user may
    /// paste later.
    pub flags: Vec<String>,
}

impl ClientPaths {
    /// Finds the paths. Skips configuration files that cannot be read: the daemon and `agentctl doctor`
    /// report them.
    ///
    /// # Errors
    /// `HOME` is needed and not set.
    pub fn find(env: Env<'_>, socket: Option<PathBuf>, config: Option<PathBuf>) -> Result<Self, Failure> {
        let no_home = |e: endpoint::NoHome| Failure::usage(e.to_string());
        let flags = command_line_flags([("--socket", &socket), ("--config", &config)]);
        let named = || env("AGENTD_CONFIG").filter(|file| !file.is_empty()).map(PathBuf::from);
        let config = config.or_else(named).map(absolute);
        // Without HOME, explicitly given paths may be enough.
        let config_files = endpoint::config_files(env, config.clone()).unwrap_or_default();
        let mut data_dir = None;
        let mut configured_socket = None;
        for (file, _) in &config_files {
            let (dir, path) = daemon_table(file, env);
            data_dir = dir.or(data_dir);
            configured_socket = path.or(configured_socket);
        }
        let is_socket_named = socket.is_some() || env("AGENTD_SOCKET").is_some_and(|path| !path.is_empty());
        let socket_path =
            endpoint::socket(env, socket, configured_socket, data_dir.clone()).map_err(no_home)?;
        let data_dir = endpoint::data_dir(env, data_dir).map_err(no_home)?;
        // A started daemon has another current folder, so make all paths absolute.
        let (socket_path, data_dir) = (absolute(socket_path), absolute(data_dir));
        Ok(Self { socket: socket_path, is_socket_named, data_dir, config_flag: config, config_files, flags })
    }

    /// Refuses a named configuration file that does not exist, because a running daemon has read other files.
    ///
    /// # Errors
    /// The file does not exist or is a folder.
    pub fn check_named_config(&self) -> Result<(), Failure> {
        let Some(file) = &self.config_flag else { return Ok(()) };
        let error = match std::fs::metadata(file) {
            Ok(meta) if meta.is_dir() => "it is a folder".to_owned(),
            Ok(_) => return Ok(()),
            Err(error) => error.to_string(),
        };
        let file = file.display().to_string();
        let file = crate::terminal::escape::line(&file);
        Err(Failure::usage(format!(
            "could not read the configuration {file}: {error}; check --config or AGENTD_CONFIG"
        )))
    }

    /// The folder for sockets of this user's programs. It need not exist.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        match base::proc::variable("XDG_RUNTIME_DIR").filter(|folder| folder.starts_with('/')) {
            Some(folder) => Path::new(&folder).join("agentd"),
            None => self.data_dir.join("run"),
        }
    }

    /// Path of the log of a daemon that `agentctl` started.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.data_dir.join("agentd.log")
    }
}

fn command_line_flags(paths: [(&str, &Option<PathBuf>); 2]) -> Vec<String> {
    let set_paths = paths.into_iter().filter_map(|(flag, path)| path.clone().map(|path| (flag, path)));
    set_paths.flat_map(|(flag, path)| [flag.to_owned(), absolute(path).display().to_string()]).collect()
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

fn daemon_table(file: &Path, env: Env<'_>) -> (Option<PathBuf>, Option<PathBuf>) {
    let table = std::fs::read_to_string(file).ok().and_then(|text| text.parse::<toml::Table>().ok());
    let daemon = table.as_ref().and_then(|t| t.get("daemon")).and_then(toml::Value::as_table);
    let path = |key: &str| {
        let text = daemon?.get(key)?.as_str()?;
        Some(match text.strip_prefix("~/") {
            Some(rest) => endpoint::home(env).ok()?.join(rest),
            // A relative path is relative to the file's folder, as in the daemon.
            None => absolute(file.to_path_buf()).parent()?.join(text),
        })
    };
    (path("data_dir"), path("socket"))
}

/// The current folder, with links resolved.
///
/// # Errors
/// It was removed, or cannot be read.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().and_then(std::fs::canonicalize).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Failure::usage("the current folder no longer exists: change to another one with `cd`")
        }
        _ => Failure::usage(format!("could not read the current folder: {error}")),
    })
}

/// A path for display: the home folder becomes `~`.
#[must_use]
pub fn short(path: &str, home: Option<&str>) -> String {
    match home.and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::connection::paths::*;

    #[test]
    fn configured_socket_is_used_unless_flag_is_given() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "[daemon]\nsocket = \"/cfg/sock\"\ndata_dir = \"~/d\"\n").expect("written");
        let env = |name: &str| (name == "HOME").then(|| "/h".to_string());
        let places = ClientPaths::find(&env, None, Some(file.clone())).expect("places");
        assert_eq!(
            (places.socket.as_path(), places.data_dir.as_path()),
            (Path::new("/cfg/sock"), Path::new("/h/d"))
        );
        let places = ClientPaths::find(&env, Some("/flag".into()), Some(file)).expect("places");
        assert_eq!(places.socket, Path::new("/flag"));
        let file = dir.path().join("c.toml").display().to_string();
        assert_eq!(places.flags, ["--socket", "/flag", "--config", &file]);
    }

    #[test]
    fn home_folder_is_shown_as_tilde() {
        let check = |path, expected: &str| assert_eq!(short(path, Some("/home/a")), expected);
        check("/home/a", "~");
        check("/home/a/src", "~/src");
        check("/home/ab", "/home/ab");
    }
}
