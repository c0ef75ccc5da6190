//! A program that runs longer than one call, for example an MCP server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::session_environment::SessionEnvironment;

/// A program to start. Its environment may hold secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// The program, by path or looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What a client sent for the session that uses it; `None` for the daemon's environment.
    pub session_environment: Option<SessionEnvironment>,
    /// Environment variables in addition to those that commands get.
    pub env: BTreeMap<String, String>,
    /// The folder in which it starts.
    pub cwd: PathBuf,
    /// The workspace, to which its sandbox permits writing.
    pub workspace: PathBuf,
    /// Whether it runs in the sandbox of commands.
    pub sandbox: bool,
    /// Whether the sandbox is the one of unattended sessions.
    pub unattended: bool,
}
