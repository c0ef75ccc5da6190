//! Runs hooks: one shell command each, in a process group of its own, with a time limit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::answers::judge_patch;
use super::{CallTarget, Hook, HookAnswer, HookAnswers, HookInput, OnFailure};
use base::proc;
use types::hook::{HookDecision, HookRun};

/// Maximum bytes of a hook's output; the rest is read and dropped.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// How long the output of an ended hook may stay open, because a process that it started holds it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Number of hooks of one event that run at the same time. A patch runs its hooks once per file.
const MAX_PARALLEL: usize = 16;
/// Where `bash` is. People write their hooks for it.
const BASH: [&str; 4] =
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"];

/// The environment of the processes of hooks.
#[derive(Clone, Debug)]
pub struct HookEnvironment {
    /// The folder in which they start.
    pub cwd: PathBuf,
    /// The root of the project.
    pub project_dir: PathBuf,
    pub variables: Vec<(OsString, OsString)>,
    /// What follows if a hook of `pre_tool_use` fails to run.
    pub on_failure: OnFailure,
}

/// An event for one hook.
#[derive(Clone, Debug)]
pub struct HookRunInput {
    pub hook: Hook,
    /// The event, once for each file of a patch, and else once.
    pub inputs: Vec<HookInput>,
    /// Whether the inputs are files of a patch.
    pub is_patch: bool,
    /// Number of files of the patch, including those for which the hook is not.
    pub files: usize,
}

