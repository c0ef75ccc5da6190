//! Starts a program that runs longer than a call, for example an MCP server. It gets the environment of its session's
//! commands, and their sandbox if its configuration says so. When it ends, all processes that it started are
//! ended too.

use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::call;
use crate::context::{SessionContext, UnreadablePaths};
use crate::error::ToolError;
use crate::mcp_context::McpContext;
use crate::shell::bash::CommandContext;
use crate::shell::cgroup::CallCgroup;
use crate::shell::environment;
use crate::shell::limits::CgroupControllers;
use crate::shell::process_tree::ProcessTree;
use crate::shell::sandbox::{AvailableLevels, CommandSandbox, FsPolicy, Level, PlaceholderCache};
use base::proc;
use types::ids::{CallId, SessionId};
use types::permission::Mode;
use types::server_program::ServerProgram;

/// Time between the signals TERM and KILL.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// A program to start, with what identifies its processes.
pub struct ServerLaunch {
    pub program: ServerProgram,
    /// Marks its processes.
    pub mark: CallId,
    /// Names its folder for temporary files in the sandbox.
    pub temp_owner: SessionId,
}

impl ServerLaunch {
    /// The context of a server's process, for its sandbox.
    pub(crate) fn session_context(&self) -> SessionContext {
        SessionContext {
            session_id: self.temp_owner,
            workspace: self.program.workspace.clone(),
            additional: Vec::new(),
            cwd: self.program.cwd.clone(),
            reads: Arc::default(),
            unattended: self.program.unattended,
            bash_timeout_ms: None,
            unreadable: UnreadablePaths::default(),
            blobs: None,
            project: None,
            todos: Arc::default(),
            agents: Arc::from([]),
            commands: Vec::new(),
            mcp: McpContext::default(),
            environment: None,
            mode: Mode::Default,
        }
    }
}

/// A running program.
pub struct RunningServer {
    child: Child,
    tree: Option<ProcessTree>,
    confined: Option<(CommandSandbox, Arc<PlaceholderCache>, SessionId, PathBuf)>,
}

pub struct ServerStreams {
    /// Standard input.
    pub stdin: ChildStdin,
    /// Standard output.
    pub stdout: ChildStdout,
    /// Standard error.
    pub stderr: ChildStderr,
}

