//! A program that runs longer than one call, for example an MCP server.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A program to start. Its environment may hold secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// The program, by path or looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to those of commands.
    pub env: BTreeMap<String, String>,
    /// Its folder.
    pub cwd: PathBuf,
    /// The workspace, which its sandbox may write.
    pub workspace: PathBuf,
    /// Whether it runs in the sandbox of commands.
    pub sandbox: bool,
    /// Whether that is the sandbox of unattended sessions.
    pub unattended: bool,
}
