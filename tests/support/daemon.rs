//! A real `agentd` in its own folder, with a scripted model server. Its environment contains only the
//! variables that are set here. Dropping the `TestDaemon` ends every process that the daemon started.
//!
//! ```ignore
//! let daemon = TestDaemon::start().await;                    // Anthropic Messages
//! let daemon = TestDaemon::builder().api(Api::OpenAiChat).config("[retry]\nbase_ms = 1").start().await;
//! ```
#![allow(dead_code, reason = "a tool box: not every test needs every tool")]

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use super::client::Client;
use super::model_server::ModelServer;
use super::raw::RawConnection;
use super::wait::{POLL_INTERVAL, poll_until, with_deadline};

/// The API of the model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
}

pub const ALL_APIS: [Api; 3] = [Api::Anthropic, Api::OpenAiChat, Api::OpenAiResponses];

/// The APIs whose requests hold a list of messages.
pub const MESSAGE_APIS: [Api; 2] = [Api::Anthropic, Api::OpenAiChat];

/// Builder of a [`TestDaemon`].
pub struct TestDaemonBuilder {
    api: Api,
    config: String,
    provider: String,
    environment: Vec<(String, String)>,
    base_url: Option<String>,
    descriptors: Option<u32>,
    prelude: Option<String>,
}

impl TestDaemonBuilder {
    /// Limits the daemon's file descriptors.
    pub fn descriptors(mut self, most: u32) -> Self {
        self.descriptors = Some(most);
        self
    }

    pub fn api(mut self, api: Api) -> Self {
        self.api = api;
        self
    }

    /// Adds tables to the configuration file.
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Adds keys to the provider's table.
    pub fn provider(mut self, toml: &str) -> Self {
        self.provider.push_str(toml);
        self.provider.push('\n');
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Shell text that runs before the daemon, e.g. `ulimit -n 64`.
    pub fn with_prelude(mut self, prelude: &str) -> Self {
        self.prelude = Some(prelude.into());
        self
    }

    /// Uses another model server than the built-in one.
    pub fn model_server_at(mut self, base_url: &str) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Builds everything, but does not start the daemon.
    pub async fn build(self) -> TestDaemon {
        let folder = tempfile::Builder::new().prefix("agentd-").tempdir().expect("a folder");
        let models = ModelServer::start().await;
        let (kind, base_url) = match self.api {
            Api::Anthropic => ("anthropic", models.url().to_owned()),
            Api::OpenAiChat => ("openai_chat", models.openai_url()),
            Api::OpenAiResponses => ("openai_responses", models.openai_url()),
        };
        let base_url = self.base_url.unwrap_or(base_url);
        for name in ["home", "run", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let config = format!(
            "[daemon]\nlog = \"debug\"\n\n[providers.scripted]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\n{}\n\
             [models]\nmain = \"scripted/model\"\n\n{}",
            self.provider, self.config
        );
        std::fs::write(folder.path().join("config.toml"), config).expect("written");
        let (descriptors, prelude) = (self.descriptors, self.prelude);
        TestDaemon {
            folder,
            models,
            environment: self.environment,
            descriptors,
            prelude,
            crash: None,
            program: env!("CARGO_BIN_EXE_agentd").into(),
            daemon: None,
        }
    }

    pub async fn start(self) -> TestDaemon {
        let mut daemon = self.build().await;
        daemon.launch().await;
        daemon
    }
}

/// A folder with its daemon and its model server.
pub struct TestDaemon {
    folder: TempDir,
    pub models: ModelServer,
    environment: Vec<(String, String)>,
    descriptors: Option<u32>,
    prelude: Option<String>,
    /// The crash point of the next daemon, and how it dies there.
    crash: Option<(String, CrashMode)>,
    program: PathBuf,
    daemon: Option<Child>,
}

/// How a daemon dies at a crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashMode {
    /// The daemon aborts itself.
    Abort,
    /// The daemon stops at the point, and the test kills it with SIGKILL.
    Kill,
}

impl TestDaemon {
    pub fn builder() -> TestDaemonBuilder {
        TestDaemonBuilder {
            api: Api::Anthropic,
            config: String::new(),
            provider: String::new(),
            environment: Vec::new(),
            base_url: None,
            descriptors: None,
            prelude: None,
        }
    }

    /// Starts a daemon with the default settings.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The workspace folder of the sessions.
    pub fn workspace(&self) -> PathBuf {
        self.path("work").canonicalize().expect("a folder")
    }

    /// Writes a file of the workspace.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.workspace().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, text).expect("written");
    }