impl RunningServer {
    /// Waits for the exit of the program. Cancel-safe.
    ///
    /// # Errors
    /// Its end cannot be read.
    pub async fn wait_status(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits for the exit of the program and describes it. Cancel-safe.
    pub async fn wait(&mut self) -> String {
        use std::os::unix::process::ExitStatusExt as _;
        match self.wait_status().await {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("exited with status {code}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "ended".into(),
            },
            Err(error) => format!("is gone: {error}"),
        }
    }

    /// Ends the program and everything that it started.
    pub async fn end(mut self) {
        if let Some(tree) = self.tree.take() {
            let ended = tree.end(STOP_GRACE).await;
            if !ended.survivors.is_empty() {
                tracing::warn!(survivors = ?ended.survivors, "could not end the processes of a server");
            }
        }
        let _ = tokio::time::timeout(STOP_GRACE, self.child.wait()).await;
        if let Some((confined, placeholder_cache, owner, temp)) = self.confined.take() {
            confined.release(&placeholder_cache, owner);
            placeholder_cache.end(owner);
            let removed = tokio::task::spawn_blocking(move || super::forget_temp(&temp, owner)).await;
            if let Ok(Err(error)) = removed {
                tracing::debug!(%error, "could not remove temporary files of a server");
            }
        }
    }
}

/// Starts a program.
///
/// # Errors
/// The program could not be started; the text is for users.
pub(crate) async fn launch(
    context: &CommandContext,
    launch: ServerLaunch,
) -> Result<(RunningServer, ServerStreams), String> {
    let settings = &context.settings;
    let confined = match launch.program.sandbox {
        true => confine(context, &launch).await.map_err(|refusal| refusal.text)?,
        false => CommandSandbox::unrestricted(),
    };
    let cgroup = context.cgroups.open(launch.mark, &settings.limits());
    let powers = if cgroup.is_some() { context.cgroups.controllers() } else { CgroupControllers::default() };
    let mut command = confined.command(&launch.program.program);
    command
        .args(&launch.program.args)
        .env_clear()
        .envs(server_environment(context, &launch, &confined))
        .current_dir(&launch.program.cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let entrance = cgroup.as_ref().and_then(|cgroup: &CallCgroup| cgroup.open_procs_file().ok());
    let entrance_fd = entrance.as_ref().map(|file| file.as_raw_fd());
    confined.enforce_in(&mut command, settings.limits().rlimits(powers), entrance_fd, None);
    let mut child = spawn(&mut command, &launch)?;
    drop(entrance);
    let (pid, streams) = (child.id().and_then(|pid| i32::try_from(pid).ok()), take_streams(&mut child));
    let (Some(pid), Some(streams)) = (pid, streams) else {
        return Err(format!("could not start {}: it has no pipes", launch.program.program));
    };
    // The child was not awaited yet, so its process id is in use.
    let started = proc::read_process(pid)
        .map_err(|error| format!("could not start {}: {error}", launch.program.program))?
        .started;
    let tree = ProcessTree::new(pid, started, format!("AGENTD_CALL={}", launch.mark), cgroup);
    let owner = launch.temp_owner;
    let temp = settings.sandbox.temp.clone();
    let confined =
        launch.program.sandbox.then(|| (confined, Arc::clone(&context.placeholder_cache), owner, temp));
    Ok((RunningServer { child, tree: Some(tree), confined }, streams))
}

fn spawn(command: &mut Command, launch: &ServerLaunch) -> Result<Child, String> {
    proc::spawn(command).map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound if !launch.program.cwd.is_dir() => {
                format!("the folder {} does not exist", launch.program.cwd.display())
            }
            std::io::ErrorKind::NotFound => {
                "there is no such program in PATH; install it or give its path".into()
            }
            _ => error.to_string(),
        };
        format!("could not start {}: {why}", launch.program.program)
    })
}

fn take_streams(child: &mut Child) -> Option<ServerStreams> {
    Some(ServerStreams {
        stdin: child.stdin.take()?,
        stdout: child.stdout.take()?,
        stderr: child.stderr.take()?,
    })
}

/// Creates the sandbox of commands for the server's workspace.
async fn confine(context: &CommandContext, launch: &ServerLaunch) -> Result<CommandSandbox, ToolError> {
    let here = AvailableLevels::probe_once().await;
    let choice = context.settings.sandbox.choose(launch.program.unattended, here)?;
    if choice.level < Level::Landlock {
        return Ok(CommandSandbox::unrestricted());
    }
    let (context, cwd) = (context.clone(), launch.program.cwd.clone());
    call::blocking(move || {
        let failed = |error: std::io::Error| {
            ToolError::new(
                "sandbox_failed",
                format!("the sandbox could not be made, so it was not started: {error}"),
            )
        };
        let layout = FsPolicy::from_context(&context, &context.first_seen, choice).map_err(failed)?;
        let temp = context.settings.sandbox.temp.as_path();
        CommandSandbox::new(choice, &layout, temp, here, &cwd).map_err(failed)
    })
    .await
}

fn server_environment(
    context: &CommandContext,
    launch: &ServerLaunch,
    confined: &CommandSandbox,
) -> Vec<(OsString, OsString)> {
    let settings = &context.settings;
    let mut variables = environment::of_program(settings, launch.program.session_environment.as_ref());
    let mut set = |name: &str, value: OsString| {
        variables.retain(|(known, _)| known != name);
        variables.push((name.into(), value));
    };
    for (name, value) in &launch.program.env {
        set(name, value.into());
    }
    for (name, value) in confined.variables() {
        set(name, value.into());
    }
    if let Some(socket) = &settings.socket {
        set("AGENTD_SOCKET", socket.into());
    }
    set("AGENTD_INSTANCE", settings.instance.clone().into());
    set("AGENTD_CALL", launch.mark.to_string().into());
    variables
}
