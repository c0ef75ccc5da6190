//! The interface for starting a server's process. The daemon implements it with the environment rules and the sandbox
//! of tools.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::ServerSource;
use types::server_program::ServerProgram;

/// A started process with its streams.
pub struct LaunchedProcess {
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
    fn launch(&self, program: ServerProgram) -> BoxFuture<'static, Result<LaunchedProcess, String>>;
}