impl HookRunInput {
    /// The event for a hook, if the hook is for it. `files` are the files of a patch with what they are about; a hook
    /// for edits sees them and not the patch.
    #[must_use]
    pub fn select(
        hook: &Hook,
        input: &HookInput,
        target: Option<&CallTarget<'_>>,
        files: &[(HookInput, CallTarget<'_>)],
    ) -> Option<Self> {
        let name = input.name();
        let is_patch = !files.is_empty() && hook.is_for_edits();
        let inputs: Vec<HookInput> = if is_patch {
            let is_for = |file: &CallTarget<'_>| hook.is_for(input.event, name, Some(file));
            files.iter().filter(|(_, file)| is_for(file)).map(|(input, _)| input.clone()).collect()
        } else if hook.is_for(input.event, name, target) {
            vec![input.clone()]
        } else {
            Vec::new()
        };
        let files = files.len();
        (!inputs.is_empty()).then(|| Self { hook: hook.clone(), inputs, is_patch, files })
    }
}

/// Runs hooks at the same time and combines their answers. Takes at most the longest of their time limits, and more
/// for a patch of many files. Cancel-safe: if the future is dropped, the processes are killed.
pub async fn run_hooks(events: &[HookRunInput], environment: &HookEnvironment) -> HookAnswers {
    let mut runs = Vec::new();
    for (index, event) in events.iter().enumerate() {
        for input in &event.inputs {
            runs.push(async move {
                let (run, answer) = run_hook(&event.hook, input, environment).await;
                (index, run, answer)
            });
        }
    }
    let done: Vec<_> = stream::iter(runs).buffered(MAX_PARALLEL).collect().await;
    let mut done = done.into_iter().peekable();
    let mut answers = HookAnswers::default();
    for (index, event) in events.iter().enumerate() {
        let (mut runs, mut given) = (Vec::new(), Vec::new());
        while let Some((_, run, answer)) = done.next_if(|(of, ..)| *of == index) {
            runs.push(run);
            given.push(answer);
        }
        if event.is_patch {
            judge_patch(&mut given, event.files);
        }
        for (run, answer) in runs.into_iter().zip(given) {
            answers.add(run, answer);
        }
    }
    answers
}

async fn run_hook(hook: &Hook, input: &HookInput, environment: &HookEnvironment) -> (HookRun, HookAnswer) {
    let started_at = Instant::now();
    let mut answer = match run_process(hook, input, environment).await {
        Ok(HookProcessOutput { is_cut, exit_code, stdout, stderr }) => {
            let how = (hook.event, hook.form, environment.on_failure);
            let answer = HookAnswer::parse(how, exit_code, &stdout, &stderr);
            match is_cut && exit_code == Some(0) && answer.decision != Some(HookDecision::Deny) {
                // The decision may be in the part that is missing.
                true => HookAnswer::from_unreadable(hook.event, "its output is too long to be read"),
                false => answer,
            }
        }
        Err(error) => HookAnswer::from_failure(hook.event, environment.on_failure, &error),
    };
    keep_patch_whole(&mut answer, input);
    let run = HookRun {
        decision: answer.decision,
        reason: answer.reason.clone(),
        duration_ms: u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
        error: answer.error.clone(),
        message: answer.message.clone(),
        ..HookRun::new(hook.event, &hook.command)
    };
    (run, answer)
}

/// Arguments for one file cannot replace a patch. If a hook changes them, the user decides.
fn keep_patch_whole(answer: &mut HookAnswer, input: &HookInput) {
    let Some(call) = &input.call else { return };
    let is_file = call.original.as_ref().is_some_and(|(tool, _)| *tool != call.tool);
    let Some(updated) = answer.updated_input.take_if(|_| is_file) else { return };
    if ["input", "patch"].iter().any(|name| updated[*name].is_string()) {
        answer.updated_input = Some(updated);
    } else if updated != call.input && answer.decision < Some(HookDecision::Ask) {
        let error = "it changes one file of a patch, and only the whole patch can be changed";
        *answer =
            HookAnswer { message: answer.message.take(), ..HookAnswer::from_unreadable(input.event, error) };
    }
}

struct HookProcessOutput {
    /// Whether the end of its standard output is missing.
    is_cut: bool,
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
    let shell = BASH.iter().find(|path| Path::new(path).is_file()).unwrap_or(&"/bin/sh");
    let mut command = Command::new(shell);
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
    let is_cut = stdout.len() >= MAX_OUTPUT_BYTES;
    Ok(HookProcessOutput { is_cut, exit_code: status.code(), stdout: text(stdout), stderr: text(stderr) })
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
    use crate::hooks::{CallInput, configured_hooks};
    use serde_json::json;
    use types::hook::{HookDecision, HookEvent};

    fn event(command: &str, timeout: &str, call: Option<CallInput>) -> HookRunInput {
        let text =
            format!("[[pre_tool_use]]\ncommand = {}\ntimeout = \"{timeout}\"", toml::Value::from(command));
        let hook = configured_hooks(&toml::from_str(&text).expect("TOML")).expect("right").hooks.remove(0);
        let input = HookInput::new(HookEvent::PreToolUse, "ses_1".into(), "/".into(), "default");
        HookRunInput { hook, inputs: vec![HookInput { call, ..input }], is_patch: false, files: 0 }
    }

    async fn run_event(event: HookRunInput) -> HookAnswers {
        let variables = vec![("PATH".into(), "/usr/bin:/bin".into())];
        let on_failure = OnFailure::Ask;
        run_hooks(
            &[event],
            &HookEnvironment { cwd: "/".into(), project_dir: "/".into(), variables, on_failure },
        )
        .await
    }

    async fn run(command: &str, timeout: &str) -> HookAnswers {
        run_event(event(command, timeout, None)).await
    }

    #[tokio::test]
    async fn commands_run_with_bash_and_missing_programs_ask() {
        let bash = run("[[ abc == a* ]] && echo '{\"decision\": \"deny\"}'", "20s").await;
        assert_eq!(bash.decision, Some(HookDecision::Deny), "{bash:?}");
        for command in ["/no/such/program", "kill -9 $$", "/etc/passwd"] {
            let failed = run(command, "20s").await;
            assert_eq!(failed.decision, Some(HookDecision::Ask), "{command}: {failed:?}");
            assert!(failed.runs[0].error.is_some() && !failed.is_unreadable, "{command}: {failed:?}");
        }
    }

    #[tokio::test]
    async fn decision_after_too_much_output_asks() {
        let command = "head -c 1100000 /dev/zero | tr '\\0' x; echo; echo '{\"decision\": \"deny\"}'";
        let answers = run(command, "20s").await;
        assert_eq!(answers.decision, Some(HookDecision::Ask), "{:?}", answers.runs);
    }

    #[tokio::test]
    async fn hook_cannot_change_one_file_of_a_patch() {
        let call = CallInput {
            tool: "Write".into(),
            input: json!({"file_path": "/w/a", "content": "x"}),
            original: Some(("ApplyPatch".into(), json!({"input": "*** Begin Patch"}))),
            ..CallInput::default()
        };
        let change = r#"echo '{"decision":"allow","updated_input":{"file_path":"/w/a","content":"y"}}'"#;
        let answers = run_event(event(change, "20s", Some(call.clone()))).await;
        assert_eq!((answers.decision, answers.updated_input), (Some(HookDecision::Ask), None));
        let whole = r#"echo '{"decision":"allow","updated_input":{"input":"*** Begin Patch\n"}}'"#;
        let answers = run_event(event(whole, "20s", Some(call))).await;
        assert_eq!(answers.decision, Some(HookDecision::Allow));
        assert!(answers.updated_input.is_some());
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
