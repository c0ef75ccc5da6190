//! What differs for a daemon on another machine: paths, variables and files of this machine mean nothing there, and
//! none of them is sent unless the user names it.

use std::path::PathBuf;
use std::time::Duration;

use crate::connection::client::{CallError, Client};
use crate::connection::connector::{Connector, private_dir};
use crate::connection::ssh::{DaemonStart, Prompts, SshHost, SshRoute};
use crate::connection::wire::DaemonAddress;
use crate::failure::Failure;

/// How long to try to reconnect to a daemon on another machine. A laptop may be without a network for a while.
const REMOTE_RECONNECT_TIMEOUT: Duration = Duration::from_secs(120);

/// Where the daemon runs, seen from this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// On this machine: it sees the same files.
    #[default]
    This,
    /// On another one: paths are those of that machine.
    Other,
}

/// The failure of a call that creates a session. A folder of this machine may not exist on that of the daemon.
pub(crate) fn creation_failure(error: CallError, machine: Machine) -> Failure {
    let is_about_folder = matches!(&error, CallError::Fault(fault) if fault.data["path"] == "cwd");
    let failure = Failure::from(error);
    if machine == Machine::This || !is_about_folder {
        return failure;
    }
    let hint = "the daemon is on another machine; name a folder of it with -w DIR";
    Failure::new(failure.code, format!("{}; {hint}", failure.message))
}

impl Connector {
    /// Where the daemon runs.
    #[must_use]
    pub fn machine(&self) -> Machine {
        if self.host.is_some() { Machine::Other } else { Machine::This }
    }

    /// How long to try to reconnect, if `local` is the time for a daemon of this machine.
    pub(crate) fn reconnect_timeout(&self, local: Duration) -> Duration {
        match self.machine() {
            Machine::This => local,
            Machine::Other => local.max(REMOTE_RECONNECT_TIMEOUT),
        }
    }

    /// The file that records what the user has seen about folders of the daemon's machine.
    pub(crate) fn record_file(&self, name: &str) -> PathBuf {
        let folder = &self.places.data_dir;
        match &self.host {
            None => folder.join(name),
            Some(host) => {
                // No daemon may have run on this machine. If the folder cannot be made, nothing is recorded.
                let _ = private_dir(folder);
                folder.join(format!("{name}@{}", host.file_name()))
            }
        }
    }

    /// Connects over ssh.
    pub(crate) async fn dial_over_ssh(
        &self,
        host: &SshHost,
        start: DaemonStart,
        prompts: Prompts,
    ) -> Result<Client, CallError> {
        let control_dir = self.places.runtime_dir();
        // Without the folder, ssh does not share connections.
        let _ = private_dir(&control_dir);
        let route = SshRoute { host: host.clone(), start, prompts, control_dir };
        Client::connect_to(&DaemonAddress::Ssh(Box::new(route)), &self.name, self.role).await
    }

    /// Connects over ssh for a command that begins. ssh may ask the user, if there is a terminal.
    pub(crate) async fn connect_over_ssh(
        &self,
        host: &SshHost,
        start: DaemonStart,
    ) -> Result<Client, Failure> {
        let start = if self.may_start { start } else { DaemonStart::Forbidden };
        Ok(self.dial_over_ssh(host, start, self.prompts()).await?)
    }

    /// Whether ssh may ask. A program that calls `agentctl` cannot answer, so ssh must fail instead of waiting. Later
    /// connections never ask, because a screen may use the terminal.
    pub(crate) fn prompts(&self) -> Prompts {
        use std::io::IsTerminal as _;
        match std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
            true => Prompts::Allowed,
            false => Prompts::Never,
        }
    }
}
