//! The variables that clients sent for the commands of sessions: a file for each session in the data folder, readable
//! by the user alone, so that a restart keeps them. No event, export or log contains their values.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base::sync::lock;
use tools::EnvironmentSource;
use types::ids::SessionId;
use types::session_environment::SessionEnvironment;

/// Sessions whose variables are kept in memory.
const CACHE_CAPACITY: usize = 256;

/// The variables of all sessions.
#[derive(Debug, Default)]
pub struct SessionEnvironments {
    folder: Option<PathBuf>,
    /// Values that were read or written. `None` for sessions without a file.
    cache: Mutex<HashMap<SessionId, Option<SessionEnvironment>>>,
}

impl SessionEnvironments {
    /// Stores the files in this folder.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder: Some(folder), cache: Mutex::default() }
    }

    fn path(&self, id: SessionId) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{id}.json")))
    }

    /// The variables of a session; `None` if no client sent any. Blocks on the disk at the first use.
    pub(crate) fn get(&self, id: SessionId) -> Option<SessionEnvironment> {
        if let Some(known) = lock(&self.cache).get(&id) {
            return known.clone();
        }
        let stored = self.path(id).and_then(|path| read(&path));
        self.remember(id, stored.clone());
        stored
    }

    /// Stores the variables of a session, synced. Blocks on the disk.
    pub(crate) fn save(&self, id: SessionId, environment: &SessionEnvironment) -> io::Result<()> {
        if let Some(path) = self.path(id) {
            write(&path, environment)?;
        }
        self.remember(id, Some(environment.clone()));
        Ok(())
    }

    /// Removes the variables of a deleted session. Blocks on the disk.
    pub(crate) fn remove(&self, id: SessionId) {
        lock(&self.cache).remove(&id);
        let Some(path) = self.path(id) else { return };
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, path = %path.display(), "the variables of a deleted session stay");
        }
    }

    fn remember(&self, id: SessionId, environment: Option<SessionEnvironment>) {
        let mut cache = lock(&self.cache);
        // Without a folder, only the memory holds the variables.
        if cache.len() >= CACHE_CAPACITY && self.folder.is_some() {
            cache.clear();
        }
        cache.insert(id, environment);
    }
}

/// The variables of one session: its own, or those of the session that started it as a sub-agent.
#[derive(Debug)]
pub(crate) struct EnvironmentOfSession {
    pub(crate) all: Arc<SessionEnvironments>,
    pub(crate) id: SessionId,
    /// The first session above it; the session itself if it is no sub-agent.
    pub(crate) root: SessionId,
}

impl EnvironmentSource for EnvironmentOfSession {
    fn variables(&self) -> Option<SessionEnvironment> {
        self.all.get(self.id).or_else(|| self.all.get(self.root))
    }
}

fn read(path: &Path) -> Option<SessionEnvironment> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "could not read the variables of a session");
            return None;
        }
    };
    // The error of the parser could contain a value.
    let parsed = serde_json::from_slice(&bytes).ok();
    if parsed.is_none() {
        tracing::warn!(path = %path.display(), "the file with the variables of a session is damaged; they are not used");
    }
    parsed
}

/// Writes a new file and renames it, so that no reader sees half of it.
fn write(path: &Path, environment: &SessionEnvironment) -> io::Result<()> {
    let bytes = serde_json::to_vec(environment).map_err(io::Error::other)?;
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use types::ids::{Mint, Seed};

    fn environment(path: &str) -> SessionEnvironment {
        SessionEnvironment([("PATH".to_owned(), path.to_owned())].into())
    }

    #[test]
    fn variables_survive_restart_and_are_inherited_and_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("session-env");
        let mut mint = Mint::new(1, Seed::random());
        let (root, child) = (mint.session(), mint.session());
        let first = Arc::new(SessionEnvironments::at(folder.clone()));
        assert_eq!(first.get(root), None);
        first.save(root, &environment("/a")).expect("written");
        let file = folder.join(format!("{root}.json"));
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);

        let second = Arc::new(SessionEnvironments::at(folder.clone()));
        assert_eq!(second.get(root), Some(environment("/a")));
        let of = |id| EnvironmentOfSession { all: Arc::clone(&second), id, root }.variables();
        assert_eq!(of(child), Some(environment("/a")), "inherited");
        second.save(root, &environment("/b")).expect("written");
        assert_eq!(of(child), Some(environment("/b")), "updates are inherited, too");
        second.save(child, &environment("/c")).expect("written");
        assert_eq!((of(child), of(root)), (Some(environment("/c")), Some(environment("/b"))));
        second.remove(child);
        second.remove(root);
        assert_eq!((of(child), of(root)), (None, None));
        assert_eq!(fs::read_dir(&folder).expect("there").count(), 0);
    }

    #[test]
    fn damaged_file_of_variables_is_not_used() {
        let dir = tempfile::tempdir().expect("a folder");
        let id = Mint::new(1, Seed::random()).session();
        fs::write(dir.path().join(format!("{id}.json")), "{\"PATH\": 1").expect("written");
        assert_eq!(SessionEnvironments::at(dir.path().to_owned()).get(id), None);
    }
}
