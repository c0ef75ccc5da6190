//! Notifies the user of pending requests in unattended sessions, and of schedules that were disabled. It starts the
//! command of `[permissions.unattended] notify_command` with JSON on its standard input, and posts the same JSON to
//! `notify_url`. It runs in a separate task, so that a command or server that hangs or fails delays no session.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::config::{Config, ConfigError};
use base::proc;
use jobs::notify::{DESKTOP_VARIABLES, Poster, Webhook};
use session::{PendingChange, Registry};
use types::daemon_event::ScheduleNotification;
use types::schedule::ScheduleChange;

/// Time limit of a command. The daemon then kills it.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(15);
/// Waits between posts. The last post follows the last wait, so there is one post more than waits.
const RETRY_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Maximum number of commands that run in parallel. Later notifications wait.
const MAX_COMMANDS: usize = 4;
/// Maximum number of waiting notifications. Further notifications are dropped and logged.
const NOTIFICATION_CAPACITY: usize = 256;

/// The configured notification channels.
#[derive(Clone, Debug, Default)]
pub(super) struct NotifyChannels {
    /// Program and arguments; empty for no command.
    command: Vec<String>,
    hook: Option<Webhook>,
}

impl NotifyChannels {
    /// Reads the channels from the configuration.
    ///
    /// # Errors
    /// The address is invalid. The error names file and line, but not the address.
    pub(super) fn from_config(config: &Config) -> Result<Self, ConfigError> {
        let section = &config.permissions.unattended;
        let hook = match section.notify_url.as_deref().map(str::trim).filter(|url| !url.is_empty()) {
            Some(url) => Some(Webhook::parse(url).map_err(|why| {
                config.key_error(
                    &["permissions", "unattended", "notify_url"],
                    format!("permissions.unattended.notify_url: {why}"),
                )
            })?),
            None => None,
        };
        Ok(Self { command: section.notify_command.clone(), hook })
    }

    fn is_none(&self) -> bool {
        self.command.is_empty() && self.hook.is_none()
    }
}

/// What the user is told of.
enum Subject {
    /// A request of an unattended session waits for an answer.
    Request(PendingChange),
    /// A schedule was disabled after too many failures.
    Disabled(Arc<ScheduleNotification>),
}

impl Subject {
    /// The id for the log.
    fn id(&self) -> String {
        match self {
            Self::Request(change) => change.session_id.to_string(),
            Self::Disabled(change) => change.schedule.schedule_id.to_string(),
        }
    }

    async fn text(&self, registry: &Registry) -> String {
        match self {
            Self::Request(change) => notification_text(registry, change).await.to_string(),
            Self::Disabled(change) => {
                let schedule = &change.schedule;
                json!({
                    "type": change.kind,
                    "schedule_id": schedule.schedule_id,
                    "title": schedule.name,
                    "cwd": schedule.job.cwd,
                    "text": schedule.error,
                    "last_job_id": schedule.last_job_id,
                })
                .to_string()
            }
        }
    }
}

/// Runs until the future is dropped. Running commands are killed then.
pub(super) async fn run(
    registry: Registry,
    mut schedules: broadcast::Receiver<Arc<ScheduleNotification>>,
    channels: watch::Receiver<NotifyChannels>,
) {
    let poster = Poster::default();
    let mut pending_rx = registry.shared().subscribe_pending();
    let turns = Arc::new(Semaphore::new(MAX_COMMANDS));
    let mut running = JoinSet::new();
    loop {
        let received = tokio::select! {
            change = pending_rx.recv() => change.map(|change| {
                (change.is_pending && change.background).then_some(Subject::Request(change))
            }),
            change = schedules.recv() => change.map(|change| {
                (change.kind == ScheduleChange::Disabled).then_some(Subject::Disabled(change))
            }),
            Some(_) = running.join_next() => continue,
        };
        let subject = match received {
            Ok(Some(subject)) => subject,
            Ok(None) => continue,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "some notifications were lost");
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let channels = channels.borrow().clone();
        if channels.is_none() {
            continue;
        }
        if running.len() >= MAX_COMMANDS + NOTIFICATION_CAPACITY {
            tracing::warn!(id = subject.id(), "dropped a notification: too many are queued");
            continue;
        }
        let (registry, turns, poster) = (registry.clone(), Arc::clone(&turns), poster.clone());
        running.spawn(async move {
            let Ok(_turn) = turns.acquire_owned().await else { return };
            let (id, text) = (subject.id(), subject.text(&registry).await);
            tokio::join!(
                notify_by_command(&channels, &id, &text),
                notify_by_hook(&channels, &poster, &id, &text)
            );
        });
    }
}

