//! Connections to a daemon on another machine. `ssh` runs `agentctl daemon dial-stdio` there, which passes bytes on
//! between its standard input and output and the daemon's socket. So the daemon sees a process of the remote user, and
//! decides the role of this client as that of any other.
//!
//! - `address`: the machine, as the user writes it.
//! - `command`: the command line and the environment of ssh.
//! - `process`: a running ssh, and the reason why it ended.

mod address;
mod command;
mod process;

pub use address::SshHost;
pub(crate) use command::{DaemonStart, Prompts, SshRoute};
pub(crate) use process::SshProcess;
pub use process::{RemoteFailure, RemoteProblem};
