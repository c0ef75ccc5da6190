//! Servers that were given for one session: a file for each session in the data folder, readable by the user
//! alone. No event contains these servers, because their values may be secrets.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use crate::added::{read, write_private};
use crate::config::{MAX_SERVERS, ScopedServer, ServerConfig, ServerSource};
use crate::files::parse_file;
use types::ids::SessionId;

#[derive(Default)]
pub struct SessionServerFiles {
    folder: Option<PathBuf>,
}

impl SessionServerFiles {
    /// Stores the files in this folder.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    fn path(&self, session: SessionId) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{session}.json")))
    }

    /// The servers of a session, and a problem of its file. Blocks on the disk.
    #[must_use]
    pub fn list(&self, session: SessionId) -> (Vec<ScopedServer>, Option<String>) {
        let Some(path) = self.path(session) else { return (Vec::new(), None) };
        match read(&path) {
            Ok(None) => (Vec::new(), None),
            Ok(Some(bytes)) => {
                let file = parse_file("the servers of this session", &bytes);
                let of_session = |server| ScopedServer { source: ServerSource::Session, ..server };
                (file.servers.into_iter().map(of_session).collect(), file.problem)
            }
            Err(error) => (Vec::new(), Some(format!("could not read {}: {error}", path.display()))),
        }
    }

    /// Stores the servers of a new session. Blocks on the disk.
    ///
    /// # Errors
    /// There are too many, or the file could not be written; the text is for users.
    pub fn save(&self, session: SessionId, servers: &BTreeMap<String, ServerConfig>) -> Result<(), String> {
        if servers.len() > MAX_SERVERS {
            return Err(format!("more than {MAX_SERVERS} servers"));
        }
        let Some(path) = self.path(session) else { return Err("this daemon has no data folder".into()) };
        let failed = |error: &dyn std::fmt::Display| format!("could not write {}: {error}", path.display());
        let text = serde_json::to_vec(&serde_json::json!({ "mcpServers": servers }));
        let text = text.map_err(|error| failed(&error))?;
        write_private(&path, &text).map_err(|error| failed(&error))
    }

    /// Gives a new session the servers of another one. Blocks on the disk.
    ///
    /// # Errors
    /// The file could not be copied.
    pub fn copy(&self, from: SessionId, to: SessionId) -> io::Result<()> {
        let (Some(from), Some(to)) = (self.path(from), self.path(to)) else { return Ok(()) };
        match read(&from)? {
            Some(bytes) => write_private(&to, &bytes),
            None => Ok(()),
        }
    }

    /// Removes the servers of a deleted session. Blocks on the disk.
    pub fn remove(&self, session: SessionId) {
        let Some(path) = self.path(session) else { return };
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "the MCP servers of a deleted session stay");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use types::ids::{Mint, Seed};

    #[test]
    fn servers_of_session_are_kept_until_it_is_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let files = SessionServerFiles::at(dir.path().join("mcp-sessions"));
        let mut mint = Mint::new(1, Seed::random());
        let (one, other) = (mint.session(), mint.session());
        assert_eq!(files.list(one), (Vec::new(), None));
        let url = ServerConfig { url: Some("http://h/mcp".into()), ..ServerConfig::default() };
        files.save(one, &[("a".to_owned(), url.clone())].into()).expect("written");
        let mode = fs::metadata(files.path(one).expect("a path")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mode = fs::metadata(dir.path().join("mcp-sessions")).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        files.copy(one, other).expect("copied");
        files.remove(one);
        assert_eq!(files.list(one).0, Vec::new());
        let (servers, problem) = files.list(other);
        assert_eq!((&servers[0].source, problem), (&ServerSource::Session, None));
        assert_eq!(servers[0].config, Ok(url));
    }
}
