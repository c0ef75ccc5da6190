//! Connects to the running daemon, or starts one.

use api::methods;
use std::borrow::Cow;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep};

use crate::connection::client::{CallError, Client};
use crate::connection::lock_holder;
use crate::connection::lock_holder::LockHolder;
use crate::connection::paths::ClientPaths;
use crate::connection::ssh::{DaemonStart, Prompts, SshHost};
use crate::connection::wire::no_answer;
use crate::failure::{Failure, code};
use crate::terminal::escape;
use api::params::{ClientRole, NoParams, StatusReply};
use api::{endpoint, exit};

/// The client name that other clients see.
pub(crate) const NAME: &str = "agentctl";

/// How long a daemon may take to answer after its start.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to retry a connection that breaks before its first answer. The socket of an ending daemon may
/// still accept connections.
const ENDING_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a running daemon may take to make its removed socket again.
const REBIND_TIMEOUT: Duration = Duration::from_millis(800);

/// Time before another attempt if the started daemon found the lock taken.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// How often a client that waits for the daemon checks whether a signal stopped it.
const SUSPENSION_INTERVAL: Duration = Duration::from_millis(500);

/// Connects to the daemon, and starts it if needed.
#[derive(Clone, Debug)]
pub struct Connector {
    /// Paths of the daemon.
    pub places: ClientPaths,
    /// The machine of the daemon; `None` for this one.
    pub host: Option<SshHost>,
    /// Whether a daemon may be started.
    pub may_start: bool,
    /// Role of the client.
    pub role: ClientRole,
    /// Name of the client that other clients see.
    pub name: Cow<'static, str>,
}

impl Connector {
    /// The same connector in the role of observer.
    #[must_use]
    pub fn as_observer(&self) -> Self {
        Self { role: ClientRole::Observer, ..self.clone() }
    }

    /// Connects to the daemon of this data folder, on any socket where it listens. If the user named a
    /// socket, only that socket is used.
    pub(crate) async fn dial(&self) -> Result<Client, CallError> {
        if let Some(host) = &self.host {
            return self.dial_over_ssh(host, DaemonStart::Forbidden, self.prompts()).await;
        }
        let attempt = match endpoint::check_socket_length(&self.places.socket) {
            Ok(()) => Client::connect_as(&self.places.socket, &self.name, self.role).await,
            Err(text) => Err(CallError::Io(io::Error::new(io::ErrorKind::InvalidFilename, text))),
        };
        match attempt {
            Err(CallError::Io(error)) if is_absent(&error) || is_bad_path(&error) => {
                match self.other_socket() {
                    Some(path) if !self.places.is_socket_named => {
                        Client::connect_as(&path, &self.name, self.role)
                            .await
                            .map_err(|_| CallError::Io(error))
                    }
                    _ => Err(CallError::Io(error)),
                }
            }
            outcome => outcome,
        }
    }

