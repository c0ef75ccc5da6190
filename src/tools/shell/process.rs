//! Starting a shell: its own session, no terminal, no input, and a side channel on which it
//! tells the folder it ends in.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::resource::setrlimit;
use tokio::process::{Child, Command};

use super::cell::Cell;
use super::limits::Rlimit;
use crate::proc;

/// The side channel gets a number above those that scripts and the shell itself use.
const LOWEST_CHANNEL: RawFd = 300;
/// The same under a limit of fewer descriptors.
const LOW_CHANNEL: RawFd = 20;
/// How much likelier than others the kernel picks commands when memory runs out, of 1000, proc(5).
const OOM_SCORE: &str = "500";

/// What a shell is started with.
pub(super) struct Launch<'a> {
    pub(super) command: &'a str,
    pub(super) cwd: &'a Path,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) limits: Vec<Rlimit>,
    pub(super) cell: Option<&'a Cell>,
}

/// A running shell.
pub(super) struct Shell {
    pub(super) child: Child,
    pub(super) pid: i32,
    /// When it started, in clock ticks since boot.
    pub(super) started: u64,
    /// The reading end of the side channel.
    folder: File,
}

/// Starts a command. Dropping the result kills the shell only, not its children: the caller holds a
/// `Tree` for those.
pub(super) fn start(launch: Launch<'_>) -> io::Result<Shell> {
    // Neither end blocks: the shell's last words must not, nor our reading of them.
    let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    let channel = raise(&write)?;
    let number = channel.as_raw_fd();
    let script = script(launch.command, number);
    let entrance = launch.cell.map(|cell| cell.entrance().as_raw_fd());
    let limits = launch.limits;

    let mut shell = Command::new(shell_program());
    shell
        .arg("-c")
        .arg(script)
        .env_clear()
        .envs(launch.environment)
        .current_dir(launch.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the shell")]
    // SAFETY: between fork and exec only async-signal-safe calls are made (setsid, write, setrlimit,
    // close_range, fcntl), nothing is allocated and no lock is taken. `number` and `entrance` are
    // open in the child: they are copies of our descriptors, which outlive `spawn`.
    unsafe {
        shell.pre_exec(move || {
            // Its own session: no terminal can be opened, and the group can be killed whole.
            nix::unistd::setsid()?;
            if let Some(entrance) = entrance {
                // Before there is anything that could start processes. Where it fails, the tree
                // is found by its other signs.
                let _ = libc::write(entrance, c"0".as_ptr().cast(), 1);
            }
            for (resource, soft, hard) in &limits {
                setrlimit(*resource, *soft, *hard)?;
            }
            // Whatever the daemon itself was started with, or opened carelessly, ends here. On
            // kernels without this call only what is already marked is closed.
            let _ = libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if libc::fcntl(number, libc::F_SETFD, 0) == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
    let child = proc::spawn(&mut shell)?;
    let pid = child
        .id()
        .and_then(|pid| i32::try_from(pid).ok())
        .ok_or_else(|| io::Error::other("no process id"))?;
    // Not waited for yet, so it is there, dead or alive.
    let started = proc::one(pid)?.started;
    // When the machine is out of memory, rather this than the daemon; best effort.
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), OOM_SCORE);
    Ok(Shell { child, pid, started, folder: File::from(read) })
}

/// A copy of a descriptor with a high number, closed on exec.
fn raise(fd: &OwnedFd) -> io::Result<OwnedFd> {
    // Where so few descriptors are allowed, any number will do.
    let copy = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(LOWEST_CHANNEL))
        .or_else(|_| fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(LOW_CHANNEL)))?;
    #[expect(unsafe_code, reason = "fcntl gives a bare number")]
    // SAFETY: the call succeeded, so the number is a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// The command behind a trap that reports the last folder. The trap keeps the exit status; a
/// command that sets its own, or replaces the shell, simply is not followed.
fn script(command: &str, channel: RawFd) -> String {
    format!("trap '{{ set +x; }} 2>/dev/null; command pwd -P 2>/dev/null >/dev/fd/{channel}' EXIT\n{command}")
}

fn shell_program() -> &'static str {
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"]
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap_or("/bin/sh")
}

impl Shell {
    /// The folder the shell ended in, if it said so. Call it after the shell's exit.
    pub(super) fn last_folder(&mut self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut bytes = [0; 8192];
        // The pipe does not block; the report was written before the shell exited.
        let n = self.folder.read(&mut bytes).ok()?;
        let line = bytes[..n].strip_suffix(b"\n")?;
        Some(PathBuf::from(OsString::from_vec(line.to_vec()))).filter(|path| path.is_absolute())
    }
}
