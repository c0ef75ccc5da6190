//! A running ssh, and the reason why it ended.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{SshHost, SshRoute};
use crate::connection::versions;
use crate::terminal::escape;
use api::fault::WireFault;
use base::sync::lock;

/// Maximum bytes of ssh's messages that are kept. The first ones matter most.
const MAX_STDERR_BYTES: usize = 8 << 10;

/// How long ssh may take to end after its connection broke.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// How long its last messages may take. A shared connection in the background may hold the pipe open.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(200);

/// Exit code of ssh itself; other codes are those of the remote command.
const SSH_FAILED: i32 = 255;
/// Exit codes of a remote shell that does not find a command, or cannot run it.
const COMMAND_NOT_FOUND: i32 = 127;
const COMMAND_NOT_EXECUTABLE: i32 = 126;
/// Exit code of `agentctl` for a command line that it does not know.
const WRONG_USE: i32 = 64;

/// What is wrong with a daemon on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteProblem {
    /// ssh could not be started on this machine.
    NoSsh,
    /// The machine does not answer.
    Unreachable,
    /// The machine does not accept the user.
    Authentication,
    /// The key of the machine is unknown or has changed.
    HostKey,
    /// `agentctl` is not installed there, or not in the `PATH` of commands over ssh.
    MissingProgram,
    /// `agentctl` or the daemon there is older or newer than this program allows.
    Version,
    /// No daemon runs there, and none could be started.
    NoDaemon,
    /// Anything else; the message says more.
    Other,
}

/// The reason why there is no connection to a daemon on another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFailure {
    /// The kind of the failure.
    pub problem: RemoteProblem,
    /// The reason and what the user can do; safe to print.
    pub message: String,
}

impl RemoteFailure {
    /// Whether another attempt fails as well until the user changes something.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self.problem, RemoteProblem::Unreachable | RemoteProblem::NoDaemon | RemoteProblem::Other)
    }

    /// The daemon there refused the protocol of this program.
    pub(crate) fn version(host: &SshHost, fault: &WireFault) -> Self {
        let (why, advice) = (escape::line(&fault.message), versions::advice(fault).unwrap_or_default());
        let message = format!("the agentd at {host} and this agentctl do not fit: {why}; {advice}");
        Self { problem: RemoteProblem::Version, message }
    }
}

impl fmt::Display for RemoteFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A running ssh. It ends when its connection is closed, and with this process.
pub(crate) struct SshProcess {
    host: SshHost,
    child: Child,
    stderr: Arc<Mutex<Vec<u8>>>,
    /// The task that reads the messages.
    reader: JoinSet<()>,
}

impl SshProcess {
    /// Starts ssh and returns the connection that it carries. Does not wait until ssh is connected.
    pub(crate) fn start(route: &SshRoute) -> Result<(UnixStream, Self), RemoteFailure> {
        let no_ssh = |error: io::Error| {
            let reason = match error.kind() {
                io::ErrorKind::NotFound => {
                    "it is not installed; install OpenSSH, or name the program in AGENTD_SSH"
                }
                _ => "check AGENTD_SSH and the limits of processes",
            };
            RemoteFailure {
                problem: RemoteProblem::NoSsh,
                message: format!("could not run ssh: {error}; {reason}"),
            }
        };
        let (ours, theirs) = StdStream::pair().map_err(no_ssh)?;
        ours.set_nonblocking(true).map_err(no_ssh)?;
        let mut command = route.command();
        let output = theirs.try_clone().map_err(no_ssh)?;
        command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(output)).stderr(Stdio::piped());
        base::proc::bind_to_parent(&mut command);
        let mut command = Command::from(command);
        let mut child = command.spawn().map_err(no_ssh)?;
        // The command holds copies of ssh's side, which would keep the connection open after ssh has ended.
        drop(command);
        let stream = UnixStream::from_std(ours).map_err(no_ssh)?;
        let stderr = Arc::default();
        let mut reader = JoinSet::new();
        if let Some(pipe) = child.stderr.take() {
            reader.spawn(read_messages(pipe, Arc::clone(&stderr)));
        }
        Ok((stream, Self { host: route.host.clone(), child, stderr, reader }))
    }

    pub(crate) fn host(&self) -> &SshHost {
        &self.host
    }

    /// Ends ssh, and explains why it gave no connection.
    pub(crate) async fn into_failure(mut self) -> RemoteFailure {
        let status = match timeout(END_TIMEOUT, self.child.wait()).await {
            Ok(status) => status.ok().and_then(|status| status.code()),
            Err(_) => {
                let _ = self.child.start_kill();
                None
            }
        };
        let _ = timeout(LAST_WORDS_TIMEOUT, self.reader.join_next()).await;
        let messages = String::from_utf8_lossy(&lock(&self.stderr)).into_owned();
        explain(&self.host, status, &messages)
    }
}

