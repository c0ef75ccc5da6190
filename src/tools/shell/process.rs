//! Starts a shell with its own session, no terminal, no input, and a pipe on which it reports its last folder.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::fcntl::OFlag;

use super::limits::Rlimit;
use super::sandbox::{CommandSandbox, raise};
use tokio::process::ChildStdout;
use tokio::sync::{mpsc, oneshot};

use crate::error::ToolError;
use crate::shell::cgroup::CallCgroup;
use base::proc;
use types::tool::ProcessRecord;

/// Parameters of a start.
pub(super) struct ShellLaunch<'a> {
    pub(super) command: &'a str,
    pub(super) cwd: &'a Path,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) limits: Vec<Rlimit>,
    pub(super) cgroup: Option<&'a CallCgroup>,
    pub(super) confined: &'a CommandSandbox,
}

pub(super) struct RunningShell {
    pub(super) child: proc::Child,
    pub(super) pid: i32,
    /// Start time in clock ticks since boot.
    pub(super) started: u64,
    /// The reading end of the pipe for its report.
    report: File,
}

/// Starts a command and returns the pipe of its output and errors. Dropping the shell kills the shell only, not its children: the caller holds a `ProcessTree` for
/// those.
///
/// Blocks this thread until the child has executed the program. The child must die with the thread that forked
/// it (see `CommandSandbox::enforce_in`), and a thread of the blocking pool may end by itself.
pub(super) fn start(launch: ShellLaunch<'_>) -> io::Result<(RunningShell, ChildStdout)> {
    // Neither end blocks, because neither the shell's exit nor the daemon's read may wait.
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let channel = raise(&write)?;
    let number = channel.as_raw_fd();
    let program = shell_program();
    let script = script(launch.command, number, program.ends_with("bash"));

    let mut shell = launch.confined.command(program);
    shell
        .arg("-c")
        .arg(script)
        .env_clear()
        .envs(launch.environment)
        .current_dir(launch.cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let (reader, writer) = io::pipe()?;
    let output = ChildStdout::from_std(OwnedFd::from(reader).into())?;
    let child = launch.confined.spawn(shell, launch.limits, launch.cgroup, number, writer)?;
    let pid = child.id().ok_or_else(|| io::Error::other("no process id"))?;
    // The child was not awaited yet, so its process id is in use.
    let started = child.start_time()?;
    Ok((RunningShell { child, pid, started, report: File::from(read) }, output))
}

/// Prefixes the command with a trap that reports the running jobs and the last folder. The trap keeps the exit
/// status. If the command sets its own trap or replaces the shell, both stay unknown. The jobs are necessary in a
/// process namespace: it ends with the shell, and what ran in it cannot be seen from outside.
fn script(command: &str, channel: RawFd, is_bash: bool) -> String {
    // Other shells support no descriptors above 9.
    let (jobs, to) = if is_bash { ("command jobs -rp; ", ">&") } else { ("", ">/dev/fd/") };
    format!(
        "trap '{{ set +x; {{ {jobs}command pwd -P; }} {to}{channel} || :; }} 2>/dev/null' EXIT\n{command}"
    )
}

fn shell_program() -> &'static str {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("/bin/sh")
}

impl RunningShell {
    /// What the shell reported. Call it after the shell's exit.
    pub(super) fn report(&mut self) -> ShellReport {
        let mut bytes = [0; 8192];
        // The pipe does not block; the report was written before the shell exited.
        let n = self.report.read(&mut bytes).unwrap_or(0);
        ShellReport::parse(&bytes[..n])
    }
}

/// What a shell reports when it ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellReport {
    /// The folder in which it ended.
    pub(super) folder: Option<PathBuf>,
    /// Number of background jobs that still ran.
    pub(super) jobs: usize,
}

impl ShellReport {
    /// Parses lines with process ids and the folder, whose name may contain any bytes.
    fn parse(bytes: &[u8]) -> Self {
        use std::os::unix::ffi::OsStringExt as _;
        let (jobs, folder) =
            bytes.split_at(bytes.iter().position(|byte| *byte == b'/').unwrap_or(bytes.len()));
        let folder = folder.strip_suffix(b"\n").filter(|path| !path.is_empty());
        Self {
            folder: folder.map(|path| PathBuf::from(OsString::from_vec(path.to_vec()))),
            jobs: jobs.iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

/// A started process. None of its output is read before the session answers `stored`. On an error, or without
/// an answer, the process is killed and its call fails.
#[derive(Debug)]
pub struct ProcessStarted {
    /// Identity of the process.
    pub record: Box<ProcessRecord>,
    /// Answer it when the record is committed; the error says why it is not.
    pub stored: oneshot::Sender<Result<(), String>>,
}

/// Waits until the session has stored a record.
pub(super) async fn register(
    process_starts: &mpsc::Sender<ProcessStarted>,
    record: ProcessRecord,
) -> Result<(), ToolError> {
    let (stored, answer) = oneshot::channel();
    let lost = || Err("the session is gone".to_owned());
    let result = match process_starts.send(ProcessStarted { record: Box::new(record), stored }).await {
        Ok(()) => answer.await.unwrap_or_else(|_| lost()),
        Err(_) => lost(),
    };
    result.map_err(|why| {
        ToolError::new(
            "storage_failed",
            format!("the command was stopped at its start, since it could not be recorded: could not {why}"),
        )
    })
}
