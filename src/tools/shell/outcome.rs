//! The outcome of a command: possible causes of a failure, and the text for the model.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nix::unistd::AccessFlags;
use serde_json::json;

use crate::call;
use crate::context::ToolContext;
use crate::settings::Limits;
use crate::shell::limits::CgroupControllers;
use crate::shell::limits::LimitBreach;
use crate::shell::output::OutputExcerpt;
use crate::shell::process_tree::TreeEnd;
use crate::shell::sandbox;
use crate::shell::sandbox::{CallSandbox, SandboxView};
use base::open;
use types::blob::BlobRef;
use types::tool::{Barrier, Blocked, Confinement, ToolOutcome, ToolStatus};

/// The reason why a command ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    Exited,
    TimedOut,
    Stopped,
}

pub(super) struct FinishedCommand {
    pub(super) end: CommandEnd,
    pub(super) status: Option<ExitStatus>,
    pub(super) ended: TreeEnd,
    pub(super) choice: CallSandbox,
    /// The confinement, as recorded in the result.
    pub(super) how: Confinement,
    pub(super) ground: SandboxView,
    pub(super) powers: CgroupControllers,
    /// The folders in which it started and ended.
    pub(super) cwd: PathBuf,
    pub(super) folder: Option<PathBuf>,
    /// Number of processes that it left running, and that were ended with it.
    pub(super) leftovers: usize,
    pub(super) spent: Duration,
}

/// The confinement of a command, and the restriction that may have stopped it: `files` or `network`.
#[derive(serde::Serialize)]
struct ReportedConfinement {
    #[serde(flatten)]
    how: Confinement,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<Barrier>,
}

/// Data of a command that has ended.
pub(super) struct CommandReport<'a> {
    pub(super) context: &'a ToolContext,
    /// Time limit of the command, in milliseconds.
    pub(super) limit: u64,
    pub(super) ran: FinishedCommand,
    pub(super) folder: NextFolder,
}

impl FinishedCommand {
    /// The signal that ended the shell, and its exit code in the shell convention.
    pub(super) fn code(&self) -> (Option<i32>, Option<i32>) {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = self.status.and_then(|status| status.signal());
        (signal, self.status.and_then(|status| status.code().or(signal.map(|signal| 128 + signal))))
    }

    /// The probable cause of a failure: the limit that the kernel reports, otherwise a guess from the output.
    pub(super) fn probable_cause(
        &self,
        limits: &Limits,
        text: &str,
    ) -> (Option<LimitBreach>, Option<Blocked>, Vec<String>) {
        let (signal, exit_code) = self.code();
        let breach = self.breach(limits, signal, exit_code);
        if let Some(breach) = breach {
            return (Some(breach), None, vec![format!("The command {}.", limits.breach_text(breach))]);
        }
        if let Some(cause_text) = limits.suspect_limits(text, self.powers) {
            return (None, None, vec![cause_text]);
        }
        let blocked = sandbox::find_suspect(text, self.choice, &self.ground);
        let cause_text = blocked.as_ref().map(|by| sandbox::blocked_text(by, self.choice));
        (None, blocked, cause_text.into_iter().collect())
    }

    /// Tells the model that processes were ended which it may have meant to keep.
    pub(super) fn leftover_note(&self) -> Option<String> {
        let (processes, were) = match self.leftovers {
            0 => return None,
            1 => ("A background process".to_owned(), "was"),
            n => (format!("{n} background processes"), "were"),
        };
        Some(format!(
            "{processes} of the command still ran at its end and {were} ended with it. To keep a process, run it with \
             run_in_background and without &."
        ))
    }

    fn breach(&self, limits: &Limits, signal: Option<i32>, exit_code: Option<i32>) -> Option<LimitBreach> {
        if self.ended.oom_kills > 0 {
            return Some(LimitBreach::Memory);
        }
        if self.ended.refused_forks > 0 {
            return Some(LimitBreach::Processes);
        }
        // A shell reports the signal of its last command in its own exit code.
        limits.breach_from_signal(signal.or(exit_code.map(|code| code - 128))?)
    }
}