/// Keeps the first messages and reads all, so that ssh never waits.
async fn read_messages(mut pipe: ChildStderr, messages: Arc<Mutex<Vec<u8>>>) {
    let mut bytes = [0; 1024];
    while let Ok(count @ 1..) = pipe.read(&mut bytes).await {
        let mut kept = lock(&messages);
        let room = MAX_STDERR_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..count.min(room)]);
    }
}

/// The failure of an ssh that ended with this code (`None`: it did not end by itself) and wrote these messages.
fn explain(host: &SshHost, code: Option<i32>, messages: &str) -> RemoteFailure {
    let has = |texts: &[&str]| texts.iter().any(|text| messages.contains(text));
    let destination = host.destination();
    let (problem, text) = match code {
        Some(SSH_FAILED)
            if has(&["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"]) =>
        {
            (
                RemoteProblem::HostKey,
                format!(
                    "the key of {destination} is not known here or has changed; check it with `ssh {destination}`"
                ),
            )
        }
        Some(SSH_FAILED) if has(&["Permission denied", "Too many authentication failures"]) => (
            RemoteProblem::Authentication,
            format!(
                "{destination} does not accept this user; `ssh {destination}` must work without a question"
            ),
        ),
        Some(SSH_FAILED) => (RemoteProblem::Unreachable, format!("could not reach {destination} over ssh")),
        Some(COMMAND_NOT_FOUND | COMMAND_NOT_EXECUTABLE) => (
            RemoteProblem::MissingProgram,
            format!(
                "there is no agentctl on {destination}; install it in a folder that commands over ssh have in PATH, \
                 such as /usr/local/bin"
            ),
        ),
        Some(WRONG_USE) if messages.contains("dial-stdio") => (
            RemoteProblem::Version,
            format!("the agentctl on {destination} is too old for connections over ssh; update it"),
        ),
        Some(code) if code == i32::from(crate::failure::code::UNREACHABLE) => {
            (RemoteProblem::NoDaemon, format!("no daemon answers on {destination}"))
        }
        Some(code) => {
            (RemoteProblem::Other, format!("agentctl on {destination} ended with exit code {code}"))
        }
        None => (RemoteProblem::Unreachable, format!("{destination} did not answer in time")),
    };
    let messages = messages.replace('\r', "");
    let messages = messages.trim();
    let said = match messages.is_empty() {
        true => String::new(),
        false => format!(". ssh says:\n{}", escape::text(messages)),
    };
    RemoteFailure { problem, message: format!("{text}{said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_and_messages_of_ssh_give_the_problem() {
        let host = SshHost::parse("ssh://ann@build").expect("an address");
        let check = |code, messages: &str, problem, is_final| {
            let failure = explain(&host, code, messages);
            assert_eq!((failure.problem, failure.is_final()), (problem, is_final), "{messages}");
            assert!(
                failure.message.contains("ann@build") && failure.message.contains(messages.trim()),
                "{failure}"
            );
        };
        let denied = "ann@build: Permission denied (publickey).\r\n";
        check(Some(255), denied.trim(), RemoteProblem::Authentication, true);
        check(Some(255), "Host key verification failed.", RemoteProblem::HostKey, true);
        let unknown = "ssh: Could not resolve hostname build: Name or service not known";
        check(Some(255), unknown, RemoteProblem::Unreachable, false);
        check(Some(127), "bash: line 1: agentctl: command not found", RemoteProblem::MissingProgram, true);
        check(Some(64), "error: unrecognized subcommand 'dial-stdio'", RemoteProblem::Version, true);
        check(Some(69), "agentctl: no daemon answers at /s", RemoteProblem::NoDaemon, false);
        check(Some(4), "", RemoteProblem::Other, false);
        check(None, "", RemoteProblem::Unreachable, false);
    }

    #[test]
    fn messages_of_another_machine_cannot_control_the_terminal() {
        let host = SshHost::parse("ssh://build").expect("an address");
        let failure = explain(&host, Some(255), "a\u{1b}[2Jb");
        assert!(!failure.message.contains('\u{1b}'), "{failure:?}");
    }
}
