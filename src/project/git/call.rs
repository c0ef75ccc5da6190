//! One call of git with a time limit.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Child;

use super::overrides::RepositoryConfig;
use super::{GitError, safe_command};
use base::proc;

/// Maximum bytes that are read of one answer of git.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Maximum bytes that are kept of git's error text.
const MAX_ERROR_BYTES: u64 = 16 << 10;
/// Time that git has to remove its lock files after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// One call of git.
pub(crate) struct GitCall {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
    input: Option<Vec<u8>>,
    lock: Option<File>,
    time_limit: Duration,
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct GitOutput {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// The error text in one line, without control characters.
    pub(crate) stderr: String,
}

impl GitCall {
    /// A call in a folder, in which git looks for the repository.
    pub(crate) fn in_folder(folder: &Path, time_limit: Duration) -> Self {
        Self {
            args: Vec::new(),
            env: Vec::new(),
            folder: folder.to_owned(),
            input: None,
            lock: None,
            time_limit,
        }
    }

    pub(crate) fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Switches off what the repository's own configuration could run.
    pub(crate) fn config(mut self, config: &RepositoryConfig) -> Self {
        let overrides = config.overrides();
        self = self.env("GIT_CONFIG_COUNT", overrides.len().to_string());
        for (index, (key, value)) in overrides.iter().enumerate() {
            self = self.env(format!("GIT_CONFIG_KEY_{index}"), key);
            self = self.env(format!("GIT_CONFIG_VALUE_{index}"), value);
        }
        self
    }

    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Gives git a lock of the repository as its standard input. The lock then holds until git has ended, even if this
    /// process dies before.
    pub(crate) fn lock(mut self, lock: File) -> Self {
        self.lock = Some(lock);
        self
    }

    /// Runs git. A call that takes too long gets SIGTERM first, so that it removes its lock files. Dropping the future
    /// does not stop git.
    ///
    /// # Errors
    /// Git could not be started, took too long or answered too much. Any exit code is an answer.
    pub(crate) async fn run(self) -> Result<GitOutput, GitError> {
        let mut command = safe_command();
        command.arg("-C").arg(&self.folder).args(&self.args).envs(self.env).stderr(Stdio::piped());
        // A group of its own, so that the programs that git starts end with it.
        command.process_group(0);
        if self.input.is_some() {
            command.stdin(Stdio::piped());
        } else if let Some(lock) = self.lock {
            command.stdin(Stdio::from(lock));
        }
        let mut child = proc::spawn(&mut command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError("git is not installed".into()),
            _ => GitError(format!("could not start git: {error}")),
        })?;
        // The command holds its copy of the lock.
        drop(command);
        let group = child.id().and_then(|pid| i32::try_from(pid).ok());
        match tokio::time::timeout(self.time_limit, converse(&mut child, self.input)).await {
            Ok(Ok(output)) => Ok(output),
            Ok(Err(error)) => {
                stop(&mut child, group).await;
                Err(GitError(format!("could not read git's answer: {error}")))
            }
            Err(_) => {
                stop(&mut child, group).await;
                let seconds = self.time_limit.as_secs();
                Err(GitError(format!("git took longer than {seconds} s and was stopped")))
            }
        }
    }

    /// Runs git and returns its output.
    ///
    /// # Errors
    /// As [`run`](Self::run), and git's error text if it fails.
    pub(crate) async fn output(self) -> Result<Vec<u8>, GitError> {
        let output = self.run().await?;
        if output.code == Some(0) { Ok(output.stdout) } else { Err(output.failure()) }
    }
}

impl GitOutput {
    /// The error text of a call that failed.
    pub(crate) fn failure(&self) -> GitError {
        match (self.stderr.is_empty(), self.code) {
            (false, _) => GitError(format!("git: {}", self.stderr)),
            (true, Some(code)) => GitError(format!("git failed with exit code {code}")),
            (true, None) => GitError("git was killed".into()),
        }
    }
}

async fn converse(child: &mut Child, input: Option<Vec<u8>>) -> io::Result<GitOutput> {
    let missing = || io::Error::other("no pipe");
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let stdin = child.stdin.take();
    let write = async move {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            match stdin.write_all(&input).await {
                // Git reports why it ended early.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
                written => written?,
            }
        }
        Ok(())
    };
    let read = async move {
        let mut bytes = Vec::new();
        stdout.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > MAX_ANSWER_BYTES {
            return Err(io::Error::other("it is too long"));
        }
        Ok(bytes)
    };
    let read_errors = async move {
        let mut bytes = Vec::new();
        let mut stderr = stderr;
        (&mut stderr).take(MAX_ERROR_BYTES).read_to_end(&mut bytes).await?;
        // The rest is read as well, so that git does not wait for its reader.
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        Ok(bytes)
    };
    let ((), stdout, stderr) = tokio::try_join!(write, read, read_errors)?;
    let status = child.wait().await?;
    Ok(GitOutput { code: status.code(), stdout, stderr: one_line(&stderr) })
}

/// Ends git and the programs that it started.
async fn stop(child: &mut Child, group: Option<i32>) {
    let signal = |signal| group.map(|group| killpg(Pid::from_raw(group), signal));
    let _ = signal(Signal::SIGTERM);
    if tokio::time::timeout(STOP_TIMEOUT, child.wait()).await.is_err() {
        let _ = signal(Signal::SIGKILL);
        let _ = child.wait().await;
    }
}

/// A text of git for an error: its lines joined, without the hints and control characters.
fn one_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint:"));
    let text = lines.collect::<Vec<_>>().join("; ");
    text.chars().filter(|c| !c.is_control()).take(600).collect()
}
