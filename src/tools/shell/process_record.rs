//! The record of a process that has just been started, on its way to the disk (S9).

use tokio::sync::{mpsc, oneshot};

use crate::tools::error::ToolError;
use crate::types::tool::ProcessRecord;

/// A process that was started. Nothing of its output is read before somebody answers `stored`; on
/// an error, or without an answer, it is killed and its call fails.
#[derive(Debug)]
pub struct ProcessStarted {
    /// Who it is.
    pub record: Box<ProcessRecord>,
    /// To be answered when the record is committed; the error says why it is not.
    pub stored: oneshot::Sender<Result<(), String>>,
}

/// Has a record stored.
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
