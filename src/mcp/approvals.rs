//! Digests of the tools that ran with permission. A tool whose description or schema differs from its digest needs
//! a new permission, even if a rule allows it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::added::write_private;
use base::sync::lock;

/// Maximum number of digests. Beyond this number, the daemon records no new tool and does not notice its changes.
const MAX_ENTRIES: usize = 20_000;

/// Digests by workspace and tool, in one file. Without a file they exist as long as the daemon runs.
#[derive(Default)]
pub struct Approvals {
    path: Option<PathBuf>,
    known: Mutex<Option<DigestsByServer>>,
}

/// Workspace → tool → digest.
type DigestsByServer = BTreeMap<String, BTreeMap<String, String>>;

impl Approvals {
    /// The digests of this file. It is read at the first use.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path), known: Mutex::default() }
    }

    /// Whether the tool ran before with another digest. Blocks on the disk at the first call.
    #[must_use]
    pub fn has_changed(&self, workspace: &Path, tool: &str, digest: &str) -> bool {
        let mut known = lock(&self.known);
        let known = self.load(&mut known);
        let recorded = known.get(&*workspace.to_string_lossy()).and_then(|tools| tools.get(tool));
        recorded.is_some_and(|recorded| recorded != digest)
    }

    /// Records that the tool runs with permission. Blocks on the disk if the digest is new.
    ///
    /// # Errors
    /// The file could not be written. The digest is known until the daemon ends.
    pub fn record(&self, workspace: &Path, tool: &str, digest: &str) -> io::Result<()> {
        let mut guard = lock(&self.known);
        let known = self.load(&mut guard);
        let workspace = workspace.to_string_lossy().into_owned();
        if known.get(&workspace).and_then(|tools| tools.get(tool)).is_some_and(|recorded| recorded == digest)
        {
            return Ok(());
        }
        if known.values().map(BTreeMap::len).sum::<usize>() >= MAX_ENTRIES {
            return Err(io::Error::other("too many tools are recorded"));
        }
        known.entry(workspace).or_default().insert(tool.to_owned(), digest.to_owned());
        let Some(path) = &self.path else { return Ok(()) };
        write_private(path, &serde_json::to_vec(known).map_err(io::Error::other)?)
    }

    fn load<'k>(&self, known: &'k mut Option<DigestsByServer>) -> &'k mut DigestsByServer {
        known.get_or_insert_with(|| {
            let text = self.path.as_ref().and_then(|path| fs::read(path).ok());
            let read = text.map(|text| serde_json::from_slice(&text));
            match read {
                Some(Ok(known)) => known,
                Some(Err(error)) => {
                    tracing::warn!(%error, "the record of approved MCP tools is damaged and begins again");
                    DigestsByServer::default()
                }
                None => DigestsByServer::default(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_tool_is_noticed_after_restart() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("approved.json");
        let workspace = Path::new("/w");
        let approvals = Approvals::at(path.clone());
        assert!(!approvals.has_changed(workspace, "mcp__a__b", "1"), "never seen");
        approvals.record(workspace, "mcp__a__b", "1").expect("written");
        let later = Approvals::at(path);
        assert!(!later.has_changed(workspace, "mcp__a__b", "1"));
        assert!(later.has_changed(workspace, "mcp__a__b", "2"));
        assert!(!later.has_changed(Path::new("/other"), "mcp__a__b", "2"), "another workspace");
        later.record(workspace, "mcp__a__b", "2").expect("written");
        assert!(!later.has_changed(workspace, "mcp__a__b", "2"));
    }
}