async fn notify_by_command(channels: &NotifyChannels, id: &str, text: &str) {
    let Some(program) = channels.command.first() else { return };
    if let Err(why) = send(&channels.command, text).await {
        tracing::warn!(id, program, why, "could not send the notification");
    }
}

async fn notify_by_hook(channels: &NotifyChannels, poster: &Poster, id: &str, text: &str) {
    let Some(hook) = &channels.hook else { return };
    if let Err(why) = post_with_retries(poster, hook, text).await {
        let host = hook.public_address();
        tracing::warn!(id, host, why, "could not send the notification");
    }
}

/// Posts the text and retries temporary failures. The error describes the last post. This takes at most 36 s.
async fn post_with_retries(poster: &Poster, hook: &Webhook, text: &str) -> Result<(), String> {
    let mut waits = RETRY_WAITS.iter();
    loop {
        match poster.post(hook, &[], text.to_owned()).await {
            Ok(()) => return Ok(()),
            Err(failed) => match waits.next().filter(|_| failed.is_temporary()) {
                Some(wait) => tokio::time::sleep(*wait).await,
                None => return Err(failed.message),
            },
        }
    }
}

/// The event, with the data that the user needs to answer it.
async fn notification_text(registry: &Registry, pending_change: &PendingChange) -> Value {
    let event: Value = serde_json::from_str(&pending_change.body).unwrap_or_default();
    let id = pending_change.request_id.to_string();
    let mut notification = json!({
        "type": event["type"],
        "session_id": pending_change.session_id,
        "request_id": id,
        "at_ms": event["at_ms"],
        "kind": event["kind"],
        "tool": event["tool"],
        "summary": event["summary"],
        "text": event["text"],
        "input": event["input"],
        "deadline_ms": event["deadline_ms"],
        "on_timeout": event["on_timeout"],
    });
    if let Ok(view) = registry.view(pending_change.session_id).await {
        notification["title"] = view.summary.title.into();
        notification["cwd"] = view.cwd.into();
    }
    if let Some(members) = notification.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    notification
}

/// Starts the command, writes the text to its standard input and waits for its end.
async fn send(command: &[String], text: &str) -> Result<(), String> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let mut start = Command::new(program);
    start
        .args(args)
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true);
    // Starting a process may block, for example on a network file system without a server.
    let started = tokio::task::spawn_blocking(move || proc::spawn(&mut start));
    let mut child = started.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
    let work = async {
        if let Some(mut stdin) = child.stdin.take() {
            // A command that does not read its input is not an error.
            let _ = stdin.write_all(text.as_bytes()).await;
            let _ = stdin.write_all(b"\n").await;
        }
        child.wait().await
    };
    match tokio::time::timeout(NOTIFY_TIMEOUT, work).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("it ended with {status}")),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => {
            let _ = child.kill().await;
            Err(format!("it did not end within {} s and was killed", NOTIFY_TIMEOUT.as_secs()))
        }
    }
}

/// Whether the command receives this environment variable. The names suffice to show a notification,
/// and none of them holds a key.
fn is_inherited(name: &str) -> bool {
    const NAMES: [&str; 9] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "TERM"];
    NAMES.contains(&name) || DESKTOP_VARIABLES.contains(&name) || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use crate::notifier::*;

    #[tokio::test]
    async fn notify_command_receives_text_and_reports_failure() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("said");
        let script = format!("cat > {}", file.display());
        let of = |script: &str| vec!["sh".to_string(), "-c".into(), script.into()];
        send(&of(&script), "{\"a\":1}").await.expect("told");
        assert_eq!(std::fs::read_to_string(&file).expect("written"), "{\"a\":1}\n");
        assert!(send(&of("exit 3"), "x").await.is_err_and(|why| why.contains('3')));
        assert!(send(&["/nonexistent".to_string()], "x").await.is_err());
        send(&of("exec <&-; true"), &"x".repeat(1 << 20)).await.expect("who does not read is told too");
    }

    #[test]
    fn notify_command_environment_contains_no_keys() {
        assert!(is_inherited("PATH") && is_inherited("LC_ALL"));
        assert!(!is_inherited("ANTHROPIC_API_KEY") && !is_inherited("AGENTD_CONFIG"));
    }
}
