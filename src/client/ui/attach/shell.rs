//! Runs the user's own `!commands`, and lists files for `@`.

use std::process::Stdio;
use std::time::Instant;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::sync::oneshot;

use crate::ui::attach::calls::EffectResult;

/// Maximum bytes of a command's output that are kept.
const MAX_OUTPUT_BYTES: usize = 64 << 10;

/// Maximum number of files and folders that are offered for completion.
const MAX_FILES: usize = 20_000;

/// Runs a command of the user in the session's folder until it ends or is stopped.
pub(super) async fn run(command: String, cwd: String, stopped: oneshot::Receiver<()>) -> EffectResult {
    let began = Instant::now();
    let mut output = Vec::new();
    let end = match output_of(&command, &cwd, stopped, &mut output).await {
        Ok(end) => end,
        Err(error) => format!("could not run: {error}"),
    };
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    EffectResult::Shell { output: String::from_utf8_lossy(&output).into_owned(), end, ms }
}

async fn output_of(
    command: &str,
    cwd: &str,
    mut stopped: oneshot::Receiver<()>,
    output: &mut Vec<u8>,
) -> std::io::Result<String> {
    // Use one stream for both outputs, so that their order is kept.
    let mut child = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let mut stdout = child.stdout.take();
    let mut is_cut = false;
    let mut bytes = [0; 4096];
    while let Some(stream) = &mut stdout {
        tokio::select! {
            read = stream.read(&mut bytes) => {
                let count = read?;
                let room = MAX_OUTPUT_BYTES.saturating_sub(output.len());
                output.extend_from_slice(&bytes[..count.min(room)]);
                is_cut |= count > room;
                if count == 0 {
                    stdout = None;
                }
            }
            _ = &mut stopped => {
                if let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()) {
                    // This can fail, because the group may have ended by itself.
                    let _ = killpg(Pid::from_raw(group), Signal::SIGTERM);
                }
                return Ok("stopped".into());
            }
        }
    }
    if is_cut {
        output.extend_from_slice(b"\n[the rest was left out]");
    }
    let status = child.wait().await?;
    Ok(match status.code() {
        Some(code) => format!("exit {code}"),
        None => "ended by a signal".into(),
    })
}

/// Files and folders below a folder, without those that git ignores. Folders end with a slash.
pub(super) fn files(cwd: &str) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(cwd).hidden(true).build();
    let name = |entry: ignore::DirEntry| {
        let path = entry.path().strip_prefix(cwd).ok()?.to_str()?.to_owned();
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        (!path.is_empty()).then(|| if is_dir { path + "/" } else { path })
    };
    walk.filter_map(Result::ok).filter_map(name).take(MAX_FILES).collect()
}
