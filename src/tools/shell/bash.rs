//! The Bash tool: runs a command, streams its output and ends all its processes. Background tasks are in
//! `background`.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::environment;
use super::output::CommandOutput;
use super::process::{self, RunningShell, ShellLaunch, ShellReport};
use super::sandbox::{
    AvailableLevels, CallSandbox, CommandSandbox, FirstSeen, FsPolicy, Level, PlaceholderCache, SandboxView,
};
use super::spool::{Spool, Spools};
use crate::call;
use crate::context::ToolContext;
use crate::error::{ToolError, cancelled};
use crate::input;
use crate::shell::cgroup::Cgroups;
use crate::shell::limits::CgroupControllers;
use crate::shell::outcome::{CommandEnd, CommandReport, FinishedCommand, NextFolder, is_plain_folder};
use crate::shell::process::{ProcessStarted, register};
use crate::shell::process_tree::ProcessTree;
use base::crash;
use base::proc;
use types::ids::{CallId, SessionId};
use types::tool::{Confinement, PreparedCall, ProcessRecord, Subject, ToolOutcome, ToolProgress};

/// Maximum bytes of a command. Linux limits one argument of a process to 128 KiB.
const MAX_COMMAND_BYTES: usize = 100_000;
/// How long output is read after the shell's exit, while other processes hold its pipes.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Time limit if the requested one exceeds the range of the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);
/// Time between TERM and KILL, when a call is stopped and when it left children.
const STOP_GRACE: Duration = Duration::from_secs(2);
const LEFTOVER_GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// The command line, run by bash.
    command: String,
    /// A short description of the command, for the user who answers the permission request.
    #[serde(default)]
    description: Option<String>,
    /// Stop it after this many milliseconds (default 120000, at most 600000).
    #[serde(default, deserialize_with = "input::number")]
    #[schemars(with = "Option<u64>")]
    timeout_ms: Option<u64>,
    /// Give the result at once and let the command go on; for servers, watchers and long builds. Read what
    /// it says with BashOutput and end it with KillBash. Then timeout_ms bounds its whole life.
    #[serde(default, deserialize_with = "input::flag")]
    #[schemars(with = "bool")]
    run_in_background: bool,
}

impl Input {
    /// The subject to judge: the text and the folder in which it starts. The same text may do different things
    /// in another folder.
    fn subject(&self, cwd: &Path, workspace: &Path) -> Subject {
        Subject::Bash {
            command: self.command.clone(),
            background: self.run_in_background,
            cwd: (cwd != workspace).then(|| cwd.to_owned()),
        }
    }

    /// Whether the command continues after its call has returned.
    pub(crate) fn is_background(&self) -> bool {
        self.run_in_background
    }

    /// The time limit in the arguments, if there is one.
    pub(super) fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }
}

/// Context of a call that runs a command. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CommandContext {
    pub(crate) tool: ToolContext,
    pub(crate) cgroups: Arc<Cgroups>,
    pub(crate) first_seen: Arc<FirstSeen>,
    pub(crate) placeholder_cache: Arc<PlaceholderCache>,
    pub(crate) spools: Option<Arc<Spools>>,
}

impl std::ops::Deref for CommandContext {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        &self.tool
    }
}

pub(crate) const DESCRIPTION: &str = "Runs a command with bash. The working directory stays for the \
    next command as long as it is inside the workspace; variables and functions do not. There is no terminal and \
    no input, and everything the command started is ended with it; with run_in_background it goes on behind the \
    call. Use Read, Edit, Glob and Grep for files.";

pub(crate) fn prepare(
    context: &ToolContext,
    here: &AvailableLevels,
    input: &Input,
) -> Result<PreparedCall, ToolError> {
    let command = &input.command;
    if command.trim().is_empty() {
        return Err(ToolError::new("invalid_input", "the command is empty"));
    }
    if command.contains('\0') {
        return Err(ToolError::new("invalid_input", "the command holds a NUL character"));
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(ToolError::new(
            "invalid_input",
            format!("the command is longer than {MAX_COMMAND_BYTES} bytes; write a script and run that"),
        ));
    }
    if input.timeout_ms == Some(0) {
        return Err(ToolError::new("invalid_input", "timeout_ms must be more than 0"));
    }
    context.jail().require_in_place(&context.session_context.cwd)?;
    let choice = context.settings.sandbox.choose(context.session_context.unattended, here)?;
    // The command comes first: the user answers for the command, not for the model's description.
    let mut summary = one_line(command.trim());
    if let Some(description) = input.description.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
        summary = format!("{summary} — {}", one_line(description));
    }
    Ok(PreparedCall {
        subject: input.subject(&starting_folder(context), &context.session_context.workspace),
        summary: if input.run_in_background { format!("{summary} (in the background)") } else { summary },
        diff: None,
        read_only: false,
        change: None,
        sandbox: Some(choice.confinement()),
    })
}

fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    let short: String = line.chars().take(120).collect();
    if short.len() < text.len() { format!("{short} …") } else { short }
}

/// Channels between a running command and its session.
pub(crate) struct CallChannels {
    /// Output as it comes.
    pub(crate) progress: mpsc::Sender<ToolProgress>,
    /// Receives the process once it is started.
    pub(crate) process_starts: mpsc::Sender<ProcessStarted>,
    /// Stops the command.
    pub(crate) stop: CancellationToken,
}

/// Runs the command to its end. When this returns, every process of the call has ended or is listed as a
/// survivor. Dropping the future kills them.
pub(crate) async fn run(
    context: &CommandContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    channels: CallChannels,
) -> Result<ToolOutcome, ToolError> {
    let settings = &context.settings;
    let usual = context.session_context.bash_timeout_ms.unwrap_or(settings.config.bash_timeout.millis());
    let limit = input.timeout_ms.unwrap_or(usual).min(settings.config.bash_timeout_max.millis());
    let stop = channels.stop.clone();
    let Some(started) = start(context, call_id, input, prepared, channels).await? else {
        return Ok(cancelled());
    };
    let (ran, output) = started.run_to_end(Duration::from_millis(limit), &stop).await;
    let excerpt = output.finish(settings.output_cap).await;
    crash::point("C14.spooled");
    let folder = NextFolder::after_command(context, &ran).await;
    Ok(CommandReport { context, limit, ran, folder }.into_outcome(excerpt))
}

/// A running command whose process is recorded. Dropping it kills all its processes.
pub(super) struct RunningCommand {
    shell: RunningShell,
    tree: ProcessTree,
    pub(super) output: CommandOutput,
    started_at: Instant,
    choice: CallSandbox,
    how: Confinement,
    ground: SandboxView,
    powers: CgroupControllers,
    cwd: PathBuf,
    /// Keeps the sandbox, for example its folder for temporary files, while the command runs.
    confined: CommandSandbox,
    /// The cache that may keep the placeholders, and the session that may reuse them.
    placeholder_cache: (Arc<PlaceholderCache>, SessionId),
}

/// Starts a command; `None` if it was stopped before.
pub(super) async fn start(
    context: &CommandContext,
    call_id: CallId,
    input: &Input,
    prepared: &PreparedCall,
    channels: CallChannels,
) -> Result<Option<RunningCommand>, ToolError> {
    let CallChannels { progress, process_starts, stop } = channels;
    if stop.is_cancelled() {
        return Ok(None);
    }
    let settings = &context.settings;
    let CommandPlacement { cwd, choice, confined, ground } = confine(context, prepared).await?;
    call::same_target(prepared, &input.subject(&cwd, &context.session_context.workspace))?;
    let started_at = Instant::now();

    let cgroup = context.cgroups.open(call_id, &settings.limits());
    let powers = if cgroup.is_some() { context.cgroups.controllers() } else { CgroupControllers::default() };
    let launch = ShellLaunch {
        command: &input.command,
        cwd: &cwd,
        environment: call_environment(context, call_id, &confined),
        limits: settings.limits().rlimits(powers),
        cgroup: cgroup.as_ref(),
        confined: &confined,
    };
    let (shell, output) = process::start(launch).map_err(|e| {
        ToolError::new("spawn_failed", format!("could not start the shell in {}: {e}", cwd.display()))
    })?;
    crash::point("C13.started");
    let tree = ProcessTree::new(shell.pid, shell.started, format!("AGENTD_CALL={call_id}"), cgroup);
    let record = ProcessRecord { call_id, pid: shell.pid, started: shell.started, boot_id: proc::boot_id() };
    if let Err(refusal) = register(&process_starts, record).await {
        // The process is not recorded, so the next daemon could not find it. Kill it now.
        tree.end(Duration::ZERO).await;
        return Err(refusal);
    }
    crash::point("C13.recorded");
    let spool = Spool::new(context.spools.as_deref().cloned(), call_id);
    let output = CommandOutput::new(output, settings, progress, spool);
    let how = prepared.sandbox.filter(|held| held.unsandboxed).unwrap_or(choice.confinement());
    let placeholder_cache = (Arc::clone(&context.placeholder_cache), context.session_context.session_id);
    Ok(Some(RunningCommand {
        shell,
        tree,
        output,
        started_at,
        choice,
        how,
        ground,
        powers,
        cwd,
        confined,
        placeholder_cache,
    }))
}

