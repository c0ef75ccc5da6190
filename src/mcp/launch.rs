//! How a server's process is started. The daemon implements it with the environment rules and the sandbox of tools.

use std::collections::BTreeMap;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::config::ServerSource;

/// A process to start.
pub struct LaunchRequest {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables in addition to those that every tool gets. They may hold secrets.
    pub env: BTreeMap<String, String>,
    /// Its folder.
    pub cwd: PathBuf,
    /// The workspace, for the sandbox.
    pub workspace: PathBuf,
    /// Whether it runs in the sandbox of commands.
    pub sandbox: bool,
    /// Whether its sandbox is that of unattended sessions.
    pub unattended: bool,
}

/// A started process with its streams.
pub struct Launched {
    /// Its standard input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The process. Dropping it kills all its processes.
    pub process: Box<dyn ServerProcess>,
}

/// A running process.
pub trait ServerProcess: Send {
    /// Waits for its exit and describes it. Cancel-safe.
    fn wait(&mut self) -> BoxFuture<'_, String>;

    /// Ends the process and everything that it started.
    fn end(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// Starts processes of servers.
pub trait Launcher: Send + Sync {
    /// A variable of the daemon's environment, for a configuration of this source. The error says why it may not be
    /// used.
    fn variable(&self, name: &str, source: ServerSource) -> Result<Option<String>, String>;

    /// Starts a process. The error is for users.
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'static, Result<Launched, String>>;
}
