//! Starts a program that carries bytes for this process.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, signal};

/// Makes a command end with this process, and ignore Ctrl-C. The terminal sends Ctrl-C to the command as well, but only
/// this process knows what it means: a turn is aborted, and the connection that the command carries must survive.
///
/// The kernel watches the thread that starts the command, so start it in a thread that lives as long as the process.
pub fn bind_to_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    #[expect(unsafe_code, reason = "only pre_exec reaches the child before it becomes the program")]
    // SAFETY: the closure makes async-signal-safe calls only (prctl, sigaction, getppid). It does not allocate, lock,
    // or change data that other code uses.
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGTERM)?;
            signal(Signal::SIGINT, SigHandler::SigIgn)?;
            // The parent may have ended before the kernel watched it.
            if nix::unistd::getppid() != parent {
                return Err(std::io::ErrorKind::BrokenPipe.into());
            }
            Ok(())
        });
    }
}