    /// Repeats [`Connector::dial`] for a short time, as long as connections break before the daemon's first
    /// answer.
    async fn dial_until_settled(&self) -> Result<Client, CallError> {
        let start = Instant::now();
        loop {
            let now = Instant::now();
            let outcome = tokio::select! {
                outcome = self.dial() => outcome,
                () = self.until_suspended() => Err(no_answer()),
            };
            match outcome {
                Err(error) if is_broken(&error) && now < start + ENDING_TIMEOUT => {
                    sleep(Duration::from_millis(10)).await;
                }
                Err(CallError::Io(error))
                    if is_absent(&error)
                        && now < start + REBIND_TIMEOUT
                        && !self.listens_elsewhere()
                        && self.has_serving_daemon() =>
                {
                    sleep(Duration::from_millis(50)).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether a daemon of this data folder serves a socket. If no socket answers nevertheless, it was removed or
    /// replaced, and the daemon makes it again.
    fn has_serving_daemon(&self) -> bool {
        LockHolder::find(&self.places.data_dir).is_some_and(|holder| holder.is_serving())
    }

    /// The daemon of this data folder, if a signal stopped it.
    fn suspended_daemon(&self) -> Option<LockHolder> {
        let holder = self.host.is_none().then(|| LockHolder::find(&self.places.data_dir)).flatten();
        holder.filter(LockHolder::is_suspended)
    }

    /// Ends once a signal has stopped the daemon, so that the user needs not wait until it certainly does not answer.
    async fn until_suspended(&self) {
        loop {
            sleep(SUSPENSION_INTERVAL).await;
            if self.suspended_daemon().is_some() {
                return;
            }
        }
    }

    /// A notice for the user, if the running daemon did not read the configuration file that the user named.
    pub(crate) async fn unread_config(&self) -> Option<String> {
        let named = self.places.config_flag.as_ref()?.canonicalize().ok()?;
        let client = self.dial().await.ok()?;
        let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await.ok()?;
        // A relative path is relative to the daemon's current folder, which this process does not know.
        let is_named = |file: &String| {
            let file = Path::new(file);
            file.is_relative() || file.canonicalize().is_ok_and(|file| file == named)
        };
        if status.config_files.iter().any(is_named) {
            return None;
        }
        let read = match status.config_files.as_slice() {
            [] => "no configuration file".to_owned(),
            files => escape::line(&files.join(", ")).into_owned(),
        };
        Some(format!(
            "the running daemon has read {read}, not {}; stop it with `agentctl daemon stop`, then try again",
            escape::line(&named.display().to_string())
        ))
    }

    /// Whether the named socket is not the one of this data folder's daemon.
    pub(crate) fn listens_elsewhere(&self) -> bool {
        self.places.is_socket_named && self.other_socket().is_some()
    }

    /// The socket of this data folder's daemon, if it differs from the expected one. It differs if the daemon
    /// was started with another environment or another `--socket`.
    fn other_socket(&self) -> Option<PathBuf> {
        let path = LockHolder::find(&self.places.data_dir)?.socket?;
        (path != self.places.socket && path.exists()).then_some(path)
    }

    /// Connects to the running daemon. Never starts a daemon.
    ///
    /// # Errors
    /// [`code::UNREACHABLE`](crate::failure::code::UNREACHABLE) if none answers.
    pub async fn connect(&self) -> Result<Client, Failure> {
        if let Some(host) = &self.host {
            return self.connect_over_ssh(host, DaemonStart::Forbidden).await;
        }
        match self.dial_until_settled().await {
            Err(CallError::Io(error)) => Err(self.absence(&error)),
            other => Ok(other?),
        }
    }

    /// Connects to the daemon. Starts a daemon first if none runs and starting is allowed.
    ///
    /// # Errors
    /// No daemon answers and none could be started; the message contains the end of its log.
    pub async fn connect_or_start(&self) -> Result<Client, Failure> {
        if let Some(host) = &self.host {
            return self.connect_over_ssh(host, DaemonStart::Allowed).await;
        }
        let error = match self.dial_until_settled().await {
            Err(CallError::Io(error)) => error,
            other => return Ok(other?),
        };
        let is_daemon_absent = is_absent(&error);
        if is_daemon_absent && self.is_within_a_tool() {
            return Err(Failure::new(
                code::DENIED,
                "a command of a session may not answer, submit or start a daemon, and does not see its own from here; \
                 for a daemon of its own name another --socket",
            ));
        }
        // A data folder has only one daemon. If that daemon listens on another socket, or lost its own, a second one
        // could not start.
        let runs = self.listens_elsewhere() || self.has_serving_daemon();
        if !self.may_start || !is_daemon_absent || runs {
            return Err(self.absence(&error));
        }
        self.start().await
    }

    /// Connects again after the daemon has exited. A crashed daemon is started again. A daemon that a user
    /// stopped is not started again.
    ///
    /// # Errors
    /// As of [`Connector::connect_or_start`].
    pub async fn connect_again(&self) -> Result<Client, Failure> {
        if let Some(host) = &self.host {
            let start = if self.may_start { DaemonStart::AfterCrash } else { DaemonStart::Forbidden };
            return Ok(self.dial_over_ssh(host, start, Prompts::Never).await?);
        }
        if lock_holder::was_stopped(&self.places.data_dir) {
            self.connect().await
        } else {
            self.connect_or_start().await
        }
    }

    /// Whether a daemon has started this process as a tool. If so, it must not start another daemon.
    fn is_within_a_tool(&self) -> bool {
        let is_same_socket =
            std::env::var_os("AGENTD_SOCKET").is_some_and(|socket| self.places.socket == socket);
        is_same_socket && std::env::var_os("AGENTD_CALL").is_some()
    }

    fn absence(&self, error: &io::Error) -> Failure {
        let text = self.absence_message(error);
        if is_bad_path(error) { Failure::usage(text) } else { Failure::unreachable(text) }
    }

    pub(crate) fn absence_message(&self, error: &io::Error) -> String {
        let socket = self.places.socket.display().to_string();
        let socket = escape::line(&socket);
        let suspended = (error.kind() == io::ErrorKind::TimedOut).then(|| self.suspended_daemon()).flatten();
        match error.kind() {
            _ if is_absent(error) || suspended.is_some() => {
                if let Some(holder) = suspended.or_else(|| LockHolder::find(&self.places.data_dir)) {
                    let (what, fix) = holder.explain(&self.places.socket);
                    return format!("no daemon answers at {socket}; {what}: {fix}");
                }
                format!("no daemon answers at {socket}; start it with `agentctl daemon start`")
            }
            io::ErrorKind::PermissionDenied => format!(
                "may not use {socket}: the socket belongs to another user, or its folder is closed to you"
            ),
            _ if is_bad_path(error) => escape::line(&error.to_string()).into_owned(),
            _ => format!("could not reach the daemon at {socket}: {error}"),
        }
    }

    async fn start(&self) -> Result<Client, Failure> {
        let (mut child, mut log) = spawn(&self.places)?;
        let mut spawned = Instant::now();
        let deadline = spawned + START_TIMEOUT;
        let mut wait = Duration::from_millis(10);
        loop {
            sleep(wait).await;
            wait = (wait * 2).min(Duration::from_millis(100));
            // Query the exit status before connecting: a daemon that has exited by now will not answer later.
            let ended = child.try_wait();
            match self.dial().await {
                Ok(client) => return Ok(client),
                Err(CallError::Io(_)) | Err(CallError::Closed) => {}
                Err(refused) => return Err(refused.into()),
            }
            let now = Instant::now();
            let what = match ended {
                // Try again: another client was faster and its daemon is starting, or a stopping daemon still
                // holds the lock after it has removed its socket.
                Ok(Some(status))
                    if status.code() == Some(i32::from(exit::ALREADY_RUNNING)) && now < deadline =>
                {
                    if self.listens_elsewhere() {
                        return Err(Failure::unreachable(
                            self.absence_message(&io::ErrorKind::NotFound.into()),
                        ));
                    }
                    if now.duration_since(spawned) > RETRY_INTERVAL {
                        (child, log) = spawn(&self.places)?;
                        spawned = now;
                    }
                    continue;
                }
                Ok(None) if now < deadline => continue,
                Ok(None) => "did not answer within 10 s",
                // The configuration has a mistake, and the daemon has logged its place.
                Ok(Some(status)) if status.code() == Some(i32::from(exit::CONFIG)) => {
                    return Err(Failure::unreachable(log.startup_error()));
                }
                Ok(Some(_)) | Err(_) => "ended at once",
            };
            return Err(Failure::unreachable(format!("agentd {what}.{}", log.tail(20))));
        }
    }
}

/// Whether the error means that no daemon listens there.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Whether no socket can have this path.
fn is_bad_path(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidFilename
}

/// Whether the other side accepted the connection and then closed it without an answer.
fn is_broken(error: &CallError) -> bool {
    match error {
        CallError::Closed => true,
        CallError::Io(error) => {
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        }
        _ => false,
    }
}

/// The `agentd` in the folder of this program, else the one in PATH.
fn agentd() -> PathBuf {
    let sibling = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("agentd")));
    sibling.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from("agentd"))
}

/// Creates a folder that only its owner can access; an existing one is left unchanged.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The command that starts the daemon for these paths.
pub(crate) fn daemon_command(places: &ClientPaths) -> Command {
    let mut command = Command::new(agentd());
    command.stdin(Stdio::null()).current_dir("/");
    if let Some(home) = base::proc::variable("HOME") {
        command.env("HOME", home);
    }
    if let Some(config) = &places.config_flag {
        command.arg("--config").arg(config);
    }
    // The started daemon must listen on the expected socket, whatever its configuration says.
    command.env("AGENTD_SOCKET", &places.socket).env("AGENTD_DATA_DIR", &places.data_dir);
    command
}

/// Starts the daemon, which continues after this program has ended. If the daemon exits first, the runtime
/// collects its exit status, so that no zombie remains.
fn spawn(places: &ClientPaths) -> Result<(Child, LogTail), Failure> {
    let failed = |what: &str, e: io::Error| Failure::internal(format!("could not {what}: {e}"));
    private_dir(&places.data_dir).map_err(|e| failed("make the data folder", e))?;
    let path = places.log();
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
    let log = log.map_err(|e| failed("open the daemon's log", e))?;
    let from = log.metadata().map(|m| m.len()).unwrap_or(0);
    let again = log.try_clone().map_err(|e| failed("open the daemon's log", e))?;
    let mut command = daemon_command(places);
    command.stdout(log).stderr(again);
    // A Ctrl-C in this terminal must not stop the daemon, and the daemon must not hold locks and pipes of the shell.
    base::proc::detach(&mut command);
    let mut command = tokio::process::Command::from(command);
    let child = command.spawn().map_err(|e| {
        Failure::unreachable(format!(
            "could not start {}: {e}; install agentd in the folder of agentctl or in PATH",
            escape::line(&command.as_std().get_program().to_string_lossy())
        ))
    })?;
    Ok((child, LogTail { path, from }))
}

/// The daemon's log output since its start.
struct LogTail {
    path: PathBuf,
    from: u64,
}

impl LogTail {
    /// The message of a daemon that cannot start with its configuration.
    fn startup_error(&mut self) -> String {
        let text = read_from(&self.path, self.from).unwrap_or_default();
        let error_text =
            text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("its configuration is wrong");
        let error_text = error_text.strip_prefix("agentd: ").unwrap_or(error_text);
        format!("{}; no daemon runs until that is corrected", escape::line(error_text))
    }