impl RunningCommand {
    /// Follows the command until it exits, has run for `limit`, or is stopped. Then every process of it has
    /// ended or is listed as a survivor.
    pub(super) async fn run_to_end(
        self,
        limit: Duration,
        stop: &CancellationToken,
    ) -> (FinishedCommand, CommandOutput) {
        let Self {
            mut shell,
            tree,
            mut output,
            started_at,
            choice,
            how,
            ground,
            powers,
            cwd,
            confined,
            placeholder_cache,
        } = self;
        let deadline = started_at.checked_add(limit).unwrap_or_else(|| started_at + MAX_TIMEOUT);
        let (end, mut status) = follow(&mut shell, &mut output, deadline, stop).await;

        // Continue to read the pipes while the tree ends, so that no process blocks in a write.
        let ending = async {
            match end {
                CommandEnd::Exited => tree.end_leftovers(LEFTOVER_GRACE).await,
                CommandEnd::TimedOut | CommandEnd::Stopped => tree.end(STOP_GRACE).await,
            }
        };
        let mut ending = std::pin::pin!(ending);
        let ended = loop {
            tokio::select! {
                ended = &mut ending => break ended,
                result = shell.child.wait(), if status.is_none() => status = result.ok(),
                () = output.pump(), if output.is_open() => {}
            }
        };
        if status.is_none() {
            status = timeout(DRAIN_TIMEOUT, shell.child.wait()).await.ok().and_then(Result::ok);
        }
        let _ = timeout(DRAIN_TIMEOUT, output.drain()).await;
        let ShellReport { folder, jobs } = shell.report();
        // The kernel ends the processes of a process namespace with its first one.
        let has_namespace = choice.level == Level::Bubblewrap;
        let leftovers = match end {
            CommandEnd::Exited if has_namespace => ended.leftovers.max(jobs),
            CommandEnd::Exited => ended.leftovers,
            CommandEnd::TimedOut | CommandEnd::Stopped => 0,
        };
        let spent = started_at.elapsed();
        confined.release(&placeholder_cache.0, placeholder_cache.1);
        (
            FinishedCommand {
                end,
                status,
                ended,
                choice,
                how,
                ground,
                powers,
                cwd,
                folder,
                leftovers,
                spent,
            },
            output,
        )
    }
}

/// The session's current folder; the workspace if that folder is gone or has become a link. Blocks on the disk.
fn starting_folder(context: &ToolContext) -> PathBuf {
    let session_context = &context.session_context;
    if is_plain_folder(&session_context.cwd) {
        session_context.cwd.clone()
    } else {
        session_context.workspace.clone()
    }
}

/// The folder in which a command runs, and its sandbox.
struct CommandPlacement {
    cwd: PathBuf,
    choice: CallSandbox,
    confined: CommandSandbox,
    /// Data that explains failures in the sandbox.
    ground: SandboxView,
}

