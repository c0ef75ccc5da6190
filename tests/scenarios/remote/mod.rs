//! A daemon on another machine: `agentctl -H ssh://…`. A script takes the part of ssh: it notes its arguments and its
//! environment, and runs the remote command on this machine. `sshd.rs` uses a real server.

mod connection;
mod hosts;
mod sshd;

use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::Command;

use super::agentctl::{CliOutput, command, ended};
use crate::support::daemon::TestDaemon;

/// An address that only the script understands.
pub(super) const HOST: &str = "ssh://ann@build.example.com:2222";

/// The script in place of ssh.
pub(super) struct FakeSsh<'a> {
    daemon: &'a TestDaemon,
    folder: PathBuf,
}

impl<'a> FakeSsh<'a> {
    pub(super) fn install(daemon: &'a TestDaemon) -> Self {
        Self::with(daemon, "")
    }

    /// With shell text that runs before the remote command.
    pub(super) fn with(daemon: &'a TestDaemon, before: &str) -> Self {
        let folder = daemon.path("ssh");
        std::fs::create_dir(&folder).expect("made");
        let programs = Path::new(env!("CARGO_BIN_EXE_agentctl")).parent().expect("a folder");
        let script = format!(
            "#!/bin/bash\nhere={here}\necho $$ >> $here/pids\nprintf '%s\\n' \"$*\" >> $here/arguments\n\
             env >> $here/environment\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\n{before}\n\
             PATH={programs}:$PATH\nexec $*\n",
            here = folder.display(),
            programs = programs.display(),
        );
        write_program(&folder.join("program"), &script);
        Self { daemon, folder }
    }

    /// `agentctl`, which uses the script.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(self.daemon, args);
        command.env("AGENTD_SSH", self.folder.join("program"));
        command
    }

    /// Runs `agentctl` until it exits.
    pub(super) async fn ctl(&self, args: &[&str]) -> CliOutput {
        ended(self.daemon, self.command(args).spawn().expect("agentctl starts")).await
    }

    fn noted(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    /// The arguments of each call, one line for each.
    pub(super) fn arguments(&self) -> String {
        self.noted("arguments")
    }

    /// The environment of all calls.
    pub(super) fn environment(&self) -> String {
        self.noted("environment")
    }

    /// Breaks all connections that are open, and returns how many there were.
    pub(super) fn cut(&self) -> usize {
        let pids: Vec<i32> = self.noted("pids").lines().filter_map(|line| line.parse().ok()).collect();
        std::fs::remove_file(self.folder.join("pids")).expect("there were connections");
        pids.into_iter().filter(|pid| kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok()).count()
    }
}

/// Writes a program in a process of its own. A child of another test could otherwise hold the file open for writing, and
/// the kernel would refuse to run it.
pub(super) fn write_program(file: &Path, text: &str) {
    let mut shell = std::process::Command::new("/bin/sh");
    let status =
        shell.args(["-c", "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"", "sh", text]).arg(file).status();
    assert!(status.expect("sh runs").success());
}