    fn tail(&mut self, lines: usize) -> String {
        let text = read_from(&self.path, self.from).unwrap_or_default();
        let tail_text = last_lines(&text, lines);
        let path = self.path.display().to_string();
        let path = escape::line(&path);
        if tail_text.is_empty() {
            return format!(" It wrote nothing to {path}");
        }
        format!(" Its last words (all of them: {path}):\n{}", escape::text(&tail_text))
    }
}

/// The text of a file from a position on, at most the last 64 KiB.
pub(crate) fn read_from(path: &Path, from: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(64 << 10))))?;
    let mut bytes = Vec::new();
    file.take(64 << 10).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use crate::connection::connector::*;

    #[tokio::test]
    async fn missing_daemon_failure_explains_how_to_start() {
        let dir = tempfile::tempdir().expect("a folder");
        let reach = connector_without_start(dir.path().join("none.sock"));
        let failure = reach.connect_or_start().await.err().expect("a failure");
        assert_eq!(failure.code, 69);
        assert!(failure.message.contains("agentctl daemon start"), "{failure}");
    }

    #[tokio::test]
    async fn connection_to_ending_daemon_is_tried_until_its_socket_is_closed() {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("ending.sock");
        let listener = tokio::net::UnixListener::bind(&socket).expect("bound");
        let ending = tokio::spawn(async move {
            for _ in 0..3 {
                drop(listener.accept().await.expect("a connection"));
            }
        });
        let reach = connector_without_start(socket);
        let failure = reach.connect_or_start().await.err().expect("a failure");
        assert!(failure.message.contains("no daemon answers"), "{failure}");
        ending.await.expect("three connections");
    }

    fn connector_without_start(socket: PathBuf) -> Connector {
        Connector { may_start: false, ..connector(Path::new("/nonexistent"), socket) }
    }

    fn connector(folder: &Path, socket: PathBuf) -> Connector {
        let home = folder.display().to_string();
        let env = move |name: &str| (name == "AGENTD_DATA_DIR").then(|| home.clone());
        let places = ClientPaths::find(&env, Some(socket), None).expect("places");
        Connector { places, host: None, may_start: true, role: ClientRole::Controller, name: NAME.into() }
    }

    #[tokio::test]
    async fn daemon_without_socket_is_reported_within_one_second_and_none_is_started() {
        let dir = tempfile::tempdir().expect("a folder");
        let lock = transport::StateLock::try_lock(&dir.path().join("agentd.lock")).expect("free");
        let socket = dir.path().join("s.sock");
        for noted in [socket.clone(), dir.path().join("elsewhere.sock")] {
            lock.note_socket(&noted);
            let start = Instant::now();
            let failure = connector(dir.path(), socket.clone()).connect_or_start().await.err().expect("none");
            assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
            assert!(failure.code == 69 && failure.message.contains("was deleted"), "{failure}");
        }
        assert!(!dir.path().join("agentd.log").exists(), "no daemon was started");
    }

    #[tokio::test]
    async fn too_long_socket_path_is_usage_error_with_remedy() {
        let dir = tempfile::tempdir().expect("a folder");
        let reach = connector(dir.path(), dir.path().join("x".repeat(108)));
        for outcome in [reach.connect().await, reach.connect_or_start().await] {
            let failure = outcome.err().expect("a failure");
            assert!(failure.code == 64 && failure.message.contains("AGENTD_SOCKET"), "{failure}");
            assert!(!failure.message.contains("SUN_LEN"), "{failure}");
        }
    }

    #[test]
    fn daemon_log_is_read_from_given_offset() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("log");
        std::fs::write(&path, "old\nnew 1\nnew 2\n").expect("written");
        assert_eq!(last_lines(&read_from(&path, 4).expect("text"), 1), "new 2");
        assert_eq!(last_lines(&read_from(&path, 4).expect("text"), 9), "new 1\nnew 2");
    }
}