/// Creates the sandbox of the command at the judged level or a higher one.
async fn confine(context: &CommandContext, prepared: &PreparedCall) -> Result<CommandPlacement, ToolError> {
    let here = AvailableLevels::probe_once().await;
    // The sandbox refers to folders by path.
    context.jail().require_in_place(&context.session_context.cwd)?;
    let sandbox = &context.settings.sandbox;
    let outside = prepared.sandbox.is_some_and(|judged| judged.unsandboxed);
    if outside && !sandbox.offer_unsandboxed_retry.applies_to(context.session_context.unattended) {
        return Err(ToolError::new(
            "target_changed",
            "the configuration no longer lets commands run outside the sandbox; it was not run",
        ));
    }
    let choice = match outside {
        true => CallSandbox { level: Level::Rlimits, network: true, guards: false },
        false => sandbox.choose(context.session_context.unattended, here)?,
    };
    if prepared.sandbox.is_some_and(|judged| choice.confinement().is_weaker_than(judged)) {
        return Err(ToolError::new(
            "target_changed",
            "the command would now be held less than when it was judged; try again",
        ));
    }
    if choice.level < Level::Landlock {
        context.placeholder_cache.end(context.session_context.session_id);
        let cwd = starting_folder(context);
        return Ok(CommandPlacement {
            cwd,
            choice,
            confined: CommandSandbox::unrestricted(),
            ground: SandboxView::default(),
        });
    }
    let context = context.clone();
    call::blocking(move || {
        let layout = FsPolicy::from_context(&context, &context.first_seen, choice).map_err(sandbox_error)?;
        let cwd = starting_folder(&context);
        let temp = context.settings.sandbox.temp.as_path();
        let confined = CommandSandbox::new(choice, &layout, temp, here, &cwd).map_err(sandbox_error)?;
        Ok(CommandPlacement { ground: layout.sandbox_view(&cwd), cwd, choice, confined })
    })
    .await
}

/// The paths that a command with this confinement cannot read. Below level 2 there are none. Blocks on the disk.
pub(crate) fn hidden_paths(
    context: &ToolContext,
    first_seen: &FirstSeen,
    confinement: Option<Confinement>,
) -> Vec<PathBuf> {
    let is_held = |it: &Confinement| !it.unsandboxed && it.level >= 2;
    let held = confinement.filter(is_held);
    let hidden = held.map(|held| FsPolicy::hidden_paths(context, first_seen, held.network));
    // Without a sandbox the command does not run.
    hidden.and_then(Result::ok).unwrap_or_default()
}

fn sandbox_error(error: std::io::Error) -> ToolError {
    ToolError::new("sandbox_failed", format!("the sandbox could not be made, so nothing was run: {error}"))
}

fn call_environment(
    context: &ToolContext,
    call_id: CallId,
    confined: &CommandSandbox,
) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let settings = &context.settings;
    let mut variables = environment::of_session(settings, &context.session_context);
    for (name, value) in confined.variables() {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value.into()));
    }
    if let Some(socket) = &settings.socket {
        variables.push(("AGENTD_SOCKET".into(), socket.into()));
    }
    variables.push(("AGENTD_INSTANCE".into(), settings.instance.clone().into()));
    variables.push(("AGENTD_SESSION".into(), context.session_context.session_id.to_string().into()));
    variables.push(("AGENTD_CALL".into(), call_id.to_string().into()));
    variables
}

/// Follows the command until it exits (and its output ends, or `DRAIN_TIMEOUT` has passed), its time limit is
/// reached, or it is stopped.
async fn follow(
    shell: &mut RunningShell,
    output: &mut CommandOutput,
    deadline: Instant,
    stop: &CancellationToken,
) -> (CommandEnd, Option<ExitStatus>) {
    let mut exited: Option<(ExitStatus, Instant)> = None;
    loop {
        let until = exited.map_or(deadline, |(_, until)| until.min(deadline));
        tokio::select! {
            result = shell.child.wait(), if exited.is_none() => match result {
                Ok(status) => exited = Some((status, Instant::now() + DRAIN_TIMEOUT)),
                Err(_) => return (CommandEnd::Exited, None),
            },
            () = output.pump(), if output.is_open() => {}
            () = stop.cancelled() => return (CommandEnd::Stopped, exited.map(|(status, _)| status)),
            () = sleep_until(until) => {
                let end = if exited.is_some() { CommandEnd::Exited } else { CommandEnd::TimedOut };
                return (end, exited.map(|(status, _)| status));
            }
        }
        if let Some((status, _)) = exited
            && !output.is_open()
        {
            return (CommandEnd::Exited, Some(status));
        }
    }
}
