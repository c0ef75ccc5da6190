//! Servers that were added over RPC: a file of the data folder for the user, and `.mcp.json` for a project.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Map, Value};

use crate::config::{ScopedServer, ServerConfig, ServerSource};
use crate::files::parse_file;
use base::sync::lock;
use types::mcp_file::SERVER_KEYS;

pub(super) const PROJECT_FILE: &str = ".mcp.json";
/// Maximum size of such a file in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The reason why a server was not added or removed.
#[derive(Debug)]
pub enum AddedError {
    /// There is such a server already.
    Exists,
    /// There is no such server.
    Missing,
    /// The file cannot be read or written; the text is for users.
    File(String),
}

/// The servers that were added for the user.
#[derive(Default)]
pub struct AddedServers {
    path: Option<PathBuf>,
    /// Held while a file changes, also a project file, so that two changes do not overwrite each other.
    change: Mutex<()>,
}

impl AddedServers {
    /// Stores the servers in this file.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path), change: Mutex::default() }
    }

    /// All servers. Blocks on the disk. A damaged file has none, and its problem is returned.
    #[must_use]
    pub fn list(&self) -> (Vec<ScopedServer>, Option<String>) {
        let Some(path) = &self.path else { return (Vec::new(), None) };
        match read(path) {
            Ok(None) => (Vec::new(), None),
            Ok(Some(bytes)) => {
                let file = parse_file(&path.display().to_string(), &bytes);
                let of_user = |server| ScopedServer { source: ServerSource::Added, ..server };
                (file.servers.into_iter().map(of_user).collect(), file.problem)
            }
            Err(error) => (Vec::new(), Some(format!("could not read {}: {error}", path.display()))),
        }
    }

    /// Adds a server for the user, or for the project in `project`. Blocks on the disk.
    ///
    /// # Errors
    /// The name is taken, or the file could not be changed.
    pub fn add(&self, project: Option<&Path>, name: &str, config: &ServerConfig) -> Result<(), AddedError> {
        self.edit(project, |servers| {
            if servers.contains_key(name) {
                return Err(AddedError::Exists);
            }
            let mut value = serde_json::to_value(config).unwrap_or_default();
            if let Some(entry) = value.as_object_mut() {
                // Other programs name the transport `type`.
                if let Ok(kind) = config.transport() {
                    entry.remove("transport");
                    entry.insert("type".into(), kind.name().into());
                }
            }
            servers.insert(name.to_owned(), value);
            Ok(())
        })
    }

    /// Removes a server. Blocks on the disk.
    ///
    /// # Errors
    /// There is no such server, or the file could not be changed.
    pub fn remove(&self, project: Option<&Path>, name: &str) -> Result<(), AddedError> {
        self.edit(project, |servers| servers.remove(name).map(|_| ()).ok_or(AddedError::Missing))
    }

    fn edit(
        &self,
        project: Option<&Path>,
        change: impl FnOnce(&mut Map<String, Value>) -> Result<(), AddedError>,
    ) -> Result<(), AddedError> {
        let path = match (project, &self.path) {
            (Some(folder), _) => folder.join(PROJECT_FILE),
            (None, Some(path)) => path.clone(),
            (None, None) => return Err(AddedError::File("this daemon has no data folder".into())),
        };
        let _alone = lock(&self.change);
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            AddedError::File(format!("could not {what} {}: {error}", path.display()))
        };
        let bytes = read(&path).map_err(|error| failed("read", &error))?;
        let mut top = match &bytes {
            Some(bytes) if !bytes.trim_ascii().is_empty() => {
                serde_json::from_slice::<Map<String, Value>>(bytes).map_err(|error| failed("read", &error))?
            }
            _ => Map::new(),
        };
        let key = SERVER_KEYS.into_iter().find(|key| top.contains_key(*key));
        match key {
            None if !top.is_empty() => change(&mut top)?,
            key => {
                let key = key.unwrap_or(SERVER_KEYS[0]);
                let servers = top.entry(key).or_insert_with(|| Value::Object(Map::new()));
                let Some(servers) = servers.as_object_mut() else {
                    return Err(failed("read", &format!("`{key}` must be an object")));
                };
                change(servers)?;
            }
        }
        let mut text = serde_json::to_vec_pretty(&top).map_err(|error| failed("write", &error))?;
        text.push(b'\n');
        let written = match project {
            Some(_) => write_shared(&path, &text),
            None => write_private(&path, &text),
        };
        written.map_err(|error| failed("write", &error))
    }
}

/// Reads a regular file without following a link; `None` if it does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !meta.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
    }
    fs::read(path).map(Some)
}

/// Replaces a file that only the user may read, in a folder that only the user may enter if it is new.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    replace(path, bytes, 0o600)
}

fn write_shared(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mode = fs::metadata(path).map_or(0o644, |meta| meta.permissions().mode() & 0o777);
    replace(path, bytes, mode)
}

/// Writes a new file and renames it, so that no reader sees half of it.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
    }
    // A random name that must not exist: a link at a name that can be guessed would lead the write elsewhere.
    let mut file = tempfile::Builder::new()
        .prefix(".agentd-")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(command: &str) -> ServerConfig {
        ServerConfig { command: Some(command.into()), ..ServerConfig::default() }
    }

    #[test]
    fn added_servers_are_listed_until_they_are_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let added = AddedServers::at(dir.path().join("mcp.json"));
        assert_eq!(added.list(), (Vec::new(), None));
        added.add(None, "a", &config("x")).expect("added");
        assert!(matches!(added.add(None, "a", &config("y")), Err(AddedError::Exists)));
        let (servers, problem) = added.list();
        assert_eq!(problem, None);
        assert_eq!(servers[0].config.as_ref().expect("right").command.as_deref(), Some("x"));
        let mode = fs::metadata(dir.path().join("mcp.json")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        added.remove(None, "a").expect("removed");
        assert!(matches!(added.remove(None, "a"), Err(AddedError::Missing)));
    }

    #[test]
    fn planted_link_does_not_lead_write_elsewhere() {
        let dir = tempfile::tempdir().expect("a folder");
        let victim = dir.path().join("victim");
        fs::write(&victim, "kept").expect("written");
        for name in [format!("..mcp.json.{}", std::process::id()), ".mcp.json.new".into()] {
            std::os::unix::fs::symlink(&victim, dir.path().join(name)).expect("a link");
        }
        AddedServers::default().add(Some(dir.path()), "a", &config("x")).expect("added");
        assert_eq!(fs::read_to_string(&victim).expect("there"), "kept");
        assert!(dir.path().join(".mcp.json").symlink_metadata().expect("there").is_file());
    }

    #[test]
    fn project_file_keeps_other_entries_when_server_is_added() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join(".mcp.json");
        fs::write(&file, r#"{"other": 1, "mcpServers": {"b": {"command": "y"}}}"#).expect("written");
        AddedServers::default().add(Some(dir.path()), "a", &config("x")).expect("added");
        let text: Value = serde_json::from_slice(&fs::read(&file).expect("there")).expect("JSON");
        assert_eq!(text["other"], 1);
        assert_eq!(text["mcpServers"]["b"]["command"], "y");
        assert_eq!(text["mcpServers"]["a"]["type"], "stdio");
        fs::write(&file, r#"{"servers": {"b": {"command": "y"}}}"#).expect("written");
        AddedServers::default().add(Some(dir.path()), "a", &config("x")).expect("added");
        let text: Value = serde_json::from_slice(&fs::read(&file).expect("there")).expect("JSON");
        assert_eq!(text["servers"]["a"]["command"], "x", "the form of the file stays");
    }
}
