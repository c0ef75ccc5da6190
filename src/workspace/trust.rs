//! What a folder holds that is not used until its user trusts it (S22). Only looked for, never read.

use std::path::{Path, PathBuf};

/// Things in a workspace that would run, or change what may run.
const PARTS: [&str; 9] = [
    ".agentd/config.toml",
    ".agentd/hooks",
    ".agentd/agents",
    ".agentd/commands",
    ".agentd/skills",
    ".mcp.json",
    ".mcprc",
    ".claude",
    ".kode",
];

/// The nearest folder at or above `cwd` that holds `.git`. Git itself is not run.
pub(super) fn repository_root(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_path_buf)
}

/// What is left out until the folder is trusted.
pub(super) fn withheld(cwd: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        PARTS.iter().filter(|part| cwd.join(part).exists()).map(|part| (*part).to_string()).collect();
    if repository_root(cwd).is_some() {
        parts.push("git facts (branch, status, last commits)".into());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        assert!(withheld(dir.path()).is_empty());
        std::fs::write(dir.path().join(".mcp.json"), "{}").expect("written");
        assert_eq!(withheld(dir.path()), [".mcp.json"]);
    }
}
