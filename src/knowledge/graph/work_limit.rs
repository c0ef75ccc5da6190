//! The limit of the work for one file: its time, and the end of its job.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// Time for the structure of one file. Some texts that are not code take very long; they are indexed as plain text.
const STRUCTURE_TIMEOUT: Duration = Duration::from_secs(2);

/// The limit of the work for one file.
#[derive(Clone, Debug)]
pub struct WorkLimit {
    end: Instant,
    cancel: CancellationToken,
}

impl WorkLimit {
    /// The limit of a file whose work begins now.
    #[must_use]
    pub fn start(cancel: &CancellationToken) -> Self {
        Self { end: Instant::now() + STRUCTURE_TIMEOUT, cancel: cancel.clone() }
    }

    /// Whether the work must stop.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.is_cancelled() || Instant::now() >= self.end
    }

    /// Whether the job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }
}
