//! Runs a shell at a sandbox level and nothing else: the baseline of the benchmarks for a call.

use std::io;
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::shell::bash::CommandContext;
use crate::shell::sandbox::{AvailableLevels, CommandSandbox, FsPolicy, Level};

/// Starts a shell that does nothing in the sandbox of this context, and waits for its end. The sandbox is
/// prepared before; the time covers only the start, the kernel's work for the level, and the end.
///
/// # Errors
/// The level does not work here, or the shell failed.
pub(crate) async fn spawn(context: &CommandContext, here: &AvailableLevels) -> io::Result<Duration> {
    let choice = context.settings.sandbox.choose(false, here).map_err(|no| io::Error::other(no.text))?;
    let cwd = &context.session_context.cwd;
    let confined = match choice.level {
        Level::Off | Level::Rlimits => CommandSandbox::unrestricted(),
        Level::Landlock | Level::Bubblewrap => {
            let layout = FsPolicy::from_context(context, &context.first_seen, choice)?;
            CommandSandbox::new(choice, &layout, &context.settings.sandbox.temp, here, cwd)?
        }
    };
    let mut command = confined.command("/bin/bash");
    command.args(["-c", "true"]).env_clear().current_dir(cwd).stdin(Stdio::null());
    // Start it as the daemon does: a fork that copies the memory of the benchmark would not be comparable.
    let started_at = Instant::now();
    let (_output, writer) = io::pipe()?;
    let mut child = confined.spawn(command, Vec::new(), None, io::stderr().as_raw_fd(), writer)?;
    let status = child.wait().await?;
    let took = started_at.elapsed();
    if status.success() { Ok(took) } else { Err(io::Error::other(format!("the shell ended with {status}"))) }
}
