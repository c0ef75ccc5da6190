//! The task that sends owed messages. It tries each message until it is accepted or given up, a few at a time for each
//! receiver, so that one that hangs delays no other; messages of one job to one receiver keep their order. A message that was sent may be sent again after a crash, with the same
//! id.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};

use super::command::run_command;
use super::http::{Poster, Webhook};
use super::policy::{TryResult, after_try};
use super::signature::Secret;
use super::target::NotifyTarget;
use crate::error::JobsError;
use store::{DeliveryTry, PendingDelivery};
use tools::Toolbox;
use types::ids::{MessageId, Mint, Seed};
use types::time::Timestamp;

/// Maximum number of messages that are tried at the same time.
const MAX_PARALLEL: usize = 16;
/// The same for one receiver.
const MAX_PARALLEL_OF_TARGET: usize = 4;
/// Number of messages of one receiver that are read at a time: those in work, and as many that can start.
const MAX_READ_OF_TARGET: u32 = 2 * MAX_PARALLEL_OF_TARGET as u32 + 1;
/// Number of messages that are read at a time. The first ones of all receivers come first.
const MAX_READ: u32 = 16 * MAX_READ_OF_TARGET;
/// Wait after the database could not be read or written.
const STORE_RETRY: Duration = Duration::from_millis(500);
/// Longest sleep while a message waits for a time: the system's clock may be set, and a machine may sleep.
const MAX_SLEEP: Duration = Duration::from_secs(5);
/// Maximum bytes of a stored error.
const MAX_ERROR_BYTES: usize = 300;

/// What the task needs from the daemon.
pub(crate) trait DeliveryHost: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;
    /// What starts commands, and the user's home folder.
    fn tools(&self) -> (Toolbox, PathBuf);
    /// The table `[jobs.notify.NAME]` in force.
    fn target(&self, name: &str) -> Option<NotifyTarget>;
    /// The messages that are tried next: the earliest of each target first, at most `per_target` of one target.
    fn pending(
        &self,
        per_target: u32,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<PendingDelivery>, JobsError>> + Send;
    /// Stores the state of a message with an event of its job.
    fn record(&self, tried: DeliveryTry) -> impl Future<Output = Result<(), JobsError>> + Send;
}

