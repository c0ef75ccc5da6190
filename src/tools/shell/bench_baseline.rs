//! A shell behind a level of the sandbox and nothing else of ours: what the benches hold a call against.

use std::io;
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::tools::context::ToolContext;
use crate::tools::shell::sandbox::{Available, Confined, Draft, FsPolicy, Level};

/// Starts a shell that does nothing, held as a call of this context would be, and waits for its end. What
/// holds it is made before; only the start, what the kernel does for the level, and the end count.
///
/// # Errors
/// The level cannot be had here, or the shell failed.
pub(in crate::tools) async fn spawn(context: &ToolContext, here: &Available) -> io::Result<Duration> {
    let choice = context.settings.sandbox.choose(false, here).map_err(|no| io::Error::other(no.text))?;
    let cwd = &context.session_context.cwd;
    let confined = match choice.level {
        Level::Off | Level::Rlimits => Confined::free(),
        Level::Landlock | Level::Bubblewrap => {
            let layout = FsPolicy::of(context, choice.network)?;
            let draft = Draft::of(choice, layout, &context.settings.sandbox.temp, here)?;
            Confined::by(draft, here, cwd)?
        }
    };
    let mut command = confined.command("/bin/bash");
    command.args(["-c", "true"]).env_clear().current_dir(cwd).stdin(Stdio::null());
    // As the daemon starts it: a fork that copies the memory of who measures would be no reference.
    let begun = Instant::now();
    let mut child = confined.spawn(command, Vec::new(), None, io::stderr().as_raw_fd())?;
    let status = child.wait().await?;
    let took = begun.elapsed();
    if status.success() { Ok(took) } else { Err(io::Error::other(format!("the shell ended with {status}"))) }
}
