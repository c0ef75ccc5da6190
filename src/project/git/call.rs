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
use tokio_util::sync::CancellationToken;

use super::overrides::RepositoryConfig;
use super::{GitError, safe_command};
use base::proc;

/// Maximum bytes that are read of one answer of git.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// The same for a list of files: more than a million names of usual length.
const MAX_LIST_BYTES: u64 = 512 << 20;
/// Maximum bytes that are kept of git's error text.
const MAX_ERROR_BYTES: u64 = 16 << 10;
/// Time that git has to remove its lock files after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) struct GitCall {
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    folder: PathBuf,
    input: Option<Vec<u8>>,
    lock: Option<File>,
    time_limit: Duration,
    cancel: CancellationToken,
    answer_limit: AnswerLimit,
}

/// How much of an answer is read.
#[derive(Clone, Copy, Debug)]
enum AnswerLimit {
    /// A longer answer is an error.
    Refuse(u64),
    /// The rest of a longer answer is left out, and git is not waited for.
    Cut(u64),
}

/// What git answered.
#[derive(Debug)]
pub(crate) struct GitOutput {
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    /// Whether more was answered than was wanted.
    is_cut: bool,
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
            cancel: CancellationToken::new(),
            answer_limit: AnswerLimit::Refuse(MAX_ANSWER_BYTES),
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

    pub(crate) fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Stops git when the token is cancelled.
    pub(crate) fn cancel(mut self, token: &CancellationToken) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Allows the answer to be a long list of files.
    pub(crate) fn long_list(mut self) -> Self {
        self.answer_limit = AnswerLimit::Refuse(MAX_LIST_BYTES);
        self
    }

    /// Runs git. A call that takes too long or is cancelled gets SIGTERM first, so that it removes its lock files.
    /// Dropping the future kills git, unless it holds a lock: half of a change would stay then.
    ///
    /// # Errors
    /// Git could not be started, took too long, was cancelled or answered too much. Any exit code is an answer.
    pub(crate) async fn run(self) -> Result<GitOutput, GitError> {
        let mut command = safe_command();
        command.arg("-C").arg(&self.folder).args(&self.args).envs(self.env).stderr(Stdio::piped());
        // A group of its own, so that the programs that git starts end with it.
        command.process_group(0);
        if self.input.is_some() {
            command.stdin(Stdio::piped());
        }
        command.kill_on_drop(self.lock.is_none());
        if let Some(lock) = self.lock.filter(|_| self.input.is_none()) {
            command.stdin(Stdio::from(lock));
        }
        let mut child = proc::spawn(&mut command).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GitError("git is not installed".into()),
            _ => GitError(format!("could not start git: {error}")),
        })?;
        // The command holds its copy of the lock.
        drop(command);
        let group = child.id().and_then(|pid| i32::try_from(pid).ok());
        let conversation = converse(&mut child, self.input, self.answer_limit);
        let problem = tokio::select! {
            () = self.cancel.cancelled() => "git was stopped, because the work was cancelled".to_owned(),
            answer = tokio::time::timeout(self.time_limit, conversation) => match answer {
                Ok(Ok(output)) => {
                    if output.is_cut {
                        stop(&mut child, group).await;
                    }
                    return Ok(output);
                }
                Ok(Err(error)) => format!("could not read git's answer: {error}"),
                Err(_) => format!("git took longer than {} s and was stopped", self.time_limit.as_secs()),
            },
        };
        stop(&mut child, group).await;
        Err(GitError(problem))
    }

    /// Runs git and returns at most so many bytes of its output, and whether more was cut off.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub(crate) async fn output_up_to(mut self, max_bytes: u64) -> Result<(Vec<u8>, bool), GitError> {
        self.answer_limit = AnswerLimit::Cut(max_bytes);
        let output = self.run().await?;
        if output.is_cut || output.code == Some(0) {
            Ok((output.stdout, output.is_cut))
        } else {
            Err(output.failure())
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

async fn converse(
    child: &mut Child,
    input: Option<Vec<u8>>,
    answer_limit: AnswerLimit,
) -> io::Result<GitOutput> {
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
    let (AnswerLimit::Refuse(max_bytes) | AnswerLimit::Cut(max_bytes)) = answer_limit;
    let (mut bytes, mut is_cut) = (Vec::new(), false);
    let read = async {
        stdout.take(max_bytes + 1).read_to_end(&mut bytes).await?;
        is_cut = bytes.len() as u64 > max_bytes;
        if is_cut { Err(io::Error::other("it is too long")) } else { Ok(()) }
    };
    let read_errors = async move {
        let mut bytes = Vec::new();
        let mut stderr = stderr;
        (&mut stderr).take(MAX_ERROR_BYTES).read_to_end(&mut bytes).await?;
        // The rest is read as well, so that git does not wait for its reader.
        tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await?;
        Ok(bytes)
    };
    // A read that ends early ends the others, too.
    let answer = tokio::try_join!(write, read, read_errors);
    if is_cut && let AnswerLimit::Cut(_) = answer_limit {
        bytes.truncate(usize::try_from(max_bytes).unwrap_or(usize::MAX));
        return Ok(GitOutput { code: None, stdout: bytes, is_cut, stderr: String::new() });
    }
    let ((), (), stderr) = answer?;
    let status = child.wait().await?;
    Ok(GitOutput { code: status.code(), stdout: bytes, is_cut: false, stderr: one_line(&stderr) })
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
