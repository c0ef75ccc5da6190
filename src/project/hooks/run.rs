//! Runs hooks: one shell command each, in a process group of its own, with a time limit.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::{Hook, HookAnswer, HookAnswers, HookInput};
use base::proc;
use types::hook::HookRun;

/// Maximum bytes of a hook's output; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How long the output of an ended hook may stay open, because a process that it started holds it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The environment of the processes of hooks.
#[derive(Clone, Debug)]
pub struct HookEnvironment {
    /// The folder in which they start.
    pub cwd: PathBuf,
    /// The root of the project.
    pub project_dir: PathBuf,
    /// Their environment variables.
    pub variables: Vec<(OsString, OsString)>,
}

/// Runs hooks at the same time and combines their answers. Takes at most the longest of their time limits.
/// Cancel-safe: if the future is dropped, the processes are killed.
pub async fn run_hooks(hooks: &[Hook], input: &HookInput, environment: &HookEnvironment) -> HookAnswers {
    let runs =
        futures_util::future::join_all(hooks.iter().map(|hook| run_hook(hook, input, environment))).await;
    let mut answers = HookAnswers::default();
    for (run, answer) in runs {
        answers.add(run, answer);
    }
    answers
}

async fn run_hook(hook: &Hook, input: &HookInput, environment: &HookEnvironment) -> (HookRun, HookAnswer) {
    let started_at = Instant::now();
    let answer = match run_process(hook, input, environment).await {
        Ok(HookProcessOutput { exit_code, stdout, stderr }) => {
            HookAnswer::parse(hook.event, hook.form, exit_code, &stdout, &stderr)
        }
        Err(error) => HookAnswer::from_failure(hook.event, hook.form, error),
    };
    let run = HookRun {
        event: hook.event,
        command: hook.command.clone(),
        decision: answer.decision,
        reason: answer.reason.clone(),
        duration_ms: u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
        error: answer.error.clone(),
    };
    (run, answer)
}

struct HookProcessOutput {
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Kills a process group when it is dropped.
struct ProcessGroupGuard(Pid);

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        let _ = killpg(self.0, Signal::SIGKILL);
    }
}

async fn run_process(
    hook: &Hook,
    input: &HookInput,
    environment: &HookEnvironment,
) -> Result<HookProcessOutput, String> {
    let project_dir = hook.project_dir.as_ref().unwrap_or(&environment.project_dir);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &hook.command])
        .current_dir(&environment.cwd)
        .env_clear()
        .envs(environment.variables.iter().map(|(name, value)| (name, value)))
        .env("CLAUDE_PROJECT_DIR", project_dir)
        .env("AGENTD_PROJECT_DIR", project_dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    // The start may wait for the disk.
    let started = tokio::task::spawn_blocking(move || proc::spawn(&mut command)).await;
    let mut child = started
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
        .map_err(|error| format!("could not start it: {error}"))?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).ok_or("it has no process id")?;
    let group = ProcessGroupGuard(Pid::from_raw(id));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let json = input.to_json(hook.form).to_string();
    let work = async {
        let write = async {
            if let Some(mut stdin) = stdin {
                // A hook may end without reading its input.
                let _ = stdin.write_all(json.as_bytes()).await;
            }
        };
        let mut outputs = (Vec::new(), Vec::new());
        let status = {
            let (out, err) = (&mut outputs.0, &mut outputs.1);
            let read = async { tokio::join!(read_output(stdout, out), read_output(stderr, err)) };
            tokio::pin!(read);
            let mut is_read = false;
            let wait = async { tokio::join!(child.wait(), write).0 };
            tokio::pin!(wait);
            let status = loop {
                tokio::select! {
                    status = &mut wait => break status,
                    _ = &mut read, if !is_read => is_read = true,
                }
            };
            if !is_read {
                let _ = tokio::time::timeout(DRAIN_TIMEOUT, read).await;
            }
            status
        };
        (status, outputs)
    };
    let done = tokio::time::timeout(hook.timeout, work).await;
    // Processes that it started and left in its group end with it.
    drop(group);
    let Ok((status, (stdout, stderr))) = done else {
        return Err(format!("it did not end within {} ms and was killed", hook.timeout.as_millis()));
    };
    let status = status.map_err(|error| format!("could not wait for it: {error}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(HookProcessOutput { exit_code: status.code(), stdout: text(stdout), stderr: text(stderr) })
}

/// Reads an output to its end; keeps its beginning.
async fn read_output(pipe: Option<impl AsyncRead + Unpin>, output: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        let room = MAX_OUTPUT_BYTES.saturating_sub(output.len()).min(count);
        output.extend_from_slice(&buffer[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::own_hooks;
    use types::hook::{HookDecision, HookEvent};

    async fn run(command: &str, timeout: &str) -> HookAnswers {
        let text =
            format!("[[pre_tool_use]]\ncommand = {}\ntimeout = \"{timeout}\"", toml::Value::from(command));
        let hooks = own_hooks(&toml::from_str(&text).expect("TOML")).expect("right");
        let input = HookInput::new(HookEvent::PreToolUse, "ses_1".into(), "/".into(), "default");
        let variables = vec![("PATH".into(), "/usr/bin:/bin".into())];
        run_hooks(&hooks, &input, &HookEnvironment { cwd: "/".into(), project_dir: "/".into(), variables })
            .await
    }

    #[tokio::test]
    async fn hook_reads_event_and_writes_decision() {
        let command =
            r#"read line; case $line in *pre_tool_use*) echo '{"decision":"deny","reason":"no"}';; esac"#;
        let answers = run(command, "20s").await;
        assert_eq!((answers.decision, answers.reason.as_str()), (Some(HookDecision::Deny), "no"));
        assert_eq!(answers.runs[0].error, None);
    }

    #[tokio::test]
    async fn hanging_and_forking_hooks_end_within_their_time() {
        let hangs = run("sleep 1000", "50ms").await;
        assert!(hangs.runs[0].error.as_deref().expect("an error").contains("did not end"), "{hangs:?}");
        let forks = run("sleep 1000 & exit 0", "20s").await;
        assert_eq!((forks.runs[0].error.as_deref(), forks.decision), (None, None), "{forks:?}");
        let floods = run("head -c 5000000 /dev/zero; exit 2", "20s").await;
        assert_eq!(floods.decision, Some(HookDecision::Deny), "{:?}", floods.runs[0]);
    }
}
