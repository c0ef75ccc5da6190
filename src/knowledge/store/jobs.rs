//! Jobs that a stopped daemon left.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::writer::{meta, meta_value};
use crate::types::KnowledgeError;

/// Maximum number of index files that a start reads.
const MAX_FILES: usize = 1000;

/// Workspaces with unfinished jobs and the stored requests, from all index files of a folder. Files that cannot be
/// read are left out. Blocking.
#[must_use]
pub fn unfinished_jobs(folder: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "db"))
        .collect();
    files.sort();
    files.into_iter().take(MAX_FILES).flat_map(|file| unfinished(&file).unwrap_or_default()).collect()
}

fn unfinished(file: &Path) -> Result<Vec<(PathBuf, String)>, KnowledgeError> {
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let Some(workspace) = meta_value(&connection, meta::WORKSPACE)? else { return Ok(Vec::new()) };
    let mut statement =
        connection.prepare("select request from kn_job where state = 'running' order by created_ms, id")?;
    let requests = statement.query_map([], |row| row.get::<_, String>(0))?;
    Ok(requests
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .map(|request| (workspace.clone().into(), request))
        .collect())
}
