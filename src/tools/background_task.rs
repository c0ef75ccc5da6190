//! A background task as other calls of its session see it.

use std::sync::{Arc, Mutex, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::capture::{Capture, OutputPart};
use base::sync::lock;
use types::background::{BackgroundCommand, KilledBy};

/// A background task of the session.
#[derive(Clone, Debug)]
pub struct BackgroundTaskView {
    /// State of the task according to the journal.
    pub command: BackgroundCommand,
    /// Live output and end of a running task; `None` if it does not run.
    pub live: Option<Arc<BackgroundTaskHandle>>,
}

/// Access of other calls to a running background task. Cheap to share.
#[derive(Debug)]
pub struct BackgroundTaskHandle {
    pub(super) capture: Arc<Mutex<Capture>>,
    pub(super) stop: CancellationToken,
    pub(super) killed_by: OnceLock<KilledBy>,
    pub(super) written: CancellationToken,
}

impl BackgroundTaskHandle {
    /// Ends the task with all its processes. The first caller is recorded as the one that ended it.
    pub fn stop(&self, by: KilledBy) {
        let _ = self.killed_by.set(by);
        self.stop.cancel();
    }

    /// Reports that the task's end is in the journal.
    pub fn mark_written(&self) {
        self.written.cancel();
    }

    /// Waits until the task's end is in the journal. Cancel-safe.
    pub(super) async fn wait_written(&self) {
        self.written.cancelled().await;
    }

    /// Total bytes of output so far, and the output after the first `from` bytes.
    pub(super) fn output_since(&self, from: u64) -> (u64, OutputPart) {
        let capture = lock(&self.capture);
        (capture.bytes(), capture.output_since(from))
    }
}
