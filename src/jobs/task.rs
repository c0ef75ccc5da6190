//! What the tasks that own jobs and schedules share: commands with replies, sleeps, and replies of earlier calls.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::error::JobsError;
use session::IdempotencyKey;
use store::StoreReader;
use types::time::Timestamp;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, JobsError>>;

/// Sends a command to a task and waits for its reply. Not cancel-safe: the command may be handled although the future is
/// dropped.
///
/// # Errors
/// Those of the command; `ShuttingDown` if the task has ended.
pub(crate) async fn ask<C, T>(
    commands: &mpsc::Sender<C>,
    make: impl FnOnce(Reply<T>) -> C,
) -> Result<T, JobsError> {
    let (reply, answer) = oneshot::channel();
    commands.send(make(reply)).await.map_err(|_| JobsError::ShuttingDown)?;
    answer.await.map_err(|_| JobsError::ShuttingDown)?
}

/// Sleeps; for ever without a duration. Cancel-safe.
pub(crate) async fn sleep(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// The stored reply of an earlier call with this key.
///
/// # Errors
/// The key was used with other parameters, or the database could not be read.
pub(crate) async fn earlier_reply(
    store: &StoreReader,
    method: &'static str,
    keyed: Option<&IdempotencyKey>,
    now: Timestamp,
) -> Result<Option<String>, JobsError> {
    let Some(keyed) = keyed else { return Ok(None) };
    match store.recent_reply(method, &keyed.key, now).await? {
        Some(known) if known.digest != keyed.digest => Err(JobsError::KeyConflict),
        known => Ok(known.map(|known| known.reply)),
    }
}
