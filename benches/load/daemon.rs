//! The real daemon in its own folder, with its CPU time and its memory.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tempfile::TempDir;

use super::Outcome;
use super::client::Client;

/// Maximum time of a start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Folders and configuration of a daemon, for several starts.
pub struct DaemonSetup {
    /// Data and configuration, on a real disk.
    disk: TempDir,
    /// Outside `disk`, because the path of a socket must be short.
    sockets: TempDir,
}

impl DaemonSetup {
    pub fn new(model: Option<SocketAddr>) -> Outcome<Self> {
        let disk = tempfile::Builder::new().prefix("load").tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let private = Permissions::from_mode(0o700);
        // Runtime folders are in `/run`. The common folder for temporary files changes all the time, and with it
        // the paths that must be hidden there.
        let folder = |within: &Path| {
            tempfile::Builder::new().prefix("load").permissions(private.clone()).tempdir_in(within)
        };
        let sockets = folder(Path::new("/run")).or_else(|_| folder(&std::env::temp_dir()))?;
        let setup = Self { disk, sockets };
        std::fs::create_dir(setup.workspace())?;
        // No process listens on port 9 of this machine. Without a model server the bench runs no turn.
        let port = model.map_or(9, |address| address.port());
        let config = format!(
            "[daemon]\ndata_dir = {:?}\nsocket = {:?}\n\
             [providers.load]\nkind = \"anthropic\"\nbase_url = \"http://127.0.0.1:{port}\"\n\
             [models]\nmain = \"load/model\"\n\
             [session]\nrepeat_limit = 0\n\
             [permissions]\nallow = [\"Bash(yes:*)\", \"Bash(sleep:*)\", \"Bash(true)\"]\n",
            setup.path("data"),
            setup.socket(),
        );
        std::fs::write(setup.config(), config)?;
        Ok(setup)
    }

    /// `HOME` of the daemon.
    pub fn home(&self) -> PathBuf {
        self.disk.path().to_owned()
    }

    /// The paths that the daemon hides from commands.
    pub fn hidden_paths(&self) -> Vec<PathBuf> {
        vec![self.path(".config/agentd"), self.data(), self.config(), self.sockets.path().to_owned()]
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.disk.path().join(name)
    }

    pub fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    pub fn database(&self) -> PathBuf {
        self.data().join("agentd.db")
    }

    pub fn log(&self) -> PathBuf {
        self.path("log")
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    fn config(&self) -> PathBuf {
        self.path("config.toml")
    }

    fn socket(&self) -> PathBuf {
        self.sockets.path().join("a.sock")
    }

    /// Makes the daemon log the time of each stage of its start.
    pub fn enable_stage_log(&self) -> Outcome<()> {
        let config = std::fs::read_to_string(self.config())?;
        std::fs::write(self.config(), config.replacen("[daemon]\n", "[daemon]\nlog = \"debug\"\n", 1))?;
        Ok(())
    }

    /// Sets the sandbox level of commands.
    pub fn set_sandbox_level(&self, level: &str) -> Outcome<()> {
        self.append_config(&format!("[sandbox]\nlevel = {level:?}\n"))
    }

    /// Adds tables to the configuration.
    pub fn append_config(&self, tables: &str) -> Outcome<()> {
        let config = std::fs::read_to_string(self.config())?;
        std::fs::write(self.config(), config + tables)?;
        Ok(())
    }

    /// Starts the daemon and waits until it has answered `daemon.hello`.
    pub fn start_daemon(&self) -> Outcome<Daemon> {
        let notify = self.sockets.path().join("notify");
        let _ = std::fs::remove_file(&notify);
        let ready = UnixDatagram::bind(&notify)?;
        ready.set_read_timeout(Some(START_TIMEOUT))?;
        let log = std::fs::File::create(self.log())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentd"));
        command
            .arg("--config")
            .arg(self.config())
            .env_clear()
            .env("HOME", self.disk.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("NOTIFY_SOCKET", &notify)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        // Pass these variables on. They set the workers and the allocator. In a build with crash points,
        // `AGENTD_CRASH` makes a job panic (part `s13`).
        for name in ["TOKIO_WORKER_THREADS", "GLIBC_TUNABLES", "AGENTD_CRASH"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let began = Instant::now();
        let child = command.spawn()?;
        let mut daemon = Daemon { child, socket: self.socket(), start_duration: Duration::ZERO };
        // The daemon sends a datagram when it listens, so no polling is needed.
        if let Err(error) = ready.recv(&mut [0; 64]) {
            let log = std::fs::read_to_string(self.log()).unwrap_or_default();
            return Err(format!("the daemon did not get ready ({error}): {log}").into());
        }
        daemon.connect()?.call("daemon.hello", &json!({}))?;
        daemon.start_duration = began.elapsed();
        Ok(daemon)
    }
}

/// A running daemon; killed when dropped.
pub struct Daemon {
    child: Child,
    socket: PathBuf,
    /// From exec to the answer to `daemon.hello`.
    pub start_duration: Duration,
}

impl Daemon {
    pub fn connect(&self) -> Outcome<Client> {
        Client::connect(&self.socket)
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// CPU time that the running threads have used.
    pub fn cpu_time(&self) -> Outcome<Duration> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut sum = 0;
        for task in std::fs::read_dir(tasks)? {
            // The thread may have ended.
            let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
            sum += text.split_whitespace().next().unwrap_or_default().parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum))
    }

    /// Memory in RAM now, in MB (10⁶ bytes).
    pub fn resident_mb(&self) -> Outcome<f64> {
        self.memory_mb("VmRSS:")
    }

    /// Memory in RAM that is not a page of a file, for example of the program.
    pub fn private_mb(&self) -> Outcome<f64> {
        self.memory_mb("RssAnon:")
    }

    fn memory_mb(&self, name: &str) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
        let kib: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024.0 / 1e6)
    }

    /// Kills the daemon, as a crash would.
    pub fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Stops the daemon with SIGTERM.
    pub fn stop(mut self) -> Outcome<()> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), Signal::SIGTERM)?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("the daemon ended with {status}").into()) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // After `stop` there is no process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the stages of the last start: name and microseconds since the process began to run.
pub fn read_stages(log: &Path) -> Outcome<Vec<(String, f64)>> {
    let text = std::fs::read_to_string(log)?;
    let mut stages = Vec::new();
    for line in text.lines().filter(|line| line.contains("start-up")) {
        let name = line.split("stage=\"").nth(1).and_then(|rest| rest.split('"').next());
        let us = line.split("us=").nth(1).and_then(|rest| rest.split_whitespace().next());
        if let (Some(name), Some(us)) = (name, us) {
            stages.push((name.to_owned(), us.parse()?));
        }
    }
    Ok(stages)
}