impl CommandReport<'_> {
    pub(super) fn into_outcome(self, excerpt: OutputExcerpt) -> ToolOutcome {
        let OutputExcerpt { mut text, truncated, bytes, spooled } = excerpt;
        let (signal, exit_code) = self.ran.code();

        let mut notes = Vec::new();
        let (mut limit_reached, mut blocked): (_, Option<Blocked>) = (None, None);
        let (status, code) = match (self.ran.end, exit_code) {
            (CommandEnd::Stopped, _) => {
                notes.push("The command was cancelled.".to_owned());
                (ToolStatus::Cancelled, Some("cancelled"))
            }
            (CommandEnd::TimedOut, _) => {
                notes.push(format!("The command was stopped after {} ms (its timeout).", self.limit));
                (ToolStatus::Failed, Some("timed_out"))
            }
            (CommandEnd::Exited, Some(0)) => (ToolStatus::Completed, None),
            (CommandEnd::Exited, exit_code) => {
                let trouble;
                (limit_reached, blocked, trouble) =
                    self.ran.probable_cause(&self.context.settings.limits(), &text);
                notes.extend(trouble);
                notes.push(match (signal, exit_code) {
                    (Some(signal), _) => format!("The command was ended by signal {signal}."),
                    (None, Some(code)) => format!("Exit code {code}"),
                    (None, None) => "The exit code of the command is unknown.".to_owned(),
                });
                (ToolStatus::Failed, Some(limit_reached.map_or("exit_code", |_| "limit_exceeded")))
            }
        };
        let survivors = &self.ran.ended.survivors;
        let cwd = self.next_folder(&mut notes);
        if !survivors.is_empty() {
            notes.push(format!("These processes could not be ended: {survivors:?}"));
        }
        notes.extend(self.ran.leftover_note());
        let blob = spooled.and_then(|spooled| {
            notes.push(spooled.note);
            spooled.blob
        });
        if text.trim().is_empty() && notes.is_empty() {
            notes.push("(no output)".to_owned());
        }
        if !notes.is_empty() {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&notes.join("\n"));
        }
        let detail = json!({
            "exit_code": exit_code,
            "signal": signal,
            "timed_out": self.ran.end == CommandEnd::TimedOut,
            "truncated": truncated,
            "stdout_bytes": bytes,
            "duration_ms": u64::try_from(self.ran.spent.as_millis()).unwrap_or(u64::MAX),
            "cwd": cwd.as_ref().unwrap_or(&self.ran.cwd),
            "survivors": survivors,
            "limit": limit_reached.map(LimitBreach::name),
            "sandbox": ReportedConfinement { how: self.ran.how, blocked: blocked.as_ref().map(|blocked| blocked.by) },
        });
        ToolOutcome {
            status,
            code: code.map(str::to_owned),
            detail: Some(detail),
            cwd,
            whole: blob.as_ref().map(BlobRef::from),
            blobs: blob.into_iter().collect(),
            blocked,
            ..ToolOutcome::completed(text)
        }
    }
}

/// The folder in which the next command starts.
pub(super) enum NextFolder {
    /// The same folder as before, or unknown.
    Same,
    /// Another folder of the workspace.
    Moved(PathBuf),
    /// The command ended outside the workspace, or in a folder that is gone.
    Reset,
}

impl NextFolder {
    pub(super) async fn after_command(context: &ToolContext, ran: &FinishedCommand) -> Self {
        let started_elsewhere = ran.cwd != context.session_context.cwd;
        match &ran.folder {
            Some(folder) if *folder == ran.cwd && !started_elsewhere => Self::Same,
            Some(folder) if context.session_context.holds(folder) => {
                let folder = folder.clone();
                // The command itself reports this folder. A path with links may lead anywhere.
                let look = move || Ok(is_plain_folder(&folder).then_some(folder));
                let checked_folder = call::blocking(look).await;
                checked_folder.ok().flatten().map_or(Self::Reset, Self::Moved)
            }
            Some(_) => Self::Reset,
            None if started_elsewhere => Self::Reset,
            None => Self::Same,
        }
    }
}

/// Whether the path is a folder in which a command can start, without links and `..`. A name that is not valid
/// text cannot be reported.
pub(super) fn is_plain_folder(path: &Path) -> bool {
    path.is_dir()
        && path.to_str().is_some()
        && nix::unistd::access(path, AccessFlags::X_OK).is_ok()
        && open::real(path).is_ok_and(|real| real.as_os_str() == path.as_os_str())
}

impl CommandReport<'_> {
    /// The folder for the next command, if it differs from the one before.
    fn next_folder(&self, notes: &mut Vec<String>) -> Option<PathBuf> {
        let session_context = &self.context.session_context;
        match &self.folder {
            NextFolder::Same => None,
            NextFolder::Moved(folder) => (*folder != session_context.cwd).then(|| folder.clone()),
            NextFolder::Reset => {
                notes.push(format!("The working directory was reset to {}", self.ran.cwd.display()));
                (self.ran.cwd != session_context.cwd).then(|| self.ran.cwd.clone())
            }
        }
    }
}
