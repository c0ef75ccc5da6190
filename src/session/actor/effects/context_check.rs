//! Compares the files that the model has read, and the project instructions, with the disk when a turn begins.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::actor::effects::EffectRunner;
use crate::mcp::{ServerFiles, SessionServers};
use crate::shared::Shared;
use engine::Input;
use project::workspace;
use types::hex;
use types::ids::TurnId;
use types::reminder::FileVersion;
use types::tool::ReadRecord;

/// Maximum number of files that are compared.
const MAX_FILES: usize = 500;
/// Largest file whose content is compared, in bytes. The version of a larger one is its size and time.
const MAX_HASHED_BYTES: u64 = 8 << 20;

/// The files to compare.
pub(crate) struct ContextFiles {
    pub reads: Arc<HashMap<PathBuf, ReadRecord>>,
    pub shared: Arc<Shared>,
    pub cwd: PathBuf,
    pub additional: Vec<PathBuf>,
    pub user_dir: Option<PathBuf>,
}

/// A running comparison with the disk. The comparison changes nothing, so it may begin before its turn
/// is in the journal. Dropping this value does not stop the comparison.
pub(crate) struct PendingContextCheck {
    turn_id: TurnId,
    servers: Arc<SessionServers>,
    /// Whether earlier turns of the session had tools of MCP servers.
    had_mcp: bool,
    server_files: oneshot::Receiver<ServerFiles>,
    /// The changed files, and the versions of the project instructions.
    compared: JoinHandle<(Vec<FileVersion>, Vec<FileVersion>)>,
}

impl PendingContextCheck {
    pub fn start(
        turn_id: TurnId,
        (servers, had_mcp): (Arc<SessionServers>, bool),
        files: ContextFiles,
    ) -> Self {
        let (server_files, compared) = servers.read_files_then(move || {
            let ContextFiles { reads, shared, cwd, additional, user_dir } = files;
            let instructions = workspace::instruction_versions(
                &shared.project_folders(&cwd),
                &additional,
                user_dir.as_deref(),
            );
            (changed_files(&reads), instructions)
        });
        Self { turn_id, servers, had_mcp, server_files, compared }
    }
}

impl EffectRunner {
    /// Starts the session's MCP servers and reports the result of a check.
    pub fn report_context_check(&mut self, check: PendingContextCheck) {
        let report = self.report.clone();
        let PendingContextCheck { turn_id, servers, had_mcp, server_files, compared } = check;
        self.start(async move {
            let (compared, found) = tokio::join!(compared, servers.for_turn(had_mcp, server_files));
            if let Some(found) = found {
                // The session handles this report before the end of this effect.
                report.send(Box::new(found)).await.ok()?;
            }
            let (changed_files, instructions) = compared.ok().unzip();
            let changed_files = changed_files.unwrap_or_default();
            Some(Input::ContextChecked { turn_id, changed_files, instructions })
        });
    }
}

/// The current versions of the files that differ from the read versions, in the order of their paths.
fn changed_files(reads: &HashMap<PathBuf, ReadRecord>) -> Vec<FileVersion> {
    let mut records: Vec<&ReadRecord> = reads.values().collect();
    records.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let changed = records.into_iter().take(MAX_FILES).filter_map(|record| {
        let digest = version(&record.path, record)?;
        (digest != record.sha256).then(|| FileVersion { path: record.path.clone(), digest })
    });
    changed.collect()
}

/// The current version of a file; empty if the file does not exist. `None` if the file is certainly
/// unchanged since the read.
fn version(path: &Path, record: &ReadRecord) -> Option<String> {
    let Ok(meta) = fs::symlink_metadata(path) else { return Some(String::new()) };
    let mtime_ns = meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec());
    if meta.len() == record.size && mtime_ns == record.mtime_ns {
        return None;
    }
    let by_size = || format!("{} bytes at {mtime_ns}", meta.len());
    if !meta.is_file() || meta.len() > MAX_HASHED_BYTES {
        return Some(by_size());
    }
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let mut bytes = Vec::new();
    let read = File::options().read(true).custom_flags(flags).open(path);
    match read.and_then(|file| file.take(MAX_HASHED_BYTES).read_to_end(&mut bytes)) {
        Ok(_) => Some(hex::encode(&Sha256::digest(&bytes))),
        Err(_) => Some(by_size()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_with_other_content_count_as_changed() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = |name: &str| dir.path().join(name);
        let record = |name: &str, text: &str| {
            let record = ReadRecord {
                path: path(name),
                mtime_ns: 0,
                size: text.len() as u64,
                sha256: hex::encode(&Sha256::digest(text)),
                whole: true,
                lines: Vec::new(),
                total_lines: None,
            };
            (path(name), record)
        };
        for (name, text) in [("same", "one"), ("other", "two")] {
            fs::write(path(name), text).expect("written");
        }
        let reads = HashMap::from([record("same", "one"), record("other", "one"), record("gone", "one")]);
        let changed = changed_files(&reads);
        let names: Vec<_> = changed.iter().map(|it| (it.path.clone(), it.digest.is_empty())).collect();
        assert_eq!(names, [(path("gone"), true), (path("other"), false)]);
    }
}