/// Sends messages until the future is dropped. `wake` tells that a message became owed.
pub(crate) async fn run(host: Arc<impl DeliveryHost>, wake: Arc<Notify>) {
    let mut work = Work { tries: JoinSet::new(), messages: HashMap::new(), in_work: HashMap::new() };
    let poster = Poster::default();
    loop {
        let sleep = match work.start_due(&host, &poster).await {
            Ok(sleep) => sleep,
            Err(error) => {
                tracing::warn!(%error, "could not read the messages about jobs");
                Some(STORE_RETRY)
            }
        };
        let nap = async {
            match sleep {
                Some(sleep) => tokio::time::sleep(sleep).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wake.notified() => {}
            Some(done) = work.tries.join_next_with_id() => work.finish(done),
            () = nap => {}
        }
    }
}

/// The tries in work.
struct Work {
    tries: JoinSet<()>,
    messages: HashMap<Id, MessageId>,
    /// Each message with its target.
    in_work: HashMap<MessageId, String>,
}

impl Work {
    /// Starts the tries whose time has come. Returns how long nothing has to be done; `None` if no message waits for a
    /// time.
    async fn start_due(
        &mut self,
        host: &Arc<impl DeliveryHost>,
        poster: &Poster,
    ) -> Result<Option<Duration>, JobsError> {
        if self.tries.len() >= MAX_PARALLEL {
            return Ok(None);
        }
        let pending = host.pending(MAX_READ_OF_TARGET, MAX_READ).await?;
        let now = host.now();
        let mut next: Option<Duration> = None;
        for message in pending {
            if self.in_work.contains_key(&message.message_id) {
                continue;
            }
            if message.next_try > now {
                let wait = Duration::from_millis(message.next_try.since(now)).min(MAX_SLEEP);
                next = Some(next.map_or(wait, |next| next.min(wait)));
                continue;
            }
            if self.tries.len() >= MAX_PARALLEL {
                return Ok(None);
            }
            let of_target = self.in_work.values().filter(|target| **target == message.target).count();
            if of_target >= MAX_PARALLEL_OF_TARGET {
                continue;
            }
            let id = message.message_id;
            self.in_work.insert(id, message.target.clone());
            let task = self.tries.spawn(try_message(Arc::clone(host), poster.clone(), message));
            self.messages.insert(task.id(), id);
        }
        Ok(next)
    }

    fn finish(&mut self, done: Result<(Id, ()), JoinError>) {
        match done {
            Ok((task, ())) => {
                if let Some(id) = self.messages.remove(&task) {
                    self.in_work.remove(&id);
                }
            }
            // The message stays in work, because it would fail again at once.
            Err(error) => {
                tracing::error!(%error, "a message about a job is not tried again before a restart")
            }
        }
    }
}

async fn try_message(host: Arc<impl DeliveryHost>, poster: Poster, message: PendingDelivery) {
    let result = send(&*host, &poster, &message).await;
    if result == TryResult::Accepted {
        base::crash::point("JC5.sent");
    }
    let tries = message.tries.saturating_add(1);
    let (status, next_try) = after_try(&result, tries, host.now());
    let PendingDelivery { job_id, message_id, target, .. } = message;
    let error = match result {
        TryResult::Accepted => None,
        TryResult::Refused { mut why, .. } => {
            why.truncate(why.floor_char_boundary(MAX_ERROR_BYTES));
            tracing::warn!(job = %job_id, target, tries, status = status.name(), why, "could not send a message about a job");
            Some(why)
        }
    };
    let tried = DeliveryTry { job_id, message_id, target, status, tries, next_try, error };
    loop {
        match host.record(tried.clone()).await {
            Ok(()) | Err(JobsError::NotFound | JobsError::ShuttingDown) => return,
            Err(error) => {
                tracing::warn!(job = %job_id, %error, "the try of a message could not be stored yet");
                tokio::time::sleep(STORE_RETRY).await;
            }
        }
    }
}

async fn send(host: &impl DeliveryHost, poster: &Poster, message: &PendingDelivery) -> TryResult {
    let refused = |why: String| TryResult::Refused { why, status: None };
    let Some(target) = host.target(&message.target) else {
        let name = &message.target;
        return refused(format!("there is no table [jobs.notify.{name}] in the configuration any more"));
    };
    let Some(url) = &target.url else {
        let (tools, home) = host.tools();
        let mint = Mint::new(host.now().0, Seed::random());
        return match run_command(&tools, &target.command, &message.body, &home, mint).await {
            Ok(()) => TryResult::Accepted,
            Err(why) => refused(why),
        };
    };
    let prepared = async { Ok::<_, String>((Webhook::parse(url)?, secret(&target).await?)) };
    let (hook, secret) = match prepared.await {
        Ok(prepared) => prepared,
        Err(why) => return refused(why),
    };
    let (id, seconds) = (message.message_id.to_string(), host.now().0.div_euclid(1_000));
    let signature = secret.sign(&id, seconds, &message.body);
    let headers =
        [("webhook-id", id), ("webhook-timestamp", seconds.to_string()), ("webhook-signature", signature)];
    match poster.post(&hook, &headers, message.body.clone()).await {
        Ok(()) => TryResult::Accepted,
        Err(error) => TryResult::Refused { why: error.message, status: error.status },
    }
}

/// The secret is read for each try, so that a new one counts at once.
async fn secret(target: &NotifyTarget) -> Result<Secret, String> {
    let (origin, text) = match (&target.secret_env, &target.secret_file) {
        (Some(name), _) => {
            let text = base::proc::variable(name).ok_or_else(|| {
                format!("the variable {name} with the secret is not set in the daemon's environment")
            })?;
            (name.clone(), text)
        }
        (None, Some(file)) => (file.display().to_string(), model::read_secret_file(file).await?),
        (None, None) => return Err("the table has no secret_env and no secret_file".into()),
    };
    Secret::parse(&text).map_err(|why| format!("{origin}: {why}"))
}

#[cfg(test)]
mod tests;
