//! The record of a started process, on its way to the journal.

use tokio::sync::{mpsc, oneshot};

use crate::tools::error::ToolError;
use crate::types::tool::ProcessRecord;

/// A started process. None of its output is read before the session answers `stored`. On an error, or without
/// an answer, the process is killed and its call fails.
#[derive(Debug)]
pub struct ProcessStarted {
    /// Identity of the process.
    pub record: Box<ProcessRecord>,
    /// Answer it when the record is committed; the error says why it is not.
    pub stored: oneshot::Sender<Result<(), String>>,
}

/// Waits until the session has stored a record.
pub(super) async fn register(
    births: &mpsc::Sender<ProcessStarted>,
    record: ProcessRecord,
) -> Result<(), ToolError> {
    let (stored, answer) = oneshot::channel();
    let lost = || Err("the session is gone".to_owned());
    let result = match births.send(ProcessStarted { record: Box::new(record), stored }).await {
        Ok(()) => answer.await.unwrap_or_else(|_| lost()),
        Err(_) => lost(),
    };
    result.map_err(|why| {
        ToolError::new(
            "storage_failed",
            format!("the command was stopped at its start, since it could not be recorded: could not {why}"),
        )
    })
}