    /// Reads a file of the workspace; empty if it does not exist.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.workspace().join(name)).unwrap_or_default()
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/agentd/agentd.sock")
    }

    /// The daemon's log over all its starts.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    pub fn pid(&self) -> Pid {
        let id = self.daemon.as_ref().and_then(Child::id).expect("the daemon runs");
        Pid::from_raw(i32::try_from(id).expect("a process id"))
    }

    /// The program with the test's environment, not started yet.
    pub fn command(&self) -> Command {
        let program = self.program.as_os_str();
        let limit = self.descriptors.map(|most| format!("ulimit -n {most}"));
        let before: Vec<&str> = limit.iter().chain(&self.prelude).map(String::as_str).collect();
        let mut command = Command::new(if before.is_empty() { program } else { "/bin/bash".as_ref() });
        if !before.is_empty() {
            command.args(["-c", &format!("{}; exec \"$0\" \"$@\"", before.join("; "))]).arg(program);
        }
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            // Temporary files of its sessions are then removed together with the folder.
            .env("TMPDIR", self.folder.path())
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(self.crash.iter().map(|(point, way)| ("AGENTD_CRASH", crash_at(point, *way))))
            .arg("--config")
            .arg(self.path("config.toml"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Makes the next daemons run this program.
    pub fn use_program(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// Whether the daemon is a process that this test started.
    pub fn has_process(&self) -> bool {
        self.daemon.is_some()
    }

    /// Makes the next daemons crash at this point: `C5`, or `C5:3` for the third time.
    pub fn crash_at(&mut self, point: &str, way: CrashMode) {
        self.crash = Some((point.into(), way));
    }

    /// Makes the next daemons start without a crash point.
    pub fn clear_crash_point(&mut self) {
        self.crash = None;
    }

    fn spawn(&self) -> Child {
        assert!(self.daemon.is_none(), "the daemon runs already");
        let child = self.spawn_process();
        if let (Some((_, CrashMode::Kill)), Some(pid)) = (&self.crash, child.id()) {
            tokio::spawn(kill_when_stopped(pid));
        }
        child
    }

    fn spawn_process(&self) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(self.path("log")).expect("a log");
        self.command().stdout(Stdio::null()).stderr(log).spawn().expect("agentd starts")
    }

    /// Starts a daemon that may crash before its socket answers.
    pub fn launch_to_crash(&mut self) {
        self.daemon = Some(self.spawn());
    }

    /// Waits until the daemon is dead at its crash point; kills it if it has stopped there.
    pub async fn wait_crashed(&mut self) {
        assert!(self.wait_dead(|| false).await, "the daemon did not crash");
    }

    /// Same as `wait_crashed`, for a daemon that may become ready and continue instead. Returns whether it
    /// is dead.
    pub async fn wait_crashed_or_ready(&mut self) -> bool {
        let socket = self.socket();
        let pid = self.daemon.as_ref().and_then(Child::id).and_then(|pid| i32::try_from(pid).ok());
        // A child that an earlier daemon had not replaced by its program yet may hold that daemon's listener.
        let is_ready = || {
            let stream = std::os::unix::net::UnixStream::connect(&socket);
            let peer = stream.and_then(|stream| Ok(getsockopt(&stream, PeerCredentials)?));
            peer.is_ok_and(|peer| Some(peer.pid()) == pid)
        };
        self.wait_dead(is_ready).await
    }

    async fn wait_dead(&mut self, is_ready: impl Fn() -> bool) -> bool {
        let (point, way) = self.crash.clone().expect("a crash point");
        let mut child = self.daemon.take().expect("the daemon runs");
        let end = async {
            loop {
                if let Some(status) = child.try_wait().expect("waited") {
                    return Some(status);
                }
                if is_ready() {
                    return None;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let ended = with_deadline(&format!("a crash at {point}"), || self.log(), end).await;
        let Some(status) = ended else {
            self.daemon = Some(child);
            return false;
        };
        let expected = if way == CrashMode::Kill { Signal::SIGKILL } else { Signal::SIGABRT };
        assert_eq!(status.signal(), Some(expected as i32), "{point}: unexpected exit\n{}", self.log());
        true
    }

    /// Starts the daemon and waits until its socket answers.
    pub async fn launch(&mut self) {
        let mut child = self.spawn();
        let ready = async {
            while !self.is_answering(child.id()).await {
                if let Ok(Some(status)) = child.try_wait() {
                    panic!("agentd ended at once ({status}):\n{}", self.log());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        with_deadline("the socket to answer", || self.log(), ready).await;
        self.daemon = Some(child);
    }

    /// Whether this daemon is the one that listens. A process that an earlier daemon was starting when
    /// it was killed may hold the socket open for a moment.
    pub async fn is_answering(&self, pid: Option<u32>) -> bool {
        let Ok(stream) = UnixStream::connect(self.socket()).await else { return false };
        let listener = stream.peer_cred().ok().and_then(|peer| peer.pid());
        listener.and_then(|pid| u32::try_from(pid).ok()) == pid
    }

    /// Runs the program until it exits, for starts that fail.
    pub async fn run_until_exit(&self) -> Output {
        let run = self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        with_deadline("agentd to end", || self.log(), run).await.expect("agentd starts")
    }

    /// Kills the daemon with SIGKILL and waits until it is dead.
    pub async fn kill(&mut self) {
        let mut child = self.daemon.take().expect("the daemon runs");
        child.start_kill().expect("killed");
        with_deadline("the daemon to die", || self.log(), child.wait()).await.expect("waited");
    }

    /// Kills the daemon with SIGKILL and starts it again.
    pub async fn crash_and_restart(&mut self) {
        self.kill().await;
        self.launch().await;
    }

    /// Sends a signal to the daemon.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the daemon runs");
    }

    /// Waits until the daemon exits by itself.
    pub async fn wait_exit(&mut self) -> ExitStatus {
        let mut child = self.daemon.take().expect("the daemon runs");
        with_deadline("the daemon to end", || self.log(), child.wait()).await.expect("waited")
    }

    /// Sends SIGTERM and returns the exit status.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.wait_exit().await
    }

    /// Trusts the workspace as it is.
    pub async fn trust(&self) {
        let (client, cwd) = (self.client("truster").await, self.workspace());
        let status = client.call("workspace.status", serde_json::json!({ "cwd": cwd })).await;
        let params = serde_json::json!({ "cwd": cwd, "digest": status["digest"] });
        client.call("workspace.trust", params).await;
    }

    /// A connection that sends `daemon.hello` with this name.
    pub async fn client(&self, name: &str) -> Client {
        let client = self.anonymous_client().await;
        client.call("daemon.hello", json!({"name": name})).await;
        client
    }

    /// A connection that does not send `daemon.hello`.
    pub async fn anonymous_client(&self) -> Client {
        let stream = UnixStream::connect(self.socket()).await;
        let stream = stream.unwrap_or_else(|error| panic!("the socket: {error}\n{}", self.log()));
        Client::from_stream(stream, self.path("log"))
    }

    /// A connection to a socket that is about to answer.
    pub async fn client_at(&self, socket: &Path) -> Client {
        let connect = async {
            loop {
                match UnixStream::connect(socket).await {
                    Ok(stream) => return stream,
                    Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
                }
            }
        };
        Client::from_stream(
            with_deadline("the socket to answer", || self.log(), connect).await,
            self.path("log"),
        )
    }

    /// A raw connection: the test writes bytes and reads lines.
    pub async fn raw(&self) -> RawConnection {
        RawConnection::from_stream(UnixStream::connect(self.socket()).await.expect("the socket answers"))
    }

    /// Processes with the marker of any tool call of this daemon.
    pub fn tool_processes(&self) -> Vec<Pid> {
        self.processes_with(b"AGENTD_CALL=")
    }

    /// Processes with the marker of this tool call.
    pub fn processes_of(&self, call_id: &Value) -> Vec<Pid> {
        let call_id = call_id.as_str().expect("an id");
        self.processes_with(format!("AGENTD_CALL={call_id}").as_bytes())
    }

    /// Processes of this test's home folder that have a variable with this prefix.
    fn processes_with(&self, beginning: &[u8]) -> Vec<Pid> {
        let home = format!("HOME={}", self.path("home").display());
        let carries = |pid: &Pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
            variables.contains(&home.as_bytes()) && variables.iter().any(|v| v.starts_with(beginning))
        };
        let entries = std::fs::read_dir("/proc").expect("a process list");
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.map(Pid::from_raw).filter(carries).collect()
    }

    /// Waits until `wanted` accepts the number of living tool processes.
    pub async fn tool_processes_reach(&self, wanted: impl Fn(usize) -> bool) {
        let seen = || format!("alive: {:?}\n{}", self.tool_processes(), self.log());
        poll_until("the processes of the tool", seen, || wanted(self.tool_processes().len()).then_some(()))
            .await;
    }

    /// All bytes of all files that the daemon has written.
    pub fn all_written_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in ["data", "run", "home", "work", "log"] {
            collect(&self.path(name), &mut bytes);
        }
        bytes
    }
}

fn crash_at(point: &str, way: CrashMode) -> String {
    match (way, point.contains(':')) {
        (CrashMode::Abort, _) => point.into(),
        (CrashMode::Kill, true) => format!("{point}:stop"),
        (CrashMode::Kill, false) => format!("{point}:1:stop"),
    }
}

/// Kills a daemon with SIGKILL after it stopped at its crash point. Ends when the process is dead. Its
/// pid cannot be reused before the parent waits for it, and the parent does that only after its death.
async fn kill_when_stopped(pid: u32) {
    let number = Pid::from_raw(i32::try_from(pid).expect("a process id"));
    while let Some(state) = process_state(pid)
        && state != 'Z'
    {
        if state == 'T' {
            let _ = kill(number, Signal::SIGKILL);
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The state letter of the process in /proc.
fn process_state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

fn collect(path: &Path, bytes: &mut Vec<u8>) {
    if let Ok(entries) = std::fs::read_dir(path) {
        entries.flatten().for_each(|entry| collect(&entry.path(), bytes));
    } else if path.is_file() {
        bytes.extend(std::fs::read(path).expect("it can be read"));
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        // Kill the daemon first, so that it starts no more processes; then kill its processes.
        if let Some(mut child) = self.daemon.take() {
            let _ = child.start_kill();
        }
        for pid in self.tool_processes() {
            let _ = kill(pid, Signal::SIGKILL);
        }
    }
}
